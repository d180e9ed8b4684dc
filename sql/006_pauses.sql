-- Which batches an open circuit has stopped, and when: they alone are resumed by themselves, never one that somebody
-- has left unfinished for a reason of their own.

create table pauses (
    batch_id text not null,
    team_id text not null,
    endpoint text not null,
    since timestamptz not null default now(),
    primary key (batch_id, team_id),
    foreign key (batch_id, team_id) references batches
);
comment on table pauses is 'Batches that an open circuit has stopped; the next launch of a batch takes its row away';
