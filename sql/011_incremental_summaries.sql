-- Summaries that are renewed batch by batch. What was a materialized view, computed whole every time, is a table of
-- stored rows and a view of the same name and columns; the figures of a batch under a team are replaced in one
-- transaction, and cost that batch, not the history.
--
-- The definitions begin at batches and compute the rest beside it, row by row: whatever a query says about batch, team
-- or suite chooses rows of batches before anything is read of runs or events. Grouping sets over all batches would not
-- let such a condition in. "offset 0" keeps what is read of a run beside its run: joined freely, it is read whole wherever
-- the planner takes a few hundred look-ups for dearer than a table.

-- what all tries of a cell came to
create or replace view v_cell_usage as
select
    cell.batch_id,
    cell.team_id,
    cell.task_id,
    cell.attempt,
    usage.tries,
    usage.latency_ms,
    usage.all_tokens_in,
    usage.all_tokens_out,
    usage.all_tokens,
    usage.model_calls,
    usage.cost
from plan as cell
cross join lateral (
    select
        count(*)::integer as tries,
        sum(try.latency_ms)::bigint as latency_ms,
        sum(try.all_tokens_in)::bigint as all_tokens_in,
        sum(try.all_tokens_out)::bigint as all_tokens_out,
        (sum(try.all_tokens_in) + sum(try.all_tokens_out))::bigint as all_tokens,
        sum(try.model_calls)::bigint as model_calls,
        sum(try.cost) as cost
    from runs as try
    where (try.batch_id, try.team_id, try.task_id, try.attempt)
        = (cell.batch_id, cell.team_id, cell.task_id, cell.attempt)
    having count(*) > 0
) as usage;

-- The figures of a batch under a team: a row per level, and one for all levels, whose level is NULL. One definition
-- serves mv_batch_summary and v_batch_totals.
create or replace view v_summary_per_level_and_total as
select batch.batch_id, batch.team_id, summary.*
from batches as batch
cross join lateral (
    select
        task.level,
        count(*)::integer as planned,
        count(run.run_id)::integer as runs,
        coalesce(sum(usage.tries), 0)::integer as tries,
        count(*) filter (where run.status = 'completed')::integer as completed,
        count(*) filter (where run.status = 'crashed')::integer as crashed,
        count(*) filter (where run.status = 'running')::integer as running,
        count(*) filter (where run.success)::integer as successes,
        avg(run.success::integer)::double precision as pass_at_1,
        avg(run.success::integer)::double precision as pass_at_1_completed,
        count(*) filter (where run.success) / count(*)::double precision as pass_at_1_planned,
        avg((not run.format_valid)::integer)::double precision as format_invalid_rate,
        avg(coalesce(run.terminated_by = 'max_messages', false)::integer)
            filter (where run.status = 'completed')::double precision as loop_rate,
        sum(run.tokens_in)::bigint as tokens_in,
        sum(run.tokens_out)::bigint as tokens_out,
        sum(usage.all_tokens_in)::bigint as all_tokens_in,
        sum(usage.all_tokens_out)::bigint as all_tokens_out,
        sum(usage.all_tokens)::bigint as all_tokens,
        sum(usage.all_tokens)::double precision / nullif(count(*) filter (where run.success), 0) as tokens_per_success,
        coalesce(sum(usage.model_calls), 0)::bigint as model_calls,
        sum(usage.cost) as cost,
        percentile_cont(0.5) within group (order by usage.latency_ms)
            filter (where run.status = 'completed') as p50_latency_ms,
        percentile_cont(0.95) within group (order by usage.latency_ms)
            filter (where run.status = 'completed') as p95_latency_ms,
        avg(run.turns) filter (where run.status = 'completed')::double precision as mean_turns,
        coalesce(sum(run.tool_calls), 0)::bigint as tool_calls,
        coalesce(sum(run.tool_errors), 0)::bigint as tool_errors,
        coalesce(sum(run.events_dropped), 0)::bigint as events_dropped
    from plan as cell
    join tasks as task on task.task_id = cell.task_id and task.content_hash = cell.task_hash
    left join runs as run
        on run.live
        and (run.batch_id, run.team_id, run.task_id, run.attempt)
            = (batch.batch_id, batch.team_id, cell.task_id, cell.attempt)
    left join v_cell_usage as usage
        on (usage.batch_id, usage.team_id, usage.task_id, usage.attempt)
            = (batch.batch_id, batch.team_id, cell.task_id, cell.attempt)
    where (cell.batch_id, cell.team_id) = (batch.batch_id, batch.team_id)
    group by grouping sets ((task.level), ())
    -- the set of all levels is there without a single cell too
    having count(*) > 0
) as summary;

