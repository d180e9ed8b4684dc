select run_id, batch_id, team_id, task_id, attempt, try_no
from runs
where status = 'completed' and (success is null or format_valid is null)
order by batch_id, team_id, task_id, attempt, try_no
