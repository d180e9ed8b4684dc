insert into failure_signals (run_id, mode, version, confidence, seqs, detail)
select
    run_id,
    (array['step_repetition', 'premature_termination', 'incorrect_verification'])[1 + tool_errors % 3],
    'rules-1',
    'decided',
    array[4, 6],
    'the same call twice'
from planting
join runs using (batch_id, team_id)
where status = 'completed' and not success
