-- The cells of a suite that a launch asked for and that have no ended live try.
select cell.batch_id, cell.team_id, cell.task_id, cell.attempt, coalesce(run.status, 'not started') as status
from plan as cell
join batches as batch using (batch_id, team_id)
left join runs as run
    on run.batch_id = cell.batch_id and run.team_id = cell.team_id
    and run.task_id = cell.task_id and run.attempt = cell.attempt and run.live
where batch.suite = :suite and run.status is distinct from 'completed' and run.status is distinct from 'crashed'
order by cell.planned_at desc, cell.batch_id, cell.team_id, cell.task_id, cell.attempt
