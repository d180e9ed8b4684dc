select batch_id, team_id, task_id, attempt, count(*) as tries
from runs
group by batch_id, team_id, task_id, attempt
having not bool_or(live)
order by batch_id, team_id, task_id, attempt
