-- Between which two events of a run did most time pass?
-- Over all tries, with what was last heard before the gap and what ended it.
select
    gap.batch_id as batch,
    gap.team_id as team,
    gap.task_id || '#' || gap.attempt as cell,
    concat_ws(' ', earlier.source, earlier.message_type) as before,
    concat_ws(' ', gap.source, gap.message_type) as after,
    gap.latency_ms / 1000::double precision as seconds,
    gap.seq,
    gap.run_id
from (
    select
        run.batch_id, run.team_id, run.task_id, run.attempt, event.run_id, event.seq, event.source, event.message_type,
        event.latency_ms
    from runs as run
    join batches as batch using (batch_id, team_id)
    join events as event using (run_id)
    where event.latency_ms is not null
        and (cast(:batch_id as text) is null or run.batch_id = cast(:batch_id as text))
        and (cast(:team_id as text) is null or run.team_id = cast(:team_id as text))
        and (cast(:suite as text) is null or batch.suite = cast(:suite as text))
    order by event.latency_ms desc, event.run_id, event.seq
    limit :rows
) as gap
left join lateral (
    select event.source, event.message_type
    from events as event
    where event.run_id = gap.run_id and event.seq < gap.seq
    order by event.seq desc
    limit 1
) as earlier on true
order by gap.latency_ms desc, gap.run_id, gap.seq
