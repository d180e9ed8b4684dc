-- a batch's contract fixes one content per task: the plan's, and the same for every attempt
select
    run.run_id,
    cell.batch_id,
    cell.team_id,
    cell.task_id,
    cell.attempt,
    run.try_no,
    run.task_hash as answered,
    cell.task_hash as planned,
    task.first_planned
from plan as cell
join (
    select distinct on (batch_id, team_id, task_id) batch_id, team_id, task_id, task_hash as first_planned
    from plan
    order by batch_id, team_id, task_id, planned_at, attempt
) as task using (batch_id, team_id, task_id)
join runs as run using (batch_id, team_id, task_id, attempt)
where run.task_hash <> cell.task_hash or cell.task_hash <> task.first_planned
order by cell.batch_id, cell.team_id, cell.task_id, cell.attempt, run.try_no
