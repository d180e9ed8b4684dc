update runs as run
set tool_errors = counted.errors
from (
    select event.run_id, count(*)::integer as errors
    from planting
    join runs using (batch_id, team_id)
    join events as event using (run_id)
    where event.message_type = 'tool_error'
    group by event.run_id
) as counted
where counted.run_id = run.run_id
