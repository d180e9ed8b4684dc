-- How the runs of a batch under a team ended, the most frequent first.
select status, ended_by, last_speaker, runs, successes
from v_endings
where batch_id = :batch_id and team_id = :team_id
order by runs desc, status, ended_by, last_speaker
