-- Whether an endpoint still takes our calls: consecutive quota and auth failures, counted over all workers of all
-- batches. A circuit that is open lets no further run start; a launch by a person closes it.

create table circuits (
    endpoint text primary key,
    failures integer not null default 0,
    error_class text,
    error_message text,
    opened_at timestamptz,
    updated_at timestamptz not null default now(),
    constraint circuits_failures_not_negative check (failures >= 0),
    constraint circuits_open_has_a_reason check (opened_at is null or error_class is not null)
);
comment on table circuits is 'Per endpoint: consecutive quota and auth failures, and since when no further run starts';
