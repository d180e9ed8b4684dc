-- Which tasks are right in one attempt and wrong in another?
-- Of the completed runs of one batch under one team, the most undecided tasks first.
select
    run.batch_id as batch,
    run.team_id as team,
    run.task_id as task,
    string_agg(run.attempt::text, ', ' order by run.attempt) filter (where run.success) as right_in,
    string_agg(run.attempt::text, ', ' order by run.attempt) filter (where not run.success) as wrong_in,
    count(*) as attempts,
    avg(run.success::integer)::double precision as right_share
from runs as run
join batches as batch using (batch_id, team_id)
where (cast(:batch_id as text) is null or run.batch_id = cast(:batch_id as text))
    and (cast(:team_id as text) is null or run.team_id = cast(:team_id as text))
    and (cast(:suite as text) is null or batch.suite = cast(:suite as text))
    and run.live
    and run.status = 'completed'
group by run.batch_id, run.team_id, run.task_id
having bool_or(run.success) and not bool_and(run.success)
order by abs(avg(run.success::integer) - 0.5), attempts desc, batch, team, task
limit :rows
