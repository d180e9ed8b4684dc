-- What each role of a batch under a team did and cost, in the order in which roles are shown.
select
    role,
    model_calls,
    failed_calls,
    tokens_in,
    tokens_out,
    tokens,
    cost,
    latency_ms,
    turns,
    tool_calls,
    tool_errors,
    decisions,
    failed_decisions
from v_role_accounting
where batch_id = :batch_id and team_id = :team_id
order by array_position(array['planner', 'executor', 'critic', 'selector'], role)
