-- How often could the choice of the selector not be followed, and why?
-- PARSE_FAILED is an answer that could not be read, FALLBACK a speaker that AutoGen chose itself. The share is that of
-- all decisions of the team, over all tries.
select
    team,
    reason,
    times,
    runs,
    times / decisions::double precision as decision_share
from (
    select
        team_id as team,
        reason_code as reason,
        sum(times)::bigint as times,
        count(*) as runs,
        sum(sum(times)) over (partition by team_id) as decisions
    from (
        select run.team_id, event.run_id, event.reason_code, count(*) as times
        from runs as run
        join batches as batch using (batch_id, team_id)
        join events as event using (run_id)
        where event.message_type = 'selector_decision'
            and (cast(:batch_id as text) is null or run.batch_id = cast(:batch_id as text))
            and (cast(:team_id as text) is null or run.team_id = cast(:team_id as text))
            and (cast(:suite as text) is null or batch.suite = cast(:suite as text))
        group by run.team_id, event.run_id, event.reason_code
    ) as decided
    group by team_id, reason_code
) as counted
where reason in ('PARSE_FAILED', 'FALLBACK')
order by times desc, team, reason
limit :rows
