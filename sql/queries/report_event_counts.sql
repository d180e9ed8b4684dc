-- How many events each try of a batch under a team has.
select run.run_id, count(*)::integer as events
from runs as run
join events as event using (run_id)
where run.batch_id = :batch_id and run.team_id = :team_id
group by run.run_id
