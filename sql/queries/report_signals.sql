-- The failure signals of the live tries of a batch under a team, of the rules and the judge that looked last.
select run_id, mode, confidence, found_by, seqs, detail
from v_failure_signals
where batch_id = :batch_id and team_id = :team_id and latest
order by run_id, found_by desc, confidence, mode
