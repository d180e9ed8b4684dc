-- The contamination flags of the live tries of a batch under a team.
select run_id, rule as mode, confidence, 'contamination' as found_by, seqs, detail
from v_contamination
where batch_id = :batch_id and team_id = :team_id
order by run_id, confidence, rule
