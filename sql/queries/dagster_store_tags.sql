-- The tags by which Dagster finds materializations again, out of one JSON text.
insert into asset_event_tags (event_id, asset_key, key, value, event_timestamp)
select event_id, asset_key, key, value, event_timestamp
from json_to_recordset(cast(:rows as json)) as row (
    event_id bigint,
    asset_key text,
    key text,
    value text,
    event_timestamp timestamp
)