-- Per task, n is its completed attempts and c the right ones; a task counts for every k up to its own n. Again a row
-- per level and one, without a level, for all.
create or replace view v_passk_per_level_and_total as
select batch.batch_id, batch.team_id, passk.*
from batches as batch
cross join lateral (
    select
        level,
        k,
        count(*)::integer as tasks,
        avg(pass_at_k(n, c, k)) as pass_at_k,
        avg(pass_hat_k(n, c, k)) as pass_hat_k
    from (
        select
            task.level,
            run.task_id,
            count(*)::integer as n,
            count(*) filter (where run.success)::integer as c
        from runs as run
        join tasks as task on task.task_id = run.task_id and task.content_hash = run.task_hash
        where (run.batch_id, run.team_id) = (batch.batch_id, batch.team_id) and run.live and run.status = 'completed'
        group by task.level, run.task_id
    ) as attempts
    cross join lateral generate_series(1, n) as k
    group by grouping sets ((level, k), (k))
) as passk;

create view v_tool_totals as
select batch.batch_id, batch.team_id, tool.*
from batches as batch
cross join lateral (
    select
        event.tool_name,
        count(*) filter (where event.message_type = 'tool_call')::integer as calls,
        count(*) filter (where event.message_type = 'tool_error')::integer as errors,
        count(*) filter (where event.message_type = 'tool_error')::double precision
            / nullif(count(*) filter (where event.message_type = 'tool_call'), 0) as error_rate,
        percentile_cont(0.5) within group (order by event.latency_ms)
            filter (where event.message_type in ('tool_result', 'tool_error')) as p50_latency_ms
    from runs as run
    cross join lateral (
        select
            outcome.message_type,
            outcome.latency_ms,
            -- an outcome that does not name its tool is known by its call
            coalesce(outcome.tool_name, (
                select call.tool_name
                from events as call
                where call.run_id = run.run_id
                    and call.message_type = 'tool_call'
                    and call.tool_call_id = outcome.tool_call_id
                    and call.seq < outcome.seq
                order by call.seq desc
                limit 1
            )) as tool_name
        from events as outcome
        where outcome.run_id = run.run_id and outcome.message_type in ('tool_call', 'tool_result', 'tool_error')
        offset 0
    ) as event
    where (run.batch_id, run.team_id) = (batch.batch_id, batch.team_id) and run.live and event.tool_name is not null
    group by event.tool_name
) as tool;
comment on view v_tool_totals is 'The figures of mv_tool_summary, always fresh';

create or replace view v_run_metrics as
select run.batch_id, run.team_id, run.task_id, run.attempt, run.level, run.run_id, metric.name, metric.value
from runs as run
cross join lateral (
    select name, value
    from run_metrics
    where run_metrics.run_id = run.run_id and run_metrics.scorer_version = run.scorer_version
    offset 0
) as metric
where run.live;

create or replace view v_analysis_grounded as
select
    run.run_id,
    run.batch_id,
    run.team_id,
    run.task_id,
    run.attempt,
    run.level,
    run.scripted,
    run.success,
    run.format_valid,
    metric.number_grounding,
    metric.entity_grounding
from v_runs as run
cross join lateral (
    select
        max(value) filter (where name = 'number_grounding') as number_grounding,
        max(value) filter (where name = 'entity_grounding') as entity_grounding
    from run_metrics
    where run_metrics.run_id = run.run_id and run_metrics.scorer_version = run.scorer_version
) as metric
where run.benchmark = 'analysis' and run.status = 'completed';

create or replace view v_research_grounding as
select
    run.run_id,
    run.batch_id,
    run.team_id,
    run.task_id,
    run.attempt,
    run.level,
    run.scripted,
    run.success,
    grounding.scorer_version,
    grounding.evidence,
    grounding.claims,
    grounding.claims_cited,
    grounding.claims_supported,
    grounding.citations,
    grounding.citations_valid,
    grounding.citation_precision,
    grounding.citation_recall,
    grounding.grounding_f1,
    grounding.claims_cited / nullif(grounding.claims, 0)::double precision as citation_coverage,
    grounding.citations_valid / nullif(grounding.citations, 0)::double precision as citation_validity,
    grounding.details
from v_runs as run
cross join lateral (
    select *
    from research_grounding as row
    where row.run_id = run.run_id and row.scorer_version = run.scorer_version
    offset 0
) as grounding;

create or replace view v_cppx_grounding as
select
    run.run_id,
    run.batch_id,
    run.team_id,
    run.task_id,
    run.attempt,
    run.level,
    run.scripted,
    run.success,
    grounding.scorer_version,
    grounding.facts,
    grounding.facts_found,
    grounding.fact_ratio,
    grounding.forbidden_found,
    grounding.identifiers,
    grounding.identifiers_valid,
    grounding.identifier_precision,
    grounding.locations,
    grounding.locations_valid,
    grounding.location_precision,
    grounding.details
