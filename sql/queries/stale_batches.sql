-- Batches with tries that have ended since their summary was last renewed, the longest waiting first. Tries are
-- counted, not dated: the clocks of two workers may differ.
select batch.suite, batch.batch_id, batch.team_id, run.newest, run.ended, run.running > 0 as under_way
from batches as batch
join (
    select
        batch_id,
        team_id,
        max(finished_at) as newest,
        count(*) filter (where status <> 'running') as ended,
        count(*) filter (where status = 'running') as running
    from runs
    group by batch_id, team_id
) as run using (batch_id, team_id)
left join (
    select batch_id, team_id, sum(tries - running) as ended
    from mv_batch_summary
    group by batch_id, team_id
) as summary using (batch_id, team_id)
where run.ended > 0 and summary.ended is distinct from run.ended
order by run.newest, batch.batch_id, batch.team_id
