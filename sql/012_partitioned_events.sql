-- Events and model calls lie month by month, so that a month can be archived and dropped as a whole.
--
-- The key is the run id, whose first 48 bits are the milliseconds of its making (UUID version 7): a query for runs finds
-- their month without being told. Beside the months, each table has three partitions: ids below and above all months,
-- where those of version 4 lie, and the rest, for a month that nobody has made. What was there becomes the partition
-- above, after the few rows whose ids belong elsewhere have moved, so that the size of a database hardly counts. Views
-- are replaced in place, by their own text: what hangs on them, their privileges among it, stays.

create function first_run_id(moment timestamptz) returns uuid
    language sql immutable strict parallel safe as $$
    select (lpad(to_hex((extract(epoch from moment) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid
$$;
comment on function first_run_id(timestamptz) is 'The lowest id of a run that is made at that moment or later';

-- version 4 and 7 differ in two bits of byte 6, and in its first six bytes
create function new_run_id() returns uuid language sql volatile parallel safe as $$
    select encode(
        set_bit(set_bit(
            overlay(
                uuid_send(gen_random_uuid())
                placing substring(int8send((extract(epoch from clock_timestamp()) * 1000)::bigint) from 3)
                from 1 for 6
            ),
            52, 1
        ), 53, 1),
        'hex'
    )::uuid
$$;
comment on function new_run_id() is 'A UUID of version 7 (RFC 9562): milliseconds since 1970, then random';

alter table runs alter column run_id set default new_run_id();

-- The partitions of one month, where they are missing; who calls it sees to it that nobody else does at the same time.
-- Rows of that month that the rest has taken in meanwhile move. Writers to runs wait from the first lock on, which is a
-- matter of milliseconds as long as the rest is small, so the caller limits how long the locks may be waited for.
create function make_trace_month(first_day date) returns void language plpgsql as $$
declare
    parent text;
    month text;
    rest text;
    low uuid := first_run_id(first_day::timestamp at time zone 'UTC');
    high uuid := first_run_id((first_day + interval '1 month') at time zone 'UTC');
begin
    if extract(day from first_day) <> 1 or extract(year from first_day) not between 2020 and 2099 then
        raise exception '% is not the first day of a month of 2020 to 2099', first_day;
    end if;
    foreach parent in array array['events', 'model_calls'] loop
        month := format('%s_%s', parent, to_char(first_day, 'YYYY_MM'));
        rest := parent || '_rest';
        continue when exists (
            select from pg_inherits
            join pg_class as child on child.oid = inhrelid
            where inhparent = to_regclass(parent) and child.relname = month
        );
        execute format('create table %I (like %I including all)', month, parent);
        -- in the order in which a run writes to them, so that nobody waits for this and this for them
        lock table runs, texts, message_types in share row exclusive mode;
        execute format('lock table only %I in access exclusive mode', rest);
        execute format(
            'with moved as (delete from %I where run_id >= %L and run_id < %L returning *) '
            'insert into %I select * from moved',
            rest, low, high, month
        );
        execute format('alter table %I attach partition %I for values from (%L) to (%L)', parent, month, low, high);
    end loop;
end
$$;
comment on function make_trace_month(date) is 'Makes the partitions of a month of events and model calls';

create function lock_trace_month(first_day date) returns void language plpgsql as $$
begin
    execute format(
        'lock table %I, %I in share mode',
        'events_' || to_char(first_day, 'YYYY_MM'), 'model_calls_' || to_char(first_day, 'YYYY_MM')
    );
end
$$;
comment on function lock_trace_month(date) is 'Until the transaction ends, nobody changes a trace of that month';

create function drop_trace_month(first_day date) returns void language plpgsql as $$
declare
    parent text;
begin
    lock table only events, only model_calls in access exclusive mode;
    foreach parent in array array['events', 'model_calls'] loop
        execute format('drop table %I', format('%s_%s', parent, to_char(first_day, 'YYYY_MM')));
    end loop;
end
$$;
comment on function drop_trace_month(date) is 'Deletes the events and model calls of a month, which must be archived';

create table archived_months (
    month text primary key,
    first_id uuid not null,
    end_id uuid not null,
    folder text not null,
    manifest_sha256 text not null,
    events bigint not null,
    model_calls bigint not null,
    texts bigint not null,
    archived_at timestamptz not null default now(),
    dropped_at timestamptz,
    texts_dropped_at timestamptz,
    constraint archived_months_month_is_one check (month ~ '^20[2-9][0-9]-(0[1-9]|1[0-2])$'),
    constraint archived_months_range_is_in_order check (first_id < end_id),
    constraint archived_months_counts_are_not_negative check (least(events, model_calls, texts) >= 0),
    constraint archived_months_texts_go_last check (texts_dropped_at is null or dropped_at is not null)
);
comment on table archived_months is
    'Months whose traces are in files; from dropped_at on they are there only, until they are restored';

create table archived_accounting (
    batch_id text not null,
    team_id text not null,
    roles jsonb not null,
    handovers jsonb not null,
    endings jsonb not null,
    primary key (batch_id, team_id),
    constraint archived_accounting_is_of_a_batch foreign key (batch_id, team_id) references batches on delete cascade
);
comment on table archived_accounting is
    'Rows of v_role_accounting, v_handovers and v_endings of batches with an archived trace, as they were before';

-- as before, but for a batch with an archived trace: what was counted while the trace was here stays
create or replace function refresh_mv_tool_summary(of_batch text, of_team text) returns void
    language plpgsql set search_path from current as $$
begin
    perform from batches where batch_id = of_batch and team_id = of_team for no key update;
    delete from stale_summaries where batch_id = of_batch and team_id = of_team and summary = 'mv_tool_summary';
    if exists (
        select from runs
        join archived_months as away on run_id >= away.first_id and run_id < away.end_id
        where batch_id = of_batch and team_id = of_team and away.dropped_at is not null
    ) then
        return;
    end if;
    delete from stored_tool_summary where batch_id = of_batch and team_id = of_team;
    insert into stored_tool_summary
    select * from v_tool_totals where batch_id = of_batch and team_id = of_team;
end
$$;

create procedure pg_temp.grant_again(relation regclass, granted aclitem[]) language plpgsql as $$
declare
    one record;
begin
    for one in
        select
            privilege_type,
            is_grantable,
            case when grantee = 0 then 'public' else quote_ident(pg_get_userbyid(grantee)) end as grantee
        from aclexplode(granted)
        where grantee <> (select relowner from pg_class where oid = relation)
    loop
        execute format(
            'grant %s on %s to %s%s',
            one.privilege_type, relation, one.grantee,
            case when one.is_grantable then ' with grant option' else '' end
        );
    end loop;
end
$$;

create procedure pg_temp.partition_by_month(name text) language plpgsql as $$
declare
    above text := name || '_above';
    old pg_class;
    one record;
    views jsonb;
    materialized jsonb;
    indexes text[];
    keys jsonb;
    lowest uuid := first_run_id('2020-01-01 00:00+00');
    highest uuid := first_run_id('2100-01-01 00:00+00');
begin
    execute format('lock table %I in access exclusive mode', name);
    select * into strict old from pg_class where oid = to_regclass(name);

    -- what names the table by its identity, as text, which names it by its name
    if exists (select from pg_depend where refobjid = old.oid and classid = 'pg_proc'::regclass) then
        raise exception 'a function of your own is bound to table %; drop it and make it again afterwards', name;
    end if;
    select
        jsonb_agg(item) filter (where item ->> 'kind' = 'v'),
        jsonb_agg(item) filter (where item ->> 'kind' = 'm')
    into views, materialized
    from (
        select distinct jsonb_build_object(
            'kind', class.relkind,
            'name', class.oid::regclass::text,
            'owner', pg_get_userbyid(class.relowner),
            'text', pg_get_viewdef(class.oid),
            'options', array_to_string(class.reloptions, ', '),
            'comment', obj_description(class.oid, 'pg_class'),
            'grants', class.relacl::text,
            'indexes', (select jsonb_agg(pg_get_indexdef(indexrelid)) from pg_index where indrelid = class.oid)
        ) as item
        from pg_depend
        join pg_rewrite as rule on rule.oid = pg_depend.objid
        join pg_class as class on class.oid = rule.ev_class
        where pg_depend.refobjid = old.oid
            and pg_depend.classid = 'pg_rewrite'::regclass
            and class.oid <> old.oid
    ) as dependent;
    select array_agg(pg_get_indexdef(indexrelid)) into indexes
    from pg_index
    where indrelid = old.oid and not exists (select from pg_constraint where conindid = indexrelid);
    select jsonb_agg(jsonb_build_object('name', conname, 'text', pg_get_constraintdef(oid)) order by contype desc)
    into keys
    from pg_constraint
    where conrelid = old.oid and contype in ('p', 'f');

    for one in select jsonb_array_elements(materialized) as it loop
        execute format('drop materialized view %s', one.it ->> 'name');
    end loop;
    for one in select class.relname from pg_index join pg_class as class on class.oid = indexrelid where indrelid = old.oid
    loop
        execute format(
            'alter index %I rename to %I',
            one.relname,
            case when starts_with(one.relname, name) then above || substr(one.relname, length(name) + 1)
                else one.relname || '_above' end
        );
    end loop;
    execute format('alter table %I rename to %I', name, above);

    execute format(
        'create table %I (like %I including defaults including constraints including storage including comments) '
        'partition by range (run_id)',
        name, above
    );
    if pg_get_userbyid(old.relowner) <> current_user then
        execute format('alter table %I owner to %I', name, pg_get_userbyid(old.relowner));
    end if;
    call pg_temp.grant_again(to_regclass(name), old.relacl);
    execute format('comment on table %I is %L', name, obj_description(old.oid, 'pg_class'));
    for one in select jsonb_array_elements(keys) as it loop
        execute format('alter table %I add constraint %I %s', name, one.it ->> 'name', one.it ->> 'text');
    end loop;
    for position in 1 .. coalesce(cardinality(indexes), 0) loop
        execute indexes[position];
    end loop;

    execute format(
        'create table %I partition of %I for values from (minvalue) to (%L)', name || '_below', name, lowest
    );
    execute format('create table %I partition of %I default', name || '_rest', name);
    execute format(
        'with moved as (delete from %I where run_id < %L returning *) insert into %I select * from moved',
        above, highest, name
    );
    execute format('alter table %I attach partition %I for values from (%L) to (maxvalue)', name, above, highest);
    execute format('comment on table %I is %L', above, 'Rows of runs whose ids do not begin with a moment, mostly');

    for one in select jsonb_array_elements(views) as it loop
        execute format(
            'create or replace view %s%s as %s',
            one.it ->> 'name', ' with (' || (one.it ->> 'options') || ')', one.it ->> 'text'
        );
    end loop;
    for one in select jsonb_array_elements(materialized) as it loop
        execute format('create materialized view %s as %s', one.it ->> 'name', one.it ->> 'text');
        if one.it ->> 'owner' <> current_user then
            execute format('alter materialized view %s owner to %I', one.it ->> 'name', one.it ->> 'owner');
        end if;
        for position in 0 .. coalesce(jsonb_array_length(nullif(one.it -> 'indexes', 'null')), 0) - 1 loop
            execute one.it -> 'indexes' ->> position;
        end loop;
        execute format('comment on materialized view %s is %L', one.it ->> 'name', one.it ->> 'comment');
        call pg_temp.grant_again(to_regclass(one.it ->> 'name'), (one.it ->> 'grants')::aclitem[]);
    end loop;
    -- nobody else ever analyzes a table that has partitions
    execute format('analyze %I', name);
end
$$;

call pg_temp.partition_by_month('events');
call pg_temp.partition_by_month('model_calls');
drop procedure pg_temp.partition_by_month(text);
drop procedure pg_temp.grant_again(regclass, aclitem[]);

-- the month of now and two more, by UTC; launches and Dagster's daemon make the next ones
select make_trace_month((date_trunc('month', now() at time zone 'UTC') + ahead * interval '1 month')::date)
from generate_series(0, 2) as ahead;

-- From runs to their events, run by run. Left to itself the planner counts a look into every month for each run, since
-- that only one of them has any is known when the query runs; so it rather reads all events there are, and joins. An
-- offset keeps it from that. Ids and batches are the runs', so that a condition on them chooses runs first.

create or replace view v_trace as
select
    run.batch_id,
    run.team_id,
    run.task_id,
    run.attempt,
    run.try_no,
    run.live,
    run.run_id,
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
from runs as run
cross join lateral (select * from events where events.run_id = run.run_id offset 0) as event
left join texts as full_text on full_text.sha256 = event.content_sha256;

create or replace view v_model_calls as
select
    run.batch_id,
    run.team_id,
    run.task_id,
    run.attempt,
    run.try_no,
    run.live,
    run.run_id,
    call.call_no,
    call.role,
    call.kind,
    call.attempt as request_attempt,
    call.started_at,
    call.latency_ms,
    call.outcome,
    call.finish_reason,
    call.prompt_tokens,
    call.completion_tokens,
    call.http_status,
    call.error_class,
    call.error_message,
    call.model
from runs as run
cross join lateral (select * from model_calls where model_calls.run_id = run.run_id offset 0) as call;

create or replace view v_role_accounting as
select
    batch_id,
    team_id,
    role,
    coalesce(sum(model_calls), 0)::bigint as model_calls,
    coalesce(sum(failed_calls), 0)::bigint as failed_calls,
    sum(tokens_in)::bigint as tokens_in,
    sum(tokens_out)::bigint as tokens_out,
    (sum(tokens_in) + sum(tokens_out))::bigint as tokens,
    sum(cost) as cost,
    sum(latency_ms)::bigint as latency_ms,
    coalesce(sum(turns), 0)::bigint as turns,
    coalesce(sum(tool_calls), 0)::bigint as tool_calls,
    coalesce(sum(tool_errors), 0)::bigint as tool_errors,
    coalesce(sum(decisions), 0)::bigint as decisions,
    coalesce(sum(failed_decisions), 0)::bigint as failed_decisions
from (
    select
        batch_id,
        team_id,
        role,
        model_calls,
        failed_calls,
        tokens_in,
        tokens_out,
        latency_ms,
        -- prices are not stored, so a run's cost is shared out by tokens
        run_cost * (coalesce(tokens_in, 0) + coalesce(tokens_out, 0)) / nullif(run_tokens, 0) as cost,
        null::bigint as turns,
        null::bigint as tool_calls,
        null::bigint as tool_errors,
        null::bigint as decisions,
        null::bigint as failed_decisions
    from (
        select
            run.batch_id,
            run.team_id,
            run.run_id,
            run.cost as run_cost,
            call.role,
            count(*) as model_calls,
            count(*) filter (where call.outcome <> 'ok') as failed_calls,
            sum(call.prompt_tokens) as tokens_in,
            sum(call.completion_tokens) as tokens_out,
            sum(call.latency_ms) as latency_ms,
            sum(sum(coalesce(call.prompt_tokens, 0) + coalesce(call.completion_tokens, 0)))
                over (partition by run.batch_id, run.team_id, run.run_id) as run_tokens
        from runs as run
        cross join lateral (select * from model_calls where model_calls.run_id = run.run_id offset 0) as call
        group by run.batch_id, run.team_id, run.run_id, run.cost, call.role
    ) as asked
    union all
    select
        run.batch_id,
        run.team_id,
        event.source,
        null,
        null,
        null,
        null,
        null,
        null,
        count(*) filter (where event.message_type = 'agent_message'),
        count(*) filter (where event.message_type = 'tool_call'),
        count(*) filter (where event.message_type = 'tool_error'),
        count(*) filter (where event.message_type = 'selector_decision'),
        count(*) filter (where event.reason_code in ('PARSE_FAILED', 'FALLBACK'))
    from runs as run
    cross join lateral (
        select source, message_type, reason_code
        from events
        where events.run_id = run.run_id and source in ('planner', 'executor', 'critic', 'selector')
        offset 0
    ) as event
    group by run.batch_id, run.team_id, event.source
) as part
group by batch_id, team_id, role;

create or replace view v_handovers as
select
    batch_id,
    team_id,
    speaker,
    next_speaker,
    reason_code,
    count(*)::integer as handovers,
    count(distinct run_id)::integer as runs
from (
    select
        batch_id,
        team_id,
        run_id,
        message_type,
        reason_code,
        first_value(source) over (partition by batch_id, team_id, run_id, turn order by seq) as speaker,
        lead(message_type) over (partition by batch_id, team_id, run_id order by seq) as next_type,
        lead(source) over (partition by batch_id, team_id, run_id order by seq) as next_speaker
    from (
        select
            run.batch_id,
            run.team_id,
            run.run_id,
            event.seq,
            event.message_type,
            event.source,
            event.reason_code,
            -- decisions belong to the turn before them
            count(*) filter (where event.message_type <> 'selector_decision')
                over (partition by run.batch_id, run.team_id, run.run_id order by event.seq) as turn
        from runs as run
        cross join lateral (
            select seq, message_type, source, reason_code
            from events
            where events.run_id = run.run_id and message_type in ('agent_message', 'tool_call', 'selector_decision')
            offset 0
        ) as event
        where run.live
    ) as said
) as step
-- of several attempts at one choice, the last is the one that somebody's turn followed
where message_type = 'selector_decision' and next_type <> 'selector_decision'
group by batch_id, team_id, speaker, next_speaker, reason_code;

create or replace view v_tool_totals as
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
