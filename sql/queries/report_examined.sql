-- How many ended runs of a batch under a team the rules have looked at.
select
    count(distinct run.run_id)::integer as ended,
    count(*) filter (where examination.examiner = 'rules')::integer as by_rules,
    count(*) filter (where examination.examiner = 'contamination')::integer as for_contamination
from runs as run
left join examinations as examination using (run_id)
where run.batch_id = :batch_id and run.team_id = :team_id and run.live and run.status <> 'running'
