-- Why a run failed, as far as its trace tells: one row per mode of the MAST taxonomy that a rule saw. Modes have names, not
-- numbers: the published lists number them differently. A model's labels stand beside the rules', never over them.

create table failure_signals (
    run_id uuid not null references runs on delete cascade,
    mode text not null,
    found_by text not null default 'rules',
    version text not null,
    confidence text not null,
    seqs integer[] not null default '{}',
    detail text not null default '',
    found_at timestamptz not null default now(),
    primary key (run_id, mode, found_by, version),
    constraint failure_signals_confidence_is_known check (confidence in ('decided', 'signal')),
    constraint failure_signals_found_by_is_known check (found_by in ('rules', 'judge')),
    constraint failure_signals_mode_is_a_name check (mode ~ '^[a-z][a-z_]{2,59}$'),
    constraint failure_signals_detail_is_short check (length(detail) <= 500)
);
comment on table failure_signals is 'MAST modes that rules (or, beside them, a judge) saw in the trace of a try, with the events';
create index failure_signals_by_mode on failure_signals (mode, found_by);

create view v_failure_signals as
select
    run.batch_id,
    run.team_id,
    run.task_id,
    run.attempt,
    run.run_id,
    run.level,
    run.scripted,
    run.status,
    run.success,
    run.error_class,
    signal.mode,
    signal.found_by,
    signal.version,
    signal.confidence,
    signal.seqs,
    signal.detail
from failure_signals as signal
join v_runs as run using (run_id);
comment on view v_failure_signals is 'Failure signals of the live tries, with the run that they are about';
