-- What does each tool say most often when it fails?
-- The first line of the message without its numbers, so that alike ones are counted together; over all tries.
select
    event.tool,
    event.type,
    event.said,
    count(*) as times,
    count(distinct event.run_id) as runs,
    count(distinct run.team_id) as teams
from runs as run
join batches as batch using (batch_id, team_id)
join (
    select
        outcome.run_id,
        coalesce(outcome.tool_name, (
            select call.tool_name
            from events as call
            where call.run_id = outcome.run_id
                and call.message_type = 'tool_call'
                and call.tool_call_id = outcome.tool_call_id
                and call.seq < outcome.seq
            order by call.seq desc
            limit 1
        )) as tool,
        outcome.error ->> 'type' as type,
        regexp_replace(
            left(split_part(coalesce(outcome.error ->> 'message', outcome.content, ''), chr(10), 1), 120),
            '[0-9]+', '…', 'g'
        ) as said
    from events as outcome
    where outcome.message_type = 'tool_error'
) as event using (run_id)
where (cast(:batch_id as text) is null or run.batch_id = cast(:batch_id as text))
    and (cast(:team_id as text) is null or run.team_id = cast(:team_id as text))
    and (cast(:suite as text) is null or batch.suite = cast(:suite as text))
group by event.tool, event.type, event.said
order by times desc, runs desc, tool, type, said
limit :rows
