-- Batches that a circuit has stopped before :before and that miss a completed run, in the order in which they began.
select batch.suite, batch.batch_id, batch.team_id, pause.since
from pauses as pause
join batches as batch using (batch_id, team_id)
where pause.since < :before
and exists (
    select from plan as cell
    left join runs as run
        on run.batch_id = cell.batch_id and run.team_id = cell.team_id
        and run.task_id = cell.task_id and run.attempt = cell.attempt and run.live
    where cell.batch_id = batch.batch_id and cell.team_id = batch.team_id
    and run.status is distinct from 'completed'
)
order by batch.created_at, batch.team_id
