-- One run in eight has a request that was refused and made again.
insert into model_calls (
    run_id, call_no, role, kind, attempt, started_at, latency_ms, outcome, finish_reason, prompt_tokens,
    completion_tokens, http_status, error_class, error_message, model
)
select
    run.run_id,
    call_no,
    (array['selector', 'planner', 'selector', 'executor', 'executor', 'selector', 'critic', 'planner'])[1 + call_no % 8],
    case when call_no % 8 in (0, 2, 5) then 'selection' else 'turn' end,
    case when refused = call_no - 1 then 2 else 1 end,
    run.started_at + call_no * interval '2 s',
    300 + chance * chance,
    case when refused = call_no then 'error' else 'ok' end,
    case when refused <> call_no then 'stop' end,
    case when refused <> call_no then 300 + chance * 5 end,
    case when refused <> call_no then 20 + chance end,
    case when refused = call_no then 429 else 200 end,
    case when refused = call_no then 'rate_limit' end,
    case when refused = call_no then 'too many requests, wait ' || chance || ' s' end,
    'made-up'
from planting
join runs as run using (batch_id, team_id)
cross join generate_series(0, 11) as call_no
cross join lateral (
    select
        abs(hashtextextended(run.run_id::text || call_no, 6) % 100)::integer as chance,
        abs(hashtextextended(run.run_id::text, 7) % 100)::integer as refused
) as drawn
where run.status = 'completed' or call_no < 5
