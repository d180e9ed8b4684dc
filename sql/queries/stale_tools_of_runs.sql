-- Renews the figures of tools, where they are overtaken, of every batch with a run whose id is in a range.
select refresh_mv_tool_summary(batch_id, team_id)
from (
    select distinct batch_id, team_id
    from runs
    where run_id >= :first and run_id < :end
) as batch
where exists (
    select from stale_summaries as stale
    where (stale.batch_id, stale.team_id) = (batch.batch_id, batch.team_id) and stale.summary = 'mv_tool_summary'
)
order by batch_id, team_id
