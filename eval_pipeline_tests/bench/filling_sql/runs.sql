-- chance: 0 to 99, of the cell and try. Ids are UUIDs of version 7: the milliseconds of the beginning, then what looks
-- random.
insert into runs (
    run_id, batch_id, team_id, task_id, attempt, try_no, live, task_hash, level, status, terminated_by, success,
    format_valid, final_answer, score_reason, scorer_version, error_class, error_message, started_at, heartbeat_at,
    finished_at, latency_ms, turns, tool_calls, selector_fallbacks, tokens_in, tokens_out, all_tokens_in, all_tokens_out,
    model_calls, cost
)
select
    (
        lpad(to_hex((extract(epoch from begun_at) * 1000)::bigint), 12, '0')
        || '7' || substr(md5(key || try_no), 1, 3) || 'a' || substr(md5(key || try_no), 4, 15)
    )::uuid,
    batch_id,
    team_id,
    task_id,
    attempt,
    try_no,
    try_no = tries,
    'h1',
    level,
    case when crashed then 'crashed' else 'completed' end,
    case when crashed then null when chance < 8 then 'max_messages' else 'approve' end,
    case when not crashed then chance >= 40 end,
    case when not crashed then chance > 3 end,
    case when not crashed and chance > 3 then gold end,
    case when not crashed then case when chance >= 40 then 'equal' else 'another number' end end,
    case when not crashed then 'gaia-1' end,
    case when crashed then (array['connection', 'rate_limit', 'server_error'])[1 + chance % 3] end,
    case when crashed then 'the endpoint closed the connection after ' || chance || ' s' end,
    begun_at,
    begun_at + interval '20 s',
    begun_at + (20 + chance) * interval '1 s',
    (20 + chance) * 1000,
    case when crashed then 2 else 7 end,
    case when crashed then 2 else 3 end,
    chance / 90,
    3000 + chance * 10,
    400 + chance,
    4500 + chance * 12,
    600 + chance,
    case when crashed then 5 else 12 end,
    (4500 + chance * 20) / 1e6
from (
    select
        cell.batch_id,
        cell.team_id,
        cell.task_id,
        cell.attempt,
        task.level,
        task.gold,
        tries,
        try_no,
        key,
        try_no < tries or hashtextextended(key, 2) % 40 = 0 as crashed,
        abs(hashtextextended(key || try_no, 1) % 100)::integer as chance,
        cell.planned_at + interval '20 s'
            * row_number() over (partition by cell.batch_id, cell.team_id order by cell.task_id, cell.attempt) as begun_at
    from planting
    join plan as cell using (batch_id, team_id)
    join tasks as task on task.task_id = cell.task_id and task.content_hash = cell.task_hash
    cross join lateral (
        select concat_ws('/', cell.batch_id, cell.team_id, cell.task_id, cell.attempt) as key
    ) as named
    cross join lateral (select case when hashtextextended(key, 3) % 20 = 0 then 2 else 1 end as tries) as begun
    cross join lateral generate_series(1, tries) as try_no
) as try
