select run_id, batch_id, team_id, task_id, attempt, try_no, heartbeat_at, worker, dagster_run_id
from runs
where live and status = 'running' and heartbeat_at < now() - interval '1 minute'
order by heartbeat_at
