-- Everything that reports and dashboards read.
--
-- Runs are counted, not tries: a run is the live try of its cell. Usage, cost and latency are summed over all tries,
-- since they were all paid for. Rates that have nothing to divide by are NULL, never 0. Sums are cast, since
-- PostgreSQL's sum of bigint is a numeric.

-- what all tries of a cell came to
create view v_cell_usage as
select
    batch_id,
    team_id,
    task_id,
    attempt,
    count(*)::integer as tries,
    sum(latency_ms)::bigint as latency_ms,
    sum(all_tokens_in)::bigint as all_tokens_in,
    sum(all_tokens_out)::bigint as all_tokens_out,
    (sum(all_tokens_in) + sum(all_tokens_out))::bigint as all_tokens,
    sum(model_calls)::bigint as model_calls,
    sum(cost) as cost
from runs
group by batch_id, team_id, task_id, attempt;

create view v_runs as
select
    run.run_id,
    run.batch_id,
    run.team_id,
    run.task_id,
    run.attempt,
    run.try_no,
    run.task_hash,
    batch.suite,
    batch.benchmark,
    batch.provider,
    batch.model,
    batch.scripted,
    task.level,
    task.question,
    task.gold,
    task.file_name,
    task.requires_web,
    run.status,
    run.terminated_by,
    run.success,
    run.format_valid,
    run.final_answer,
    run.score_reason,
    run.scorer_version,
    run.error_class,
    run.error_message,
    run.failure_stage,
    run.started_at,
    run.heartbeat_at,
    run.finished_at,
    run.turns,
    run.tool_calls,
    run.tool_errors,
    run.selector_fallbacks,
    run.tokens_in,
    run.tokens_out,
    run.latency_ms,
    usage.tries,
    usage.latency_ms as all_latency_ms,
    usage.all_tokens_in,
    usage.all_tokens_out,
    usage.all_tokens,
    usage.model_calls,
    usage.cost,
    run.events_dropped,
    run.text_repairs,
    run.abandoned,
    run.sandbox_level,
    run.dagster_run_id,
    run.worker
from runs as run
join batches as batch using (batch_id, team_id)
join v_cell_usage as usage using (batch_id, team_id, task_id, attempt)
join tasks as task on task.task_id = run.task_id and task.content_hash = run.task_hash
where run.live;
comment on view v_runs is 'One row per run: its task, its verdict, and the usage of all its tries';

-- The figures of a batch under a team: a row per level, and one for all levels, whose level is NULL. One definition
-- serves mv_batch_summary and v_batch_totals.
create view v_summary_per_level_and_total as
select
    cell.batch_id,
    cell.team_id,
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
        = (cell.batch_id, cell.team_id, cell.task_id, cell.attempt)
left join v_cell_usage as usage
    on (usage.batch_id, usage.team_id, usage.task_id, usage.attempt)
        = (cell.batch_id, cell.team_id, cell.task_id, cell.attempt)
group by grouping sets ((cell.batch_id, cell.team_id, task.level), (cell.batch_id, cell.team_id));

create materialized view mv_batch_summary as
select
    batch.suite,
    batch.benchmark,
    batch.model,
    batch.scripted,
    batch.created_at,
    summary.*
from v_summary_per_level_and_total as summary
join batches as batch using (batch_id, team_id)
where summary.level is not null;
comment on materialized view mv_batch_summary is 'Figures per batch, team and level';

create unique index mv_batch_summary_key on mv_batch_summary (batch_id, team_id, level);

create view v_batch_totals as
select
    batch.suite,
    batch.benchmark,
    batch.model,
    batch.scripted,
    batch.created_at,
    summary.*
from v_summary_per_level_and_total as summary
join batches as batch using (batch_id, team_id)
where summary.level is null;
comment on view v_batch_totals is 'The figures of mv_batch_summary per batch and team, over all levels, always fresh';

-- Per task, n is its completed attempts and c the right ones; a task counts for every k up to its own n. Again a row
-- per level and one, without a level, for all.
create view v_passk_per_level_and_total as
select
    batch_id,
    team_id,
    level,
    k,
    count(*)::integer as tasks,
    avg(pass_at_k(n, c, k)) as pass_at_k,
    avg(pass_hat_k(n, c, k)) as pass_hat_k
from (
    select
        run.batch_id,
        run.team_id,
        task.level,
        run.task_id,
        count(*)::integer as n,
        count(*) filter (where run.success)::integer as c
    from runs as run
    join tasks as task on task.task_id = run.task_id and task.content_hash = run.task_hash
    where run.live and run.status = 'completed'
    group by run.batch_id, run.team_id, task.level, run.task_id
) as attempts
cross join lateral generate_series(1, n) as k
group by grouping sets ((batch_id, team_id, level, k), (batch_id, team_id, k));

create materialized view mv_passk as
select batch_id, team_id, level, k, tasks, pass_at_k, pass_hat_k
from v_passk_per_level_and_total
where level is not null;
comment on materialized view mv_passk is
    'Unbiased pass@k and pass^k per batch, team and level; tasks is how many have k attempts';

create unique index mv_passk_key on mv_passk (batch_id, team_id, level, k);

create view v_passk_totals as
select batch_id, team_id, k, tasks, pass_at_k, pass_hat_k
from v_passk_per_level_and_total
where level is null;
comment on view v_passk_totals is 'The figures of mv_passk per batch and team, over all levels, always fresh';

