-- The figures of a batch under a team: a row per level, and one without a level for all.
select *
from v_summary_per_level_and_total
where batch_id = :batch_id and team_id = :team_id
order by level nulls last
