-- pass@k and pass^k of a batch under a team over all levels.
select k, tasks, pass_at_k, pass_hat_k
from v_passk_totals
where batch_id = :batch_id and team_id = :team_id
order by k
