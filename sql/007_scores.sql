-- Every verdict that a run ever had, by the version of the scorer that gave it. The run's own row has the present one.

create table scores (
    run_id uuid not null references runs on delete cascade,
    scorer_version text not null,
    success boolean not null,
    format_valid boolean not null,
    reason text not null default '',
    scored_at timestamptz not null default now(),
    primary key (run_id, scorer_version)
);
comment on table scores is 'Verdicts by scorer version; what changes when a scorer changes is the difference of two of them';