create materialized view mv_tool_summary as
select
    run.batch_id,
    run.team_id,
    event.tool_name,
    count(*) filter (where event.message_type = 'tool_call')::integer as calls,
    count(*) filter (where event.message_type = 'tool_error')::integer as errors,
    count(*) filter (where event.message_type = 'tool_error')::double precision
        / nullif(count(*) filter (where event.message_type = 'tool_call'), 0) as error_rate,
    percentile_cont(0.5) within group (order by event.latency_ms)
        filter (where event.message_type in ('tool_result', 'tool_error')) as p50_latency_ms
from (
    select
        outcome.run_id,
        outcome.message_type,
        outcome.latency_ms,
        -- an outcome that does not name its tool is known by its call
        coalesce(outcome.tool_name, (
            select call.tool_name
            from events as call
            where call.run_id = outcome.run_id
                and call.message_type = 'tool_call'
                and call.tool_call_id = outcome.tool_call_id
                and call.seq < outcome.seq
            order by call.seq desc
            limit 1
        )) as tool_name
    from events as outcome
    where outcome.message_type in ('tool_call', 'tool_result', 'tool_error')
) as event
join runs as run using (run_id)
where run.live and event.tool_name is not null
group by run.batch_id, run.team_id, event.tool_name;
comment on materialized view mv_tool_summary is 'Calls, errors and latency per batch, team and tool, over live tries';

create unique index mv_tool_summary_key on mv_tool_summary (batch_id, team_id, tool_name);

create view v_trace as
select
    run.batch_id,
    run.team_id,
    run.task_id,
    run.attempt,
    run.try_no,
    run.live,
    event.run_id,
    event.seq,
    event.ts,
    event.message_type,
    event.source,
    event.target,
    coalesce(full_text.body, event.content) as content,
    event.content_sha256 is not null as is_cut,
    event.content_length,
    event.tool_name,
    event.tool_call_id,
    event.tool_args,
    event.reason_code,
    event.payload,
    event.error,
    event.tokens_in,
    event.tokens_out,
    event.latency_ms
from events as event
join runs as run using (run_id)
left join texts as full_text on full_text.sha256 = event.content_sha256;
comment on view v_trace is 'Transcripts of all tries; content is the full text, also where the stored row was cut';

create view v_run_metrics as
select run.batch_id, run.team_id, run.task_id, run.attempt, run.level, run.run_id, metric.name, metric.value
from runs as run
join run_metrics as metric on metric.run_id = run.run_id and metric.scorer_version = run.scorer_version
where run.live;
comment on view v_run_metrics is 'Figures beside the verdict, of the scorer version that gave the verdict';

create view v_failures as
select
    case
        when status = 'crashed' then 'crashed'
        when not format_valid then 'no_valid_answer'
        else 'wrong'
    end as failure,
    run_id,
    batch_id,
    team_id,
    suite,
    benchmark,
    scripted,
    task_id,
    attempt,
    level,
    tries,
    error_class,
    error_message,
    failure_stage,
    terminated_by,
    final_answer,
    gold,
    score_reason,
    turns,
    tool_calls,
    tool_errors,
    finished_at
from v_runs
where status = 'crashed' or not success;
comment on view v_failures is 'Runs that crashed or were wrong, with error class and MAST failure stage';

create view v_team_config as
select
    team.team_id,
    team.parent_id,
    team.layer,
    team.changes,
    team.change,
    team.answers,
    team.prompt_bundle_hash,
    team.contract_hash,
    team.spec -> 'prompts' ->> 'planner' as planner_prompt,
    team.spec -> 'prompts' ->> 'executor' as executor_prompt,
    team.spec -> 'prompts' ->> 'critic' as critic_prompt,
    team.spec -> 'prompts' ->> 'selector' as selector_prompt,
    team.spec -> 'tools' as tools,
    team.spec ->> 'input' as input,
    team.spec ->> 'termination' as termination,
    team.registered_at,
    (select count(*) from batches as batch where batch.team_id = team.team_id)::integer as batches
from teams as team;
comment on view v_team_config is 'What each team is made of';

create view v_team_graph as
select
    child.parent_id,
    child.team_id,
    child.layer,
    child.changes,
    child.change,
    parent.prompt_bundle_hash = child.prompt_bundle_hash as same_prompts
from teams as child
left join teams as parent on parent.team_id = child.parent_id
where child.parent_id is not null;
comment on view v_team_graph is 'Which team extends which, and by what';

create view v_experiments as
select
    experiment.*,
    case
        when ci_low is null then 'open'
        when ci_low > 0 then 'promoted'
        when ci_high < 0 then 'rejected'
        else 'inconclusive'
    end as verdict
from experiments as experiment;
comment on view v_experiments is
    'The ledger with its verdicts, computed from the 95 % interval of the paired difference';

create view v_analysis_grounded as
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
    max(metric.value) filter (where metric.name = 'number_grounding') as number_grounding,
    max(metric.value) filter (where metric.name = 'entity_grounding') as entity_grounding
from v_runs as run
left join run_metrics as metric on metric.run_id = run.run_id and metric.scorer_version = run.scorer_version
where run.benchmark = 'analysis' and run.status = 'completed'
group by
    run.run_id, run.batch_id, run.team_id, run.task_id, run.attempt, run.level, run.scripted, run.success,
    run.format_valid;
comment on view v_analysis_grounded is
    'How much of an analysis stands in what the tools returned; never part of the verdict';

create view v_research_grounding as
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
join research_grounding as grounding
    on grounding.run_id = run.run_id and grounding.scorer_version = run.scorer_version;
comment on view v_research_grounding is
    'Claims and citations of research answers, of the scorer version that gave the verdict';

create view v_cppx_grounding as
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
join cppx_grounding as grounding
    on grounding.run_id = run.run_id and grounding.scorer_version = run.scorer_version;
comment on view v_cppx_grounding is
    'Facts, identifiers and locations of cppx answers, of the scorer version that gave the verdict';
