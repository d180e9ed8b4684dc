-- Which runs ended because they ran out of messages, and who had the last word?
-- What was said last stands beside it; the latest runs first.
select
    run.batch_id as batch,
    run.team_id as team,
    run.task_id || '#' || run.attempt as cell,
    last_message.source as last_speaker,
    left(regexp_replace(last_message.content, '\s+', ' ', 'g'), 120) as said,
    run.turns,
    run.tool_calls,
    run.run_id
from runs as run
join batches as batch using (batch_id, team_id)
left join lateral (
    select event.source, left(event.content, 500) as content
    from events as event
    where event.run_id = run.run_id and event.message_type = 'agent_message'
    order by event.seq desc
    limit 1
) as last_message on true
where (cast(:batch_id as text) is null or run.batch_id = cast(:batch_id as text))
    and (cast(:team_id as text) is null or run.team_id = cast(:team_id as text))
    and (cast(:suite as text) is null or batch.suite = cast(:suite as text))
    and run.live
    and run.terminated_by = 'max_messages'
order by run.started_at desc, run.batch_id, run.team_id, run.task_id, run.attempt
limit :rows
