-- chance: 0 to 99, of the run and event
insert into events (
    run_id, seq, ts, message_type, source, target, content, content_sha256, content_length, tool_name, tool_call_id,
    tool_args, reason_code, payload, error, tokens_in, tokens_out, latency_ms
)
select
    run.run_id,
    step.seq,
    run.started_at + step.seq * interval '1.5 s' + chance * interval '10 ms',
    kind,
    case when step.source = 'critic' and uncritical then 'planner' else step.source end,
    case when step.target = 'critic' and uncritical then 'planner' else step.target end,
    case kind
        when 'agent_message' then case
            when step.source = 'user' then 'How many units were sold, returns left out?'
            when step.source = 'critic' and step.seq = 18 then 'APPROVE'
            else step.source || ': ' || repeat('the sum of column ' || chance || ' is to be checked. ', 2 + chance % 9)
        end
        when 'tool_result' then coalesce(left(sheet.body, 2048), 'result ' || chance || ' ' || md5(key))
        when 'tool_error' then said
        when 'final_answer' then run.final_answer
    end,
    sheet.sha256,
    sheet.length,
    case when kind <> 'tool_result' or chance >= 10 then step.tool end,
    case when step.tool is not null then 'call_' || step.call end,
    case when kind = 'tool_call' then jsonb_build_object('code', 'print(' || chance || ' * 7)', 'step', step.seq) end,
    case
        when step.reason is null then null
        when chance < 2 then 'PARSE_FAILED'
        when chance = 2 then 'FALLBACK'
        else step.reason
    end,
    case when step.reason is not null then jsonb_build_object('summary', 'it is the turn of ' || step.target) end,
    case when kind = 'tool_error' then jsonb_build_object('class', 'tool', 'type', 'ValueError', 'message', said) end,
    case when step.spends then 400 + chance * 3 end,
    case when step.spends then 20 + chance end,
    case when step.seq > 0 then 200 + chance * case when step.call is null then 30 else 5 end end
from planting
join runs as run using (batch_id, team_id)
cross join lateral (select hashtextextended(run.run_id::text, 4) % 20 = 0 as uncritical) as mood
cross join (
    values
        (0, 'agent_message', 'user', null, null, null, null, false),
        (1, 'selector_decision', 'selector', 'planner', null, null, 'NEEDS_PLANNING', false),
        (2, 'agent_message', 'planner', null, null, null, null, true),
        (3, 'selector_decision', 'selector', 'executor', null, null, 'NEEDS_EXECUTION', false),
        (4, 'tool_call', 'executor', null, 'read_attached_file', 1, null, true),
        (5, 'tool_result', 'executor', null, 'read_attached_file', 1, null, false),
        (6, 'tool_call', 'executor', null, 'python_calc', 2, null, true),
        (7, 'tool_result', 'executor', null, 'python_calc', 2, null, false),
        (8, 'agent_message', 'executor', null, null, null, null, false),
        (9, 'selector_decision', 'selector', 'critic', null, null, 'NEEDS_VERIFICATION', false),
        (10, 'agent_message', 'critic', null, null, null, null, true),
        (11, 'selector_decision', 'selector', 'planner', null, null, 'NEEDS_PLANNING', false),
        (12, 'agent_message', 'planner', null, null, null, null, true),
        (13, 'selector_decision', 'selector', 'executor', null, null, 'NEEDS_EXECUTION', false),
        (14, 'tool_call', 'executor', null, 'python_exec', 3, null, true),
        (15, 'tool_result', 'executor', null, 'python_exec', 3, null, false),
        (16, 'agent_message', 'executor', null, null, null, null, false),
        (17, 'selector_decision', 'selector', 'critic', null, null, 'NEEDS_VERIFICATION', false),
        (18, 'agent_message', 'critic', null, null, null, null, true),
        (19, 'final_answer', 'critic', null, null, null, null, false)
) as step (seq, message_type, source, target, tool, call, reason, spends)
cross join lateral (select run.run_id::text || '/' || step.seq as key) as named
cross join lateral (select abs(hashtextextended(key, 5) % 100)::integer as chance) as drawn
cross join lateral (
    select
        case when step.message_type = 'tool_result' and chance % 9 = 0 then 'tool_error' else step.message_type end as kind,
        (array['no such column', 'the file is not there', 'took longer than 60 s', 'division by zero'])[1 + chance % 4]
            || ': ' || chance / 20 as said
) as outcome
left join (
    select body, sha256, length, row_number() over (order by sha256) as number from texts where body like 'Sheet %'
) as sheet on kind = 'tool_result' and chance % 13 = 1 and sheet.number = 1 + chance % 50
where run.status = 'completed' or step.seq <= 8