from v_runs as run
cross join lateral (
    select *
    from cppx_grounding as row
    where row.run_id = run.run_id and row.scorer_version = run.scorer_version
    offset 0
) as grounding;

create table stored_batch_summary (
    batch_id text not null,
    team_id text not null,
    level smallint not null,
    planned integer,
    runs integer,
    tries integer,
    completed integer,
    crashed integer,
    running integer,
    successes integer,
    pass_at_1 double precision,
    pass_at_1_completed double precision,
    pass_at_1_planned double precision,
    format_invalid_rate double precision,
    loop_rate double precision,
    tokens_in bigint,
    tokens_out bigint,
    all_tokens_in bigint,
    all_tokens_out bigint,
    all_tokens bigint,
    tokens_per_success double precision,
    model_calls bigint,
    cost double precision,
    p50_latency_ms double precision,
    p95_latency_ms double precision,
    mean_turns double precision,
    tool_calls bigint,
    tool_errors bigint,
    events_dropped bigint,
    primary key (batch_id, team_id, level),
    constraint stored_batch_summary_is_of_a_batch foreign key (batch_id, team_id) references batches on delete cascade
);
comment on table stored_batch_summary is 'The rows of mv_batch_summary as they were last renewed';

create table stored_passk (
    batch_id text not null,
    team_id text not null,
    level smallint not null,
    k integer not null,
    tasks integer,
    pass_at_k double precision,
    pass_hat_k double precision,
    primary key (batch_id, team_id, level, k),
    constraint stored_passk_is_of_a_batch foreign key (batch_id, team_id) references batches on delete cascade
);
comment on table stored_passk is 'The rows of mv_passk as they were last renewed';

create table stored_tool_summary (
    batch_id text not null,
    team_id text not null,
    tool_name text not null,
    calls integer,
    errors integer,
    error_rate double precision,
    p50_latency_ms double precision,
    primary key (batch_id, team_id, tool_name),
    constraint stored_tool_summary_is_of_a_batch foreign key (batch_id, team_id) references batches on delete cascade
);
comment on table stored_tool_summary is 'The rows of mv_tool_summary as they were last renewed';

alter materialized view mv_batch_summary rename to old_mv_batch_summary;
alter materialized view mv_passk rename to old_mv_passk;
alter materialized view mv_tool_summary rename to old_mv_tool_summary;

create view mv_batch_summary as
select batch.suite, batch.benchmark, batch.model, batch.scripted, batch.created_at, summary.*
from stored_batch_summary as summary
join batches as batch using (batch_id, team_id);
comment on view mv_batch_summary is 'Figures per batch, team and level';

create view mv_passk as
select batch_id, team_id, level, k, tasks, pass_at_k, pass_hat_k from stored_passk;
comment on view mv_passk is 'Unbiased pass@k and pass^k per batch, team and level; tasks is how many have k attempts';

create view mv_tool_summary as
select batch_id, team_id, tool_name, calls, errors, error_rate, p50_latency_ms from stored_tool_summary;
comment on view mv_tool_summary is 'Calls, errors and latency per batch, team and tool, over live tries';

-- who may read a summary may read it still
do $$
declare
    allowed record;
begin
    for allowed in
        select
            substr(class.relname, 5) as view,
            case when privilege.grantee = 0 then 'public' else quote_ident(pg_get_userbyid(privilege.grantee)) end as reader
        from pg_class as class
        cross join lateral aclexplode(class.relacl) as privilege
        where class.oid in (
            'old_mv_batch_summary'::regclass, 'old_mv_passk'::regclass, 'old_mv_tool_summary'::regclass
        )
            and privilege.privilege_type = 'SELECT'
            and privilege.grantee <> class.relowner
    loop
        execute format('grant select on %I to %s', allowed.view, allowed.reader);
    end loop;
end
$$;

drop materialized view old_mv_batch_summary;
drop materialized view old_mv_passk;
drop materialized view old_mv_tool_summary;

-- A row is only ever added, by the transaction that makes a summary stale, and taken away by the one that renews it: no
-- run waits for another one's, and what is committed while a summary is computed is not taken for known.
create table stale_summaries (
    stale_no bigint generated always as identity primary key,
    batch_id text not null,
    team_id text not null,
    summary text not null,
    constraint stale_summaries_is_of_a_batch foreign key (batch_id, team_id) references batches on delete cascade,
    constraint stale_summaries_summary_is_known check (summary in ('mv_batch_summary', 'mv_passk', 'mv_tool_summary'))
)
-- looked through every few seconds, and most of what was ever in it is gone
with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
comment on table stale_summaries is 'Which summaries of which batches have been overtaken by what was committed since';

create index stale_summaries_by_batch on stale_summaries (batch_id, team_id);

