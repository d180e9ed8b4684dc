"""Dagster's events in batches leave the same rows as one by one, and say the same to whoever asks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import dagster as dg
import pytest
from dagster._core.events import AssetMaterializationPlannedData, DagsterEvent, StepMaterializationData
from sqlalchemy import text

from eval_pipeline.db.event_log import EventLog

RUNS, EVENTS = dg.AssetKey(["grid", "runs"]), dg.AssetKey(["grid", "events"])
PARTITIONS = ["b@t|x#1", "b@t|가나#2", 'b@t|"quoted"#3', "b@t|timestamp: 1#4", 'b@t|"partition": "b@t|x#1"#5']
STORED = text(
    'select event, dagster_event_type, step_key, asset_key, partition, "timestamp" from event_logs'
    " where run_id = :run order by id"
)


def entry(event: DagsterEvent, number: int, run_id: str) -> dg.EventLogEntry:
    return dg.EventLogEntry(  # type: ignore[no-untyped-call]
        error_info=None,
        level=10,
        user_message="",
        run_id=run_id,
        timestamp=1_796_000_000.125 + number,
        step_key="step",
        job_name="job",
        dagster_event=event,
    )


def planned(asset: dg.AssetKey, run_id: str) -> list[dg.EventLogEntry]:
    return [
        entry(
            DagsterEvent.build_asset_materialization_planned_event(
                "job", "step", AssetMaterializationPlannedData(asset, partition=key, partitions_subset=None)
            ),
            number,
            run_id,
        )
        for number, key in enumerate(PARTITIONS)
    ]


def materialized(asset: dg.AssetKey, run_id: str) -> list[dg.EventLogEntry]:
    def event(key: str) -> DagsterEvent:
        batch_team, _, task_attempt = key.partition("|")
        tags = {
            "dagster/partition/batch_team": batch_team,
            "dagster/partition/task_attempt": task_attempt,
            "dagster/data_version": key,
        }
        materialization = dg.AssetMaterialization(asset, partition=key, tags=tags, metadata={"answer": "네\0"})
        return DagsterEvent(
            event_type_value="ASSET_MATERIALIZATION",
            job_name="job",
            event_specific_data=StepMaterializationData(materialization),
            message="Materialized value.",
        )

    return [entry(event(key), number, run_id) for number, key in enumerate(PARTITIONS)]


def log_of(instance: dg.DagsterInstance) -> EventLog:
    log = instance.event_log_storage
    assert isinstance(log, EventLog)
    return log


def rows(log: EventLog, run_id: str) -> list[tuple[Any, ...]]:
    with log.index_connection() as connection:
        found = connection.execute(STORED, {"run": run_id}).all()
    return [(json.loads(row[0].replace(run_id, "run")), *row[1:]) for row in found]


def tags(log: EventLog, run_id: str) -> list[tuple[Any, ...]]:
    query = text(
        "select tag.asset_key, key, value, event_timestamp from asset_event_tags as tag"
        " join event_logs on event_logs.id = event_id where run_id = :run order by event_id, key"
    )
    with log.index_connection() as connection:
        return [tuple(row) for row in connection.execute(query, {"run": run_id})]


@pytest.mark.parametrize("events_of", [planned, materialized])
def test_a_batch_leaves_the_rows_that_single_events_leave(instance: dg.DagsterInstance, events_of: Any) -> None:
    log = log_of(instance)
    for event in events_of(RUNS, "run-1"):
        log.store_event(event)
    log.store_event_batch(events_of(RUNS, "run-2"))
    assert rows(log, "run-2") == rows(log, "run-1")
    assert len(rows(log, "run-2")) == len(PARTITIONS)
    assert tags(log, "run-2") == tags(log, "run-1")
    assert bool(tags(log, "run-2")) == (events_of is materialized)


def test_a_batch_of_two_assets_is_the_latest_of_each(instance: dg.DagsterInstance) -> None:
    log = log_of(instance)
    mixed: list[dg.EventLogEntry] = []
    for runs, events in zip(materialized(RUNS, "run"), materialized(EVENTS, "run"), strict=True):
        mixed += [runs, events]
    log.store_event_batch(mixed)
    for asset in (RUNS, EVENTS):
        assert instance.get_materialized_partitions(asset) == set(PARTITIONS)
        (record,) = instance.get_asset_records([asset])
        assert record.asset_entry.last_materialization is not None
        assert record.asset_entry.last_materialization.get_dagster_event().partition == PARTITIONS[-1]


def test_plans_of_several_assets_in_one_batch_are_told_apart(instance: dg.DagsterInstance) -> None:
    log = log_of(instance)
    log.store_event_batch([*planned(RUNS, "run"), *planned(EVENTS, "run")])
    stored = rows(log, "run")
    assert [row[4] for row in stored] == PARTITIONS * 2
    assert [row[3] for row in stored] == [asset.to_string() for asset in (RUNS, EVENTS) for _ in PARTITIONS]


def test_thousands_are_stored_in_their_order(instance: dg.DagsterInstance) -> None:
    log = log_of(instance)
    keys = [f"b@t|task-{number}#1" for number in range(2500)]
    events: Sequence[dg.EventLogEntry] = [
        entry(
            DagsterEvent.build_asset_materialization_planned_event(
                "job", "step", AssetMaterializationPlannedData(RUNS, partition=key, partitions_subset=None)
            ),
            number,
            "run",
        )
        for number, key in enumerate(keys)
    ]
    log.store_event_batch(events)
    assert [row[4] for row in rows(log, "run")] == keys


def test_an_empty_batch_is_nothing(instance: dg.DagsterInstance) -> None:
    log = log_of(instance)
    log.store_event_batch([])
    assert rows(log, "run") == []
