select
    run.run_id,
    run.batch_id,
    run.team_id,
    run.task_id,
    run.attempt,
    run.try_no,
    count(*) as events,
    max(event.seq) as last_seq
from runs as run
join events as event using (run_id)
where run.status <> 'running' and run.events_dropped = 0
group by run.run_id
having count(*) <> max(event.seq) + 1
order by run.batch_id, run.team_id, run.task_id, run.attempt, run.try_no
