insert into examinations (run_id, examiner, version)
select run_id, examiner, case examiner when 'rules' then 'rules-1' else 'flags-1' end
from planting
join runs using (batch_id, team_id)
cross join unnest(array['rules', 'contamination']) as examiner
where live
