-- Tables, constraints and functions.
--
-- Correctness lives in the constraints: they hold for whatever writes rows, whichever way it came. Their names say the
-- rule, since a name is what an error shows. Whatever a view sums is a typed column, never a value inside JSON.
-- No schema is named: the session's search path says where all this goes.

create table tasks (
    task_id text not null,
    content_hash text not null,
    benchmark text not null,
    level smallint not null,
    question text not null,
    gold text not null default '',
    file_name text,
    file_sha256 text,
    file_size bigint,
    requires_web boolean not null default false,
    extra jsonb not null default '{}',
    loaded_at timestamptz not null default now(),
    primary key (task_id, content_hash),
    constraint tasks_level_is_not_negative check (level >= 0),
    constraint tasks_file_is_whole_or_absent check (num_nulls(file_name, file_sha256, file_size) in (0, 3)),
    constraint tasks_file_size_is_not_negative check (file_size >= 0)
);
comment on table tasks is 'One row per task and content: an edited task is a new row, old runs keep theirs';

create table teams (
    team_id text primary key,
    -- not a foreign key: a team can be run without its parent ever having been
    parent_id text,
    layer text,
    changes jsonb not null default '[]',
    change text not null default '',
    answers text not null,
    prompt_bundle_hash text not null,
    contract_hash text not null,
    spec jsonb not null,
    registered_at timestamptz not null default now(),
    constraint teams_answers_is_line_or_text check (answers in ('line', 'text')),
    constraint teams_is_not_its_own_parent check (parent_id <> team_id),
    constraint teams_changes_is_a_list check (jsonb_typeof(changes) = 'array'),
    constraint teams_spec_is_an_object check (jsonb_typeof(spec) = 'object')
);
comment on table teams is 'One row per version of the agent team; what decides its runs never changes under one id';

create table batches (
    batch_id text not null,
    team_id text not null,
    suite text not null,
    benchmark text not null,
    suite_hash text not null,
    contract jsonb not null,
    contract_hash text not null,
    info jsonb not null default '{}',
    provider text not null,
    model text not null,
    scripted boolean not null,
    created_at timestamptz not null default now(),
    primary key (batch_id, team_id),
    constraint batches_team_is_registered
        foreign key (team_id) references teams on delete restrict on update restrict,
    constraint batches_contract_is_an_object check (jsonb_typeof(contract) = 'object')
);
comment on table batches is 'One row per batch and team: the contract that its first launch fixed';

create index batches_by_team on batches (team_id);

create table plan (
    batch_id text not null,
    team_id text not null,
    task_id text not null,
    attempt integer not null,
    task_hash text not null,
    planned_at timestamptz not null default now(),
    primary key (batch_id, team_id, task_id, attempt),
    constraint plan_batch_is_frozen
        foreign key (batch_id, team_id) references batches on delete restrict on update restrict,
    constraint plan_task_is_stored
        foreign key (task_id, task_hash) references tasks on delete restrict on update restrict,
    constraint plan_attempt_is_1_to_9999 check (attempt between 1 and 9999)
);
comment on table plan is 'Every cell that a launch of the batch ever asked for: the denominator of planned';

create index plan_by_task on plan (task_id, task_hash);

