-- What were the tools called with, and what came of each call?
-- The latest runs first; with a tool's name, the calls of that tool only. What is shown is the beginning of long texts.
select
    call.batch_id as batch,
    call.team_id as team,
    call.task_id || '#' || call.attempt as cell,
    call.tool_name as tool,
    left(call.tool_args::text, 120) as arguments,
    case outcome.message_type when 'tool_result' then 'result' when 'tool_error' then 'error' else 'none' end as came,
    left(split_part(coalesce(outcome.error ->> 'message', outcome.content), chr(10), 1), 120) as said,
    outcome.latency_ms / 1000::double precision as seconds,
    call.seq,
    call.run_id
from (
    select
        run.batch_id, run.team_id, run.task_id, run.attempt, run.started_at, event.run_id, event.seq, event.tool_name,
        event.tool_args, event.tool_call_id
    from runs as run
    join batches as batch using (batch_id, team_id)
    join events as event using (run_id)
    where event.message_type = 'tool_call'
        and (cast(:tool as text) is null or event.tool_name = cast(:tool as text))
        and (cast(:batch_id as text) is null or run.batch_id = cast(:batch_id as text))
    and (cast(:team_id as text) is null or run.team_id = cast(:team_id as text))
    and (cast(:suite as text) is null or batch.suite = cast(:suite as text))
    order by run.started_at desc, event.run_id, event.seq
    limit :rows
) as call
left join lateral (
    select answer.message_type, answer.error, answer.content, answer.latency_ms
    from events as answer
    where answer.run_id = call.run_id
        and answer.message_type in ('tool_result', 'tool_error')
        and answer.tool_call_id = call.tool_call_id
        and answer.seq > call.seq
    order by answer.seq
    limit 1
) as outcome on true
order by call.started_at desc, call.run_id, call.seq
