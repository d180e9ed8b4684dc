-- Rows of traces out of one JSON text, many runs at once. A row that is there already stays: a retry after a commit
-- whose confirmation was lost finds its rows.
insert into events (
    run_id, seq, ts, message_type, source, target, content, content_sha256, content_length, tool_name, tool_call_id,
    tool_args, reason_code, payload, error, tokens_in, tokens_out, latency_ms
)
select
    run_id, seq, ts, message_type, source, target, content, content_sha256, content_length, tool_name, tool_call_id,
    tool_args, reason_code, payload, error, tokens_in, tokens_out, latency_ms
from json_to_recordset(cast(:rows as json)) as row (
    run_id uuid,
    seq integer,
    ts timestamptz,
    message_type text,
    source text,
    target text,
    content text,
    content_sha256 text,
    content_length bigint,
    tool_name text,
    tool_call_id text,
    tool_args jsonb,
    reason_code text,
    payload jsonb,
    error jsonb,
    tokens_in integer,
    tokens_out integer,
    latency_ms bigint
)
on conflict do nothing