create table runs (
    run_id uuid primary key default gen_random_uuid(),
    batch_id text not null,
    team_id text not null,
    task_id text not null,
    attempt integer not null,
    try_no integer not null default 1,
    live boolean not null default true,
    task_hash text not null,
    level smallint not null,
    status text not null default 'running',
    terminated_by text,
    success boolean,
    format_valid boolean,
    final_answer text,
    score_reason text,
    scorer_version text,
    error_class text,
    error_message text,
    failure_stage text,
    started_at timestamptz not null default now(),
    heartbeat_at timestamptz not null default now(),
    finished_at timestamptz,
    latency_ms bigint,
    turns integer not null default 0,
    tool_calls integer not null default 0,
    tool_errors integer not null default 0,
    selector_fallbacks integer not null default 0,
    -- NULL is unknown, such as from an endpoint that reports no usage; it is never a zero
    tokens_in bigint,
    tokens_out bigint,
    all_tokens_in bigint,
    all_tokens_out bigint,
    model_calls integer not null default 0,
    cost double precision,
    events_dropped integer not null default 0,
    text_repairs integer not null default 0,
    abandoned boolean not null default false,
    sandbox_level text,
    dagster_run_id text,
    worker text,
    constraint runs_cell_is_planned
        foreign key (batch_id, team_id, task_id, attempt) references plan on delete restrict on update restrict,
    constraint runs_task_is_stored
        foreign key (task_id, task_hash) references tasks on delete restrict on update restrict,
    constraint runs_try_no_is_unique unique (batch_id, team_id, task_id, attempt, try_no),
    constraint runs_try_no_counts_from_1 check (try_no >= 1),
    constraint runs_level_is_not_negative check (level >= 0),
    constraint runs_status_is_known check (status in ('running', 'completed', 'crashed')),
    constraint runs_terminated_by_is_known
        check (terminated_by in ('approve', 'max_messages', 'timeout', 'token_limit')),
    constraint runs_error_class_is_known check (error_class in (
        'rate_limit', 'quota', 'auth', 'content_filter', 'timeout', 'connection', 'server_error', 'bad_response',
        'tool', 'team', 'interrupted', 'database', 'unknown'
    )),
    constraint runs_running_has_not_ended check (
        status <> 'running'
        or num_nonnulls(finished_at, success, format_valid, terminated_by, error_class) = 0
    ),
    constraint runs_completed_needs_verdict check (
        status <> 'completed' or num_nulls(success, format_valid, finished_at) = 0
    ),
    constraint runs_completed_has_no_error check (status <> 'completed' or error_class is null),
    constraint runs_crashed_needs_error_class check (
        status <> 'crashed' or num_nulls(error_class, finished_at) = 0
    ),
    -- an infrastructure failure must never look like a wrong answer
    constraint runs_crashed_has_no_verdict check (status <> 'crashed' or num_nonnulls(success, format_valid) = 0),
    constraint runs_superseded_try_has_crashed check (live or status = 'crashed'),
    constraint runs_counts_are_not_negative check (
        least(
            latency_ms, turns, tool_calls, tool_errors, selector_fallbacks, tokens_in, tokens_out, all_tokens_in,
            all_tokens_out, model_calls, events_dropped, text_repairs
        ) >= 0
    ),
    constraint runs_cost_is_a_finite_amount check (cost >= 0 and cost < 'infinity')
);
comment on table runs is 'One row per try; the live one of a cell is its run, earlier tries are kept';

create unique index runs_one_live_try on runs (batch_id, team_id, task_id, attempt) where live;
create index runs_by_team on runs (team_id, status);
create index runs_by_task on runs (task_id, task_hash);
create index runs_under_way on runs (heartbeat_at) where status = 'running';

create table message_types (
    name text primary key,
    meaning text not null
);
comment on table message_types is 'What a row of a trace can be';

insert into message_types (name, meaning) values
    ('agent_message', 'a text of an agent, or the run message of the user'),
    ('tool_call', 'a call that a model asked for'),
    ('tool_result', 'what a called tool returned'),
    ('tool_error', 'a called tool failed, or its call was cut off'),
    ('selector_decision', 'who the selector chose to speak next, and why'),
    ('final_answer', 'the end of the run with the answer that was captured'),
    ('handoff', 'an agent passed the task to another'),
    ('evaluator_score', 'a score that an evaluator inside the team gave');

create table texts (
    sha256 text primary key,
    body text not null,
    length bigint not null,
    stored_at timestamptz not null default now(),
    constraint texts_sha256_is_of_the_body check (sha256 = encode(sha256(convert_to(body, 'UTF8')), 'hex')),
    constraint texts_length_is_of_the_body check (length = char_length(body))
);
comment on table texts is 'Full texts, masked, of what was cut for a row of a trace, each stored once';

create table events (
    run_id uuid not null constraint events_run_is_stored references runs on delete cascade,
    seq integer not null,
    ts timestamptz not null default now(),
    message_type text not null constraint events_message_type_is_known references message_types,
    source text,
    target text,
    content text,
    content_sha256 text constraint events_full_text_is_kept references texts,
    content_length bigint,
    tool_name text,
    tool_call_id text,
    tool_args jsonb,
    reason_code text,
    payload jsonb,
    error jsonb,
    tokens_in integer,
    tokens_out integer,
    latency_ms bigint,
    primary key (run_id, seq),
    constraint events_seq_counts_from_0 check (seq >= 0),
    constraint events_tool_call_needs_name_and_id check (
        message_type <> 'tool_call' or num_nulls(tool_name, tool_call_id) = 0
    ),
    constraint events_tool_outcome_needs_call_id check (
        message_type not in ('tool_result', 'tool_error') or tool_call_id is not null
    ),
    constraint events_tool_error_needs_error check (
        message_type <> 'tool_error' or (error is not null and jsonb_typeof(error) <> 'null')
    ),
    constraint events_selector_decision_needs_reason check (
        message_type <> 'selector_decision' or reason_code is not null
    ),
    constraint events_cut_content_keeps_its_length check (content_sha256 is null or content_length is not null),
    constraint events_content_is_cut check (
        char_length(content) <= case when message_type = 'tool_result' then 2048 else 8192 end
    ),
    -- a model can ask for a tool by any text, and this one is indexed
    constraint events_tool_name_is_short check (char_length(tool_name) <= 256),
    constraint events_counts_are_not_negative check (least(content_length, tokens_in, tokens_out, latency_ms) >= 0)
);
comment on table events is 'The trace: one row per event of a try, numbered from 0';

