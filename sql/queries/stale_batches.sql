-- Batches with ended tries whose summaries have been overtaken, the longest waiting first. What is read are the few rows
-- that say so, and the runs of their batches.
select batch.suite, batch.batch_id, batch.team_id, run.newest, run.ended, run.running > 0 as under_way, stale.latest
from (
    select batch_id, team_id, max(stale_no) as latest
    from stale_summaries
    group by batch_id, team_id
) as stale
join batches as batch using (batch_id, team_id)
cross join lateral (
    select
        max(finished_at) as newest,
        count(*) filter (where status <> 'running') as ended,
        count(*) filter (where status = 'running') as running
    from runs
    where runs.batch_id = batch.batch_id and runs.team_id = batch.team_id
) as run
where run.ended > 0
order by run.newest, batch.batch_id, batch.team_id
