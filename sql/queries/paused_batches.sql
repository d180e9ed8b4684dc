-- Batches whose endpoint has an open circuit since before :before, with a cell that has no completed live run.
select batch.suite, batch.batch_id, batch.team_id, circuit.opened_at
from circuits as circuit
join batches as batch
    on circuit.endpoint = (batch.contract ->> 'endpoint') || ' ' || (batch.contract ->> 'model')
where circuit.opened_at < :before
and exists (
    select from plan as cell
    left join runs as run
        on run.batch_id = cell.batch_id and run.team_id = cell.team_id
        and run.task_id = cell.task_id and run.attempt = cell.attempt and run.live
    where cell.batch_id = batch.batch_id and cell.team_id = batch.team_id
    and run.status is distinct from 'completed'
)
order by batch.created_at, batch.team_id
