-- Which tools fail how often, under which team?
-- Over all tries; an error that does not name its tool belongs to the call that it answers.
select
    team_id as team,
    tool,
    sum(calls)::bigint as calls,
    sum(errors)::bigint as errors,
    sum(errors)::double precision / nullif(sum(calls), 0) as error_share,
    count(*) filter (where errors > 0) as runs_with_errors
from (
    select
        run.team_id,
        event.run_id,
        event.tool,
        count(*) filter (where event.message_type = 'tool_call') as calls,
        count(*) filter (where event.message_type = 'tool_error') as errors
    from runs as run
    join batches as batch using (batch_id, team_id)
    join (
        select
            outcome.run_id,
            outcome.message_type,
            coalesce(outcome.tool_name, (
                select call.tool_name
                from events as call
                where call.run_id = outcome.run_id
                    and call.message_type = 'tool_call'
                    and call.tool_call_id = outcome.tool_call_id
                    and call.seq < outcome.seq
                order by call.seq desc
                limit 1
            )) as tool
        from events as outcome
        where outcome.message_type in ('tool_call', 'tool_error')
    ) as event using (run_id)
    where (cast(:batch_id as text) is null or run.batch_id = cast(:batch_id as text))
        and (cast(:team_id as text) is null or run.team_id = cast(:team_id as text))
        and (cast(:suite as text) is null or batch.suite = cast(:suite as text))
    group by run.team_id, event.run_id, event.tool
) as used
group by team_id, tool
order by errors desc, calls desc, team, tool
limit :rows
