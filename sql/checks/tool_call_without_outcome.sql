-- counted per call id, since some endpoints use one id again
select
    run.run_id,
    run.batch_id,
    run.team_id,
    run.task_id,
    run.attempt,
    run.try_no,
    event.tool_call_id,
    count(*) filter (where event.message_type = 'tool_call') as calls,
    count(*) filter (where event.message_type <> 'tool_call') as outcomes
from runs as run
join events as event using (run_id)
where run.status <> 'running'
    -- a dropped event may be the outcome
    and run.events_dropped = 0
    and event.message_type in ('tool_call', 'tool_result', 'tool_error')
group by run.run_id, event.tool_call_id
having count(*) filter (where event.message_type = 'tool_call')
    > count(*) filter (where event.message_type <> 'tool_call')
order by run.batch_id, run.team_id, run.task_id, run.attempt, run.try_no, event.tool_call_id
