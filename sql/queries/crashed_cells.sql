-- The cells of a suite whose live try crashed, the latest first.
select run.batch_id, run.team_id, run.task_id, run.attempt, run.error_class, run.error_message, run.run_id
from runs as run
join batches as batch using (batch_id, team_id)
where batch.suite = :suite and run.live and run.status = 'crashed'
order by run.finished_at desc, run.batch_id, run.team_id, run.task_id, run.attempt
