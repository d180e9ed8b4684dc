-- The failure signals of the live tries of a batch under a team, each finder's latest version only.
select signal.run_id, signal.mode, signal.confidence, signal.found_by, signal.seqs, signal.detail
from failure_signals as signal
join runs as run using (run_id)
where run.live and run.batch_id = :batch_id and run.team_id = :team_id
    and signal.version = (
        select newest.version
        from failure_signals as newest
        where newest.run_id = signal.run_id and newest.found_by = signal.found_by
        order by newest.found_at desc, newest.version desc
        limit 1
    )
order by signal.run_id, signal.confidence, signal.mode, signal.found_by
