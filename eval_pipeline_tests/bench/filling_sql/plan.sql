insert into plan (batch_id, team_id, task_id, attempt, task_hash, planned_at)
select batch_id, team_id, 'bench-' || to_char(number, 'FM0000'), attempt, 'h1', batch.created_at
from planting
join batches as batch using (batch_id, team_id)
cross join generate_series(1, :tasks) as number
cross join generate_series(1, :attempts) as attempt
