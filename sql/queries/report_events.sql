-- The traces of all tries of a batch under a team: the first so many events of each, and as much of a text as a page
-- can show.
select
    run.run_id,
    event.seq,
    event.message_type,
    event.source,
    event.target,
    coalesce(left(full_text.body, :characters), event.content) as content,
    event.content_sha256 is not null as cut,
    event.content_length,
    event.tool_name,
    event.tool_call_id,
    event.tool_args,
    event.reason_code,
    event.payload,
    event.error,
    event.tokens_in,
    event.tokens_out,
    event.latency_ms
from runs as run
-- run by run; all at once would be all events that there are
cross join lateral (
    select * from events where events.run_id = run.run_id and events.seq < :events offset 0
) as event
left join texts as full_text on full_text.sha256 = event.content_sha256
where run.batch_id = :batch_id and run.team_id = :team_id
order by run.run_id, event.seq
