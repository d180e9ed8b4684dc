"""Dagster's event log, made for steps of thousands of partitions: many events in a few statements.

The stock log stores most events one by one, at five statements and 3 ms each, so that planning a step of 10,000 cells
takes half a minute. What the rows hold is Dagster's; only the way in is ours.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from dagster import AssetKey, DagsterEventType, EventLogEntry
from dagster._core.events import AssetMaterializationPlannedData
from dagster._core.storage.event_log.schema import AssetEventTagsTable
from dagster_postgres import PostgresEventLogStorage
from sqlalchemy import Connection

from eval_pipeline.db.sqlfiles import query

_PLANNED = DagsterEventType.ASSET_MATERIALIZATION_PLANNED
_MANY = frozenset({DagsterEventType.ASSET_MATERIALIZATION, DagsterEventType.ASSET_OBSERVATION, _PLANNED})
_AT_ONCE = 1000


class EventLog(PostgresEventLogStorage):
    """The stock event log, whose batches are batches."""

    _tables: frozenset[str] = frozenset()
    """Tables that are known to be there; the stock log looks into the catalog for every event."""

    def has_table(self, table_name: str) -> bool:
        if table_name in self._tables:
            return True
        found = super().has_table(table_name)
        if found:
            self._tables |= {table_name}
        return found

    def store_event_batch(self, events: Sequence[EventLogEntry]) -> None:
        """Store events in order; those of one asset may stand anywhere."""
        if not events or {event.dagster_event_type for event in events} - _MANY:
            super().store_event_batch(events)
            return
        for begin in range(0, len(events), _AT_ONCE):
            self._store_many(events[begin : begin + _AT_ONCE])

    def _store_many(self, events: Sequence[EventLogEntry]) -> None:
        rows = self._planned_rows(events) or [self._event_to_row(event) for event in events]
        with self._connect() as connection:
            ids = list(connection.execute(query("dagster_store_events"), {"rows": _as_json(rows)}).scalars())
        latest = {_asset_key(event): number for number, event in enumerate(events)}
        with self.index_transaction() as connection:
            # what is planned has no tags
            if any(event.dagster_event_type is not _PLANNED for event in events):
                self._store_asset_event_tags(connection, events, ids)
            # the order in which everybody locks these rows, or two workers lock each other out
            for _, number in sorted(latest.items(), key=lambda item: str(item[0])):
                self._store_asset_event(connection, events[number], ids[number])

    def _planned_rows(self, events: Sequence[EventLogEntry]) -> list[dict[str, Any]]:
        """The rows of one step's plan for one asset, which differ in partition and moment alone; else none.

        To write each out takes Dagster longer than all the rest of planning. The first row is the pattern, and the last
        is made both ways: if they differ, the pattern is not used.
        """
        first = events[0]
        if any(event.dagster_event_type is not _PLANNED or _apart(event) != _apart(first) for event in events):
            return []
        row = self._event_to_row(first)
        places = [json.dumps(_partition(first)), json.dumps(first.timestamp)]
        before, partition, rest = row["event"].partition(f'"partition": {places[0]}')
        between, moment, after = rest.partition(f'"timestamp": {places[1]}')
        if not partition or not moment:
            return []

        def filled(event: EventLogEntry) -> dict[str, Any]:
            key = _partition(event)
            text = f'{before}"partition": {json.dumps(key)}{between}"timestamp": {json.dumps(event.timestamp)}{after}'
            moment = self._event_insert_timestamp(event)  # type: ignore[no-untyped-call]
            return {**row, "event": text, "partition": key, "timestamp": moment}

        rows = [filled(event) for event in events]
        return rows if rows[-1] == self._event_to_row(events[-1]) else []

    def _store_asset_event_tags(
        self, conn: Connection, events: Sequence[EventLogEntry], event_ids: Sequence[int]
    ) -> None:
        rows = [
            {
                "event_id": event_id,
                "asset_key": key.to_string() if key else None,
                "key": name,
                "value": value,
                "event_timestamp": self._event_insert_timestamp(event),  # type: ignore[no-untyped-call]
            }
            for event_id, event in zip(event_ids, events, strict=True)
            for key in (_asset_key(event),)
            for name, value in self._tags_for_asset_event(event).items()
        ]
        # a storage that was made by an older Dagster and not migrated has no such table
        if rows and self.has_table(AssetEventTagsTable.name):
            conn.execute(query("dagster_store_tags"), {"rows": _as_json(rows)})


def _asset_key(event: EventLogEntry) -> AssetKey | None:
    if event.dagster_event_type is _PLANNED:
        # the same, past ten checks that Dagster makes of each event
        return _data(event).asset_key
    return event.get_dagster_event().asset_key


def _data(event: EventLogEntry) -> AssetMaterializationPlannedData:
    return cast("AssetMaterializationPlannedData", event.get_dagster_event().event_specific_data)


def _partition(event: EventLogEntry) -> str | None:
    partition = _data(event).partition
    return None if partition is None else str(partition)


def _apart(event: EventLogEntry) -> tuple[object, ...]:
    """What the rows of a plan must have in common."""
    planned = event.get_dagster_event()
    return event.run_id, event.level, event.user_message, event.job_name, _data(event).asset_key, planned.message


def _as_json(rows: Sequence[Mapping[str, object]]) -> str:
    return json.dumps(rows, default=lambda moment: moment.isoformat() if isinstance(moment, datetime) else str(moment))
