-- Runs that touched what no run should see: an answer key, another task's file, a public copy of the benchmark. A row per
-- rule that saw it, with the events that made it fire. A flag changes no verdict.

create table contamination_flags (
    run_id uuid not null constraint contamination_flags_run_is_stored references runs on delete cascade,
    rule text not null,
    version text not null,
    confidence text not null,
    seqs integer[] not null,
    detail text not null default '',
    found_at timestamptz not null default now(),
    primary key (run_id, rule, version),
    constraint contamination_flags_rule_is_a_name check (rule ~ '^[a-z][a-z_]{2,59}$'),
    constraint contamination_flags_confidence_is_known check (confidence in ('decided', 'signal')),
    constraint contamination_flags_names_its_events check (cardinality(seqs) > 0),
    constraint contamination_flags_detail_is_short check (char_length(detail) <= 500)
);
comment on table contamination_flags is 'Per try and rule: which events touched a key, a foreign file or a public copy';

create view v_contamination as
select
    run.batch_id,
    run.team_id,
    run.task_id,
    run.attempt,
    run.run_id,
    run.suite,
    run.benchmark,
    run.level,
    run.scripted,
    run.status,
    run.success,
    flag.rule,
    flag.version,
    flag.confidence,
    flag.seqs,
    flag.detail,
    flag.found_at
from contamination_flags as flag
join v_runs as run using (run_id)
join examinations as examination
    on examination.run_id = flag.run_id
    and examination.examiner = 'contamination'
    and examination.version = flag.version;
comment on view v_contamination is 'Flags of the live tries, of the version of the rules that looked last';
