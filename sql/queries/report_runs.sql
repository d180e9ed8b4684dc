-- Every planned cell of a batch under a team, with its task and what its run came to.
select
    cell.task_id,
    cell.attempt,
    task.level,
    task.question,
    task.gold,
    task.file_name,
    task.file_sha256,
    run.run_id,
    run.status,
    run.success,
    run.format_valid,
    run.terminated_by,
    run.error_class,
    run.error_message,
    run.final_answer,
    run.score_reason,
    coalesce(run.turns, 0) as turns,
    coalesce(run.tool_calls, 0) as tool_calls,
    coalesce(run.tool_errors, 0) as tool_errors,
    run.all_tokens,
    run.cost,
    run.all_latency_ms as latency_ms
from plan as cell
join tasks as task on task.task_id = cell.task_id and task.content_hash = cell.task_hash
left join v_runs as run
    on run.batch_id = cell.batch_id and run.team_id = cell.team_id
    and run.task_id = cell.task_id and run.attempt = cell.attempt
    -- constants let the view sum the usage of this batch only
    and run.batch_id = :batch_id and run.team_id = :team_id
where cell.batch_id = :batch_id and cell.team_id = :team_id
order by cell.planned_at, cell.task_id, cell.attempt
