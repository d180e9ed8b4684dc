-- What a team is made of in use: what each role asked and cost, who handed over to whom and why, how the talk ended.
-- A batch that a query names is the only one that is read: every step groups or partitions by batch and team.

create view v_model_calls as
select
    run.batch_id,
    run.team_id,
    run.task_id,
    run.attempt,
    run.try_no,
    run.live,
    call.run_id,
    call.call_no,
    call.role,
    call.kind,
    call.attempt as request_attempt,
    call.started_at,
    call.latency_ms,
    call.outcome,
    call.finish_reason,
    call.prompt_tokens,
    call.completion_tokens,
    call.http_status,
    call.error_class,
    call.error_message,
    call.model
from model_calls as call
join runs as run using (run_id);
comment on view v_model_calls is 'Every request to the model, of all tries; request_attempt counts the retries of one';

create view v_role_accounting as
select
    batch_id,
    team_id,
    role,
    coalesce(sum(model_calls), 0)::bigint as model_calls,
    coalesce(sum(failed_calls), 0)::bigint as failed_calls,
    sum(tokens_in)::bigint as tokens_in,
    sum(tokens_out)::bigint as tokens_out,
    (sum(tokens_in) + sum(tokens_out))::bigint as tokens,
    sum(cost) as cost,
    sum(latency_ms)::bigint as latency_ms,
    coalesce(sum(turns), 0)::bigint as turns,
    coalesce(sum(tool_calls), 0)::bigint as tool_calls,
    coalesce(sum(tool_errors), 0)::bigint as tool_errors,
    coalesce(sum(decisions), 0)::bigint as decisions,
    coalesce(sum(failed_decisions), 0)::bigint as failed_decisions
from (
    select
        batch_id,
        team_id,
        role,
        model_calls,
        failed_calls,
        tokens_in,
        tokens_out,
        latency_ms,
        -- prices are not stored, so a run's cost is shared out by tokens
        run_cost * (coalesce(tokens_in, 0) + coalesce(tokens_out, 0)) / nullif(run_tokens, 0) as cost,
        null::bigint as turns,
        null::bigint as tool_calls,
        null::bigint as tool_errors,
        null::bigint as decisions,
        null::bigint as failed_decisions
    from (
        select
            run.batch_id,
            run.team_id,
            run.run_id,
            run.cost as run_cost,
            call.role,
            count(*) as model_calls,
            count(*) filter (where call.outcome <> 'ok') as failed_calls,
            sum(call.prompt_tokens) as tokens_in,
            sum(call.completion_tokens) as tokens_out,
            sum(call.latency_ms) as latency_ms,
            sum(sum(coalesce(call.prompt_tokens, 0) + coalesce(call.completion_tokens, 0)))
                over (partition by run.batch_id, run.team_id, run.run_id) as run_tokens
        from runs as run
        join model_calls as call using (run_id)
        group by run.batch_id, run.team_id, run.run_id, run.cost, call.role
    ) as asked
    union all
    select
        run.batch_id,
        run.team_id,
        event.source,
        null,
        null,
        null,
        null,
        null,
        null,
        count(*) filter (where event.message_type = 'agent_message'),
        count(*) filter (where event.message_type = 'tool_call'),
        count(*) filter (where event.message_type = 'tool_error'),
        count(*) filter (where event.message_type = 'selector_decision'),
        count(*) filter (where event.reason_code in ('PARSE_FAILED', 'FALLBACK'))
    from runs as run
    join events as event using (run_id)
    where event.source in ('planner', 'executor', 'critic', 'selector')
    group by run.batch_id, run.team_id, event.source
) as part
group by batch_id, team_id, role;
comment on view v_role_accounting is
    'Per batch, team and role, over all tries: requests, tokens, cost, latency, turns, tools, decisions';

create view v_handovers as
select
    batch_id,
    team_id,
    speaker,
    next_speaker,
    reason_code,
    count(*)::integer as handovers,
    count(distinct run_id)::integer as runs
from (
    select
        batch_id,
        team_id,
        run_id,
        message_type,
        reason_code,
        first_value(source) over (partition by batch_id, team_id, run_id, turn order by seq) as speaker,
        lead(message_type) over (partition by batch_id, team_id, run_id order by seq) as next_type,
        lead(source) over (partition by batch_id, team_id, run_id order by seq) as next_speaker
    from (
        select
            run.batch_id,
            run.team_id,
            event.run_id,
            event.seq,
            event.message_type,
            event.source,
            event.reason_code,
            -- decisions belong to the turn before them
            count(*) filter (where event.message_type <> 'selector_decision')
                over (partition by run.batch_id, run.team_id, event.run_id order by event.seq) as turn
        from runs as run
        join events as event using (run_id)
        where run.live and event.message_type in ('agent_message', 'tool_call', 'selector_decision')
    ) as said
) as step
-- of several attempts at one choice, the last is the one that somebody's turn followed
where message_type = 'selector_decision' and next_type <> 'selector_decision'
group by batch_id, team_id, speaker, next_speaker, reason_code;
comment on view v_handovers is 'Who spoke after whom, and the reason that the selector gave, over live tries';

create view v_endings as
select
    run.batch_id,
    run.team_id,
    run.status,
    coalesce(run.terminated_by, run.error_class, 'unknown') as ended_by,
    coalesce(last_message.source, 'nobody') as last_speaker,
    count(*)::integer as runs,
    count(*) filter (where run.success)::integer as successes
from runs as run
left join lateral (
    select event.source
    from events as event
    where event.run_id = run.run_id and event.message_type = 'agent_message'
    order by event.seq desc
    limit 1
) as last_message on true
where run.live and run.status <> 'running'
group by
    run.batch_id,
    run.team_id,
    run.status,
    coalesce(run.terminated_by, run.error_class, 'unknown'),
    coalesce(last_message.source, 'nobody');
comment on view v_endings is 'What ended the runs of a batch under a team, and who had the last word';
