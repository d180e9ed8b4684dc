-- Which rules have looked at a try, and in which version: a try in which they saw nothing has no other row to show for it.
-- What was found under another version than the one that looked last is kept, and is not the latest.

create table examinations (
    run_id uuid not null constraint examinations_run_is_stored references runs on delete cascade,
    examiner text not null,
    version text not null,
    examined_at timestamptz not null default now(),
    primary key (run_id, examiner),
    constraint examinations_examiner_is_known check (examiner in ('rules', 'judge', 'contamination')),
    constraint examinations_version_is_short check (char_length(version) between 1 and 300)
);
comment on table examinations is 'Which version of which rules looked at a try last';

insert into examinations (run_id, examiner, version)
select run_id, 'rules', 'rules-1' from runs where failure_stage is not null;

-- why a run failed depends on its verdict, so a changed verdict is looked at again; whoever changes it need not know
create function forget_examinations() returns trigger language plpgsql as $$
begin
    delete from examinations where run_id = new.run_id and examiner in ('rules', 'judge');
    return null;
end
$$;

create trigger runs_changed_verdict_is_examined_again
    after update on runs for each row
    when (
        old.status = 'completed'
        and (old.success, old.format_valid) is distinct from (new.success, new.format_valid)
    )
    execute function forget_examinations();

create or replace view v_failure_signals as
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
    signal.detail,
    run.suite,
    signal.found_at,
    examination.run_id is not null as latest
from failure_signals as signal
join v_runs as run using (run_id)
left join examinations as examination
    on examination.run_id = signal.run_id
    and examination.examiner = signal.found_by
    and examination.version = signal.version;
comment on view v_failure_signals is
    'Failure signals of the live tries, with the run that they are about; latest are those of the version that looked last';
