-- How many events each try of a batch under a team has.
select run.run_id, count(*)::integer as events
from runs as run
-- run by run; all at once would be all events that there are
cross join lateral (select 1 from events where events.run_id = run.run_id offset 0) as event
where run.batch_id = :batch_id and run.team_id = :team_id
group by run.run_id
