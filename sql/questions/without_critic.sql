-- Which runs ended without a word from the critic?
-- The completed runs, the wrong ones first.
select
    run.batch_id as batch,
    run.team_id as team,
    run.task_id || '#' || run.attempt as cell,
    case when run.success then 'right' when run.format_valid then 'wrong' else 'no valid answer' end as verdict,
    run.terminated_by as ended_by,
    run.turns,
    run.run_id
from runs as run
join batches as batch using (batch_id, team_id)
where (cast(:batch_id as text) is null or run.batch_id = cast(:batch_id as text))
    and (cast(:team_id as text) is null or run.team_id = cast(:team_id as text))
    and (cast(:suite as text) is null or batch.suite = cast(:suite as text))
    and run.live
    and run.status = 'completed'
    and not exists (
        select from events as event
        where event.run_id = run.run_id and event.message_type = 'agent_message' and event.source = 'critic'
    )
order by run.success, run.format_valid, run.batch_id, run.team_id, run.task_id, run.attempt
limit :rows
