-- Rows of model_calls out of one JSON text, many runs at once; a row that is there already stays.
insert into model_calls (
    run_id, call_no, role, kind, attempt, started_at, latency_ms, outcome, finish_reason, prompt_tokens,
    completion_tokens, http_status, error_class, error_message, model
)
select
    run_id, call_no, role, kind, attempt, started_at, latency_ms, outcome, finish_reason, prompt_tokens,
    completion_tokens, http_status, error_class, error_message, model
from json_to_recordset(cast(:rows as json)) as row (
    run_id uuid,
    call_no integer,
    role text,
    kind text,
    attempt integer,
    started_at timestamptz,
    latency_ms bigint,
    outcome text,
    finish_reason text,
    prompt_tokens integer,
    completion_tokens integer,
    http_status integer,
    error_class text,
    error_message text,
    model text
)
on conflict do nothing
