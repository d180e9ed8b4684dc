-- What each role of a batch under a team asked of the model, over all tries: the selector's calls, retries and failed
-- calls too.
select
    call.role,
    count(*)::integer as calls,
    count(*) filter (where call.outcome <> 'ok')::integer as failed,
    sum(call.prompt_tokens)::bigint as tokens_in,
    sum(call.completion_tokens)::bigint as tokens_out,
    sum(call.latency_ms)::bigint as latency_ms
from runs as run
join model_calls as call using (run_id)
where run.batch_id = :batch_id and run.team_id = :team_id
group by call.role
order by array_position(array['planner', 'executor', 'critic', 'selector'], call.role)