create index events_by_type on events (message_type, run_id);
create index events_by_tool on events (tool_name, message_type, run_id) where tool_name is not null;
create index events_by_full_text on events (content_sha256) where content_sha256 is not null;

create table model_calls (
    run_id uuid not null constraint model_calls_run_is_stored references runs on delete cascade,
    call_no integer not null,
    role text not null,
    kind text not null,
    attempt integer not null default 1,
    started_at timestamptz not null default now(),
    latency_ms bigint not null,
    outcome text not null,
    finish_reason text,
    prompt_tokens integer,
    completion_tokens integer,
    http_status integer,
    error_class text,
    error_message text,
    model text,
    primary key (run_id, call_no),
    constraint model_calls_role_is_known check (role in ('planner', 'executor', 'critic', 'selector')),
    constraint model_calls_kind_is_known check (kind in ('turn', 'tool_loop', 'reflection', 'selection')),
    constraint model_calls_outcome_is_known check (outcome in ('ok', 'error', 'cancelled')),
    constraint model_calls_attempt_counts_from_1 check (attempt >= 1),
    constraint model_calls_error_class_is_known check (error_class in (
        'rate_limit', 'quota', 'auth', 'content_filter', 'timeout', 'connection', 'server_error', 'bad_response',
        'tool', 'team', 'interrupted', 'database', 'unknown'
    )),
    constraint model_calls_error_needs_class check (outcome <> 'error' or error_class is not null),
    constraint model_calls_counts_are_not_negative check (
        least(call_no, latency_ms, prompt_tokens, completion_tokens, http_status) >= 0
    )
);
comment on table model_calls is 'Every request to the model, those that the stream does not show and failed ones too';

create index model_calls_by_error on model_calls (error_class) where error_class is not null;

create table run_metrics (
    run_id uuid not null constraint run_metrics_run_is_stored references runs on delete cascade,
    name text not null,
    scorer_version text not null,
    value double precision not null,
    primary key (run_id, name, scorer_version),
    -- one NaN would be the average of a whole batch
    constraint run_metrics_value_is_finite check (value > '-infinity' and value < 'infinity')
);
comment on table run_metrics is 'Figures of a scorer beside its verdict, per version of the scorer';

create table research_grounding (
    run_id uuid not null constraint research_grounding_run_is_stored references runs on delete cascade,
    scorer_version text not null,
    evidence integer not null,
    claims integer not null,
    claims_cited integer not null,
    claims_supported integer not null,
    citations integer not null,
    citations_valid integer not null,
    citation_precision double precision,
    citation_recall double precision,
    grounding_f1 double precision,
    details jsonb not null default '{}',
    primary key (run_id, scorer_version),
    constraint research_grounding_counts_are_not_negative check (
        least(evidence, claims, claims_cited, claims_supported, citations, citations_valid) >= 0
    ),
    constraint research_grounding_parts_fit_the_whole check (
        claims_cited <= claims and claims_supported <= claims and citations_valid <= citations
    ),
    constraint research_grounding_shares_are_0_to_1 check (
        citation_precision between 0 and 1 and citation_recall between 0 and 1 and grounding_f1 between 0 and 1
    )
);

