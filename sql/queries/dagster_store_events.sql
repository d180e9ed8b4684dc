-- Rows of Dagster's event log out of one JSON text; their ids, in the order of the rows.
insert into event_logs (run_id, event, dagster_event_type, "timestamp", step_key, asset_key, partition)
select run_id, event, dagster_event_type, "timestamp", step_key, asset_key, partition
from json_to_recordset(cast(:rows as json)) as row (
    run_id text,
    event text,
    dagster_event_type text,
    "timestamp" timestamp,
    step_key text,
    asset_key text,
    partition text
)
returning id
