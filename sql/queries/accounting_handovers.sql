-- Who spoke after whom in a batch under a team, the most frequent first.
select speaker, next_speaker, reason_code, handovers, runs
from v_handovers
where batch_id = :batch_id and team_id = :team_id
order by handovers desc, speaker, next_speaker, reason_code
