-- Every try of a batch under a team, earlier ones too.
select
    task_id,
    attempt,
    run_id,
    try_no,
    live,
    status,
    terminated_by,
    error_class,
    error_message,
    started_at,
    finished_at,
    latency_ms,
    turns,
    tool_calls,
    tool_errors,
    selector_fallbacks,
    tokens_in,
    tokens_out,
    all_tokens_in,
    all_tokens_out,
    model_calls,
    cost,
    events_dropped,
    text_repairs,
    sandbox_level,
    (
        select away.month || ' in ' || away.folder
        from archived_months as away
        where away.dropped_at is not null and runs.run_id >= away.first_id and runs.run_id < away.end_id
    ) as archived
from runs
where batch_id = :batch_id and team_id = :team_id
order by task_id, attempt, try_no
