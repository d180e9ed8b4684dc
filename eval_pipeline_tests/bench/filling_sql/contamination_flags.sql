insert into contamination_flags (run_id, rule, version, confidence, seqs, detail)
select run_id, 'answer_key_file', 'flags-1', 'signal', array[5], 'a name like that of a key'
from planting
join runs using (batch_id, team_id)
where live and hashtextextended(run_id::text, 9) % 100 = 0
