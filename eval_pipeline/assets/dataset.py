"""``<suite>/dataset``: files to rows, and the task keys of the suite's grid."""

# no postponed annotations here: Dagster reads the type of a step's context at import
from collections import Counter

import dagster as dg

from eval_pipeline.assets.common import OWNERS, database, one_line_errors
from eval_pipeline.assets.lease import LEASE
from eval_pipeline.assets.partitions import Family
from eval_pipeline.execution.contract import store_tasks
from eval_pipeline.ids import TaskAttempt
from eval_pipeline.markdown import table
from eval_pipeline.settings import load_settings
from eval_pipeline.suites import LoadedSuite, Suite, load_tasks

_BACKFILL_OVER = frozenset({"COMPLETED", "FAILED", "CANCELED", "COMPLETED_SUCCESS", "COMPLETED_FAILED"})


def cell_keys(loaded: LoadedSuite) -> list[str]:
    """The suite's ``task#attempt`` keys in its own order, attempts inside."""
    return [
        TaskAttempt(task.task_id, attempt).key
        for task in loaded.tasks
        for attempt in range(1, loaded.suite.attempts + 1)
    ]


def register_cells(instance: dg.DagsterInstance, family: Family, loaded: LoadedSuite) -> list[str]:
    """Make the registered task keys those of ``loaded``; returns keys that had to stay although they are gone.

    All new keys go in one call, since each call rebuilds Dagster's partition cache. A key that a running backfill may
    target is never deleted: Dagster would fail the whole backfill.
    """
    name = family.task_attempt_name
    wanted = cell_keys(loaded)
    known = instance.get_dynamic_partitions(name)
    before, now = set(known), set(wanted)
    missing = [key for key in wanted if key not in before]
    if missing:
        instance.add_dynamic_partitions(name, missing)
    gone = [key for key in known if key not in now]
    if not gone or backfill_under_way(instance):
        return gone
    for key in gone:
        instance.delete_dynamic_partition(name, key)
    return []


def backfill_under_way(instance: dg.DagsterInstance) -> bool:
    """Whether any backfill is not over yet."""
    # brings the whole of Dagster's workspace along, which loading the definitions need not wait for
    from dagster._core.execution.backfill import BulkActionsFilter, BulkActionStatus  # noqa: PLC0415

    not_over = [status for status in BulkActionStatus if status.value not in _BACKFILL_OVER]
    return bool(instance.get_backfills(filters=BulkActionsFilter(statuses=not_over), limit=1))


def dataset_asset(suite: Suite, family: Family) -> dg.AssetsDefinition:
    """Loads the suite and registers its task keys."""

    @dg.asset(
        key=family.key("dataset"),
        description=(
            f"{suite.title} Loads the {suite.benchmark} tasks of suite {suite.name} into the table tasks and registers "
            "the task#attempt keys of its grid. Materialize it first, and again after the data have changed."
        ),
        kinds={"python", "postgres"},
        group_name=suite.name,
        owners=OWNERS,
        required_resource_keys={LEASE},
    )
    def dataset(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
        with one_line_errors():
            settings = load_settings()
            loaded = load_tasks(suite, settings)
            with database(settings).begin() as connection:
                store_tasks(connection, loaded)
        kept = register_cells(context.instance, family, loaded)
        if kept:
            context.log.warning(
                f"{len(kept)} keys are no longer in the suite but stay until the running backfill has ended"
            )
        levels = Counter(task.level for task in loaded.tasks)
        endings = Counter(
            task.attachment.path.suffix.lower() if task.attachment else "no attachment" for task in loaded.tasks
        )
        return dg.MaterializeResult(
            # loading the same tasks again makes nothing that was frozen from them out of date
            data_version=dg.DataVersion(loaded.content_hash),
            metadata={
                "tasks": len(loaded.tasks),
                "attempts": loaded.suite.attempts,
                "cells": len(cell_keys(loaded)),
                "suite_hash": loaded.content_hash,
                "levels": dg.MetadataValue.md(table(("level", "tasks"), sorted(levels.items()))),
                "attachments": dg.MetadataValue.md(table(("kind", "tasks"), sorted(endings.items()))),
            },
        )

    return dataset
