-- A role that may read the views of the pipeline and nothing else. Run it as the owner of the schema, after
-- `eval-pipeline init-db` and after every upgrade that brings new views; it may be repeated. Then give it a password:
--
--   psql "$EVAL_PG_DSN" -f reader_role.sql
--   psql "$EVAL_PG_DSN" -c '\password grafana_reader'
--
-- The schema is the first of the session's search path, or eval_ph1. A view is read with the rights of its owner, so
-- the role needs none on the tables.

do $$
declare
    place text := 'eval_ph1';
    relation record;
begin
    if to_regclass('v_runs') is not null then
        select namespace.nspname into place
        from pg_class as class
        join pg_namespace as namespace on namespace.oid = class.relnamespace
        where class.oid = to_regclass('v_runs');
    end if;
    begin
        create role grafana_reader login nosuperuser nocreatedb nocreaterole noinherit connection limit 20;
    exception when duplicate_object or unique_violation then
        null;
    end;
    execute format('grant connect on database %I to grafana_reader', current_database());
    execute format('grant usage on schema %I to grafana_reader', place);
    execute format('revoke all on all tables in schema %I from grafana_reader', place);
    for relation in
        select class.relname
        from pg_class as class
        join pg_namespace as namespace on namespace.oid = class.relnamespace
        where namespace.nspname = place and class.relkind in ('v', 'm') and class.relname ~ '^(v|mv)_'
    loop
        execute format('grant select on %I.%I to grafana_reader', place, relation.relname);
    end loop;
    execute format('alter role grafana_reader in database %I set search_path = %I', current_database(), place);
    execute format('alter role grafana_reader in database %I set default_transaction_read_only = on', current_database());
    execute format('alter role grafana_reader in database %I set statement_timeout = %L', current_database(), '30s');
end
$$;