create function ended_try_makes_summaries_stale() returns trigger language plpgsql set search_path from current as $$
begin
    insert into stale_summaries (batch_id, team_id, summary) values
        (new.batch_id, new.team_id, 'mv_batch_summary'),
        (new.batch_id, new.team_id, 'mv_passk'),
        (new.batch_id, new.team_id, 'mv_tool_summary');
    return null;
end
$$;

create function changed_cells_make_summaries_stale() returns trigger language plpgsql set search_path from current as $$
begin
    insert into stale_summaries (batch_id, team_id, summary)
    select cell.batch_id, cell.team_id, summary
    from (select distinct batch_id, team_id from changed) as cell
    cross join unnest(array['mv_batch_summary', 'mv_passk', 'mv_tool_summary']) as summary;
    return null;
end
$$;

-- as the two above: a session that has another search path may end a run too
alter function forget_examinations() set search_path from current;

create trigger runs_ended_at_once_makes_summaries_stale
    after insert on runs for each row
    when (new.status <> 'running')
    execute function ended_try_makes_summaries_stale();

-- heartbeats and findings of rules change nothing that a summary shows
create trigger runs_ended_makes_summaries_stale
    after update on runs for each row
    when (
        new.status <> 'running'
        and (
            old.status, old.live, old.terminated_by, old.success, old.format_valid, old.latency_ms, old.turns,
            old.tool_calls, old.tool_errors, old.events_dropped, old.tokens_in, old.tokens_out, old.all_tokens_in,
            old.all_tokens_out, old.model_calls, old.cost
        )
        is distinct from (
            new.status, new.live, new.terminated_by, new.success, new.format_valid, new.latency_ms, new.turns,
            new.tool_calls, new.tool_errors, new.events_dropped, new.tokens_in, new.tokens_out, new.all_tokens_in,
            new.all_tokens_out, new.model_calls, new.cost
        )
    )
    execute function ended_try_makes_summaries_stale();

create trigger runs_taken_away_make_summaries_stale
    after delete on runs referencing old table as changed for each statement
    execute function changed_cells_make_summaries_stale();

create trigger plan_extended_makes_summaries_stale
    after insert on plan referencing new table as changed for each statement
    execute function changed_cells_make_summaries_stale();

create trigger plan_cut_down_makes_summaries_stale
    after delete on plan referencing old table as changed for each statement
    execute function changed_cells_make_summaries_stale();

-- Each renews one summary of a batch under a team. Two at once of the same batch wait for each other at its row; new
-- runs, which only refer to that row, do not wait. Compiling a statement takes longer than one batch does.

create function refresh_mv_batch_summary(of_batch text, of_team text) returns void
    language plpgsql set search_path from current set jit = off as $$
begin
    perform from batches where batch_id = of_batch and team_id = of_team for no key update;
    -- before anything is read: what becomes stale after this stays so
    delete from stale_summaries where batch_id = of_batch and team_id = of_team and summary = 'mv_batch_summary';
    delete from stored_batch_summary where batch_id = of_batch and team_id = of_team;
    insert into stored_batch_summary
    select * from v_summary_per_level_and_total
    where batch_id = of_batch and team_id = of_team and level is not null;
end
$$;
comment on function refresh_mv_batch_summary is 'Renews mv_batch_summary of one batch under one team';

create function refresh_mv_passk(of_batch text, of_team text) returns void
    language plpgsql set search_path from current set jit = off as $$
begin
    perform from batches where batch_id = of_batch and team_id = of_team for no key update;
    delete from stale_summaries where batch_id = of_batch and team_id = of_team and summary = 'mv_passk';
    delete from stored_passk where batch_id = of_batch and team_id = of_team;
    insert into stored_passk
    select * from v_passk_per_level_and_total
    where batch_id = of_batch and team_id = of_team and level is not null;
end
$$;
comment on function refresh_mv_passk is 'Renews mv_passk of one batch under one team';

create function refresh_mv_tool_summary(of_batch text, of_team text) returns void
    language plpgsql set search_path from current set jit = off as $$
begin
    perform from batches where batch_id = of_batch and team_id = of_team for no key update;
    delete from stale_summaries where batch_id = of_batch and team_id = of_team and summary = 'mv_tool_summary';
    delete from stored_tool_summary where batch_id = of_batch and team_id = of_team;
    insert into stored_tool_summary
    select * from v_tool_totals where batch_id = of_batch and team_id = of_team;
end
$$;
comment on function refresh_mv_tool_summary is 'Renews mv_tool_summary of one batch under one team';

insert into stored_batch_summary select * from v_summary_per_level_and_total where level is not null;
insert into stored_passk select * from v_passk_per_level_and_total where level is not null;
insert into stored_tool_summary select * from v_tool_totals;