create table cppx_grounding (
    run_id uuid not null constraint cppx_grounding_run_is_stored references runs on delete cascade,
    scorer_version text not null,
    facts integer not null,
    facts_found integer not null,
    fact_ratio double precision,
    forbidden_found integer not null,
    identifiers integer not null,
    identifiers_valid integer not null,
    identifier_precision double precision,
    locations integer not null,
    locations_valid integer not null,
    location_precision double precision,
    details jsonb not null default '{}',
    primary key (run_id, scorer_version),
    constraint cppx_grounding_counts_are_not_negative check (
        least(facts, facts_found, forbidden_found, identifiers, identifiers_valid, locations, locations_valid) >= 0
    ),
    constraint cppx_grounding_parts_fit_the_whole check (
        facts_found <= facts and identifiers_valid <= identifiers and locations_valid <= locations
    ),
    constraint cppx_grounding_shares_are_0_to_1 check (
        fact_ratio between 0 and 1 and identifier_precision between 0 and 1 and location_precision between 0 and 1
    )
);

create table experiments (
    experiment_id text primary key,
    hypothesis text not null,
    layer text not null,
    -- not foreign keys: the ledger is written before anything has run
    team_before text not null,
    team_after text not null,
    suite text,
    batch_before text,
    batch_after text,
    tasks_compared integer,
    difference double precision,
    ci_low double precision,
    ci_high double precision,
    opened_at timestamptz not null default now(),
    closed_at timestamptz,
    constraint experiments_teams_differ check (team_before <> team_after),
    constraint experiments_tasks_compared_is_not_negative check (tasks_compared >= 0),
    constraint experiments_figures_come_together check (num_nulls(difference, ci_low, ci_high) in (0, 3)),
    constraint experiments_interval_is_in_order check (ci_low <= ci_high),
    constraint experiments_figures_are_differences check (
        difference between -1 and 1 and ci_low between -1 and 1 and ci_high between -1 and 1
    )
);
comment on table experiments is 'The ledger: one hypothesis per row; its verdict is computed by v_experiments';

create function refuse_changed_team() returns trigger language plpgsql as $$
begin
    raise exception
        'team % is registered with another content, which cannot be changed; give the changed team a new id',
        quote_literal(old.team_id)
        using errcode = 'check_violation', constraint = 'teams_content_is_immutable', table = 'teams';
end
$$;

create trigger teams_content_is_immutable
    before update on teams for each row
    when (
        (old.team_id, old.answers, old.prompt_bundle_hash, old.contract_hash, old.spec)
        is distinct from (new.team_id, new.answers, new.prompt_bundle_hash, new.contract_hash, new.spec)
    )
    execute function refuse_changed_team();

create function refuse_changed_contract() returns trigger language plpgsql as $$
begin
    raise exception
        'the contract of batch % under team % is fixed and cannot be changed; start a new batch',
        quote_literal(old.batch_id), quote_literal(old.team_id)
        using errcode = 'check_violation', constraint = 'batches_contract_is_immutable', table = 'batches';
end
$$;

-- what a launch records for information only may change, the rest may not
create trigger batches_contract_is_immutable
    before update on batches for each row
    when (
        (
            old.batch_id, old.team_id, old.suite, old.benchmark, old.suite_hash, old.contract, old.contract_hash,
            old.provider, old.model, old.scripted
        )
        is distinct from (
            new.batch_id, new.team_id, new.suite, new.benchmark, new.suite_hash, new.contract, new.contract_hash,
            new.provider, new.model, new.scripted
        )
    )
    execute function refuse_changed_contract();

-- Unbiased pass@k of one task with n attempts, c of them right (Chen et al. 2021, arXiv 2107.03374):
-- 1 - C(n-c, k) / C(n, k), as a product so that no binomial overflows. NULL where k > n: nothing can be said then.
create function pass_at_k(n integer, c integer, k integer) returns double precision
    language plpgsql immutable strict parallel safe as $$
declare
    all_wrong double precision := 1;
begin
    if k < 1 or k > n or c < 0 or c > n then
        return null;
    end if;
    if n - c < k then
        return 1;
    end if;
    for i in n - c + 1 .. n loop
        all_wrong := all_wrong * (1 - k::double precision / i);
    end loop;
    return 1 - all_wrong;
end
$$;

-- Unbiased pass^k, the chance that k attempts are all right (Yao et al. 2024, arXiv 2406.12045): C(c, k) / C(n, k).
create function pass_hat_k(n integer, c integer, k integer) returns double precision
    language plpgsql immutable strict parallel safe as $$
declare
    all_right double precision := 1;
begin
    if k < 1 or k > n or c < 0 or c > n then
        return null;
    end if;
    for i in 0 .. k - 1 loop
        all_right := all_right * greatest(c - i, 0) / (n - i);
    end loop;
    return all_right;
end
$$;
