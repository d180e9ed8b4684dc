"""``<suite>/runs`` and ``<suite>/events``: one step that runs many cells and reports each as it is committed.

The step is a plain generator that yields nothing: an output of it would make Dagster log every cell a second time. The
database is the truth about a run; Dagster's state mirrors it.
"""

# no postponed annotations here: Dagster reads the type of a step's context at import
import contextlib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby

import dagster as dg

from eval_pipeline.assets.common import OWNERS, database, one_line_errors, partition_keys
from eval_pipeline.assets.event_batches import log_materializations
from eval_pipeline.assets.freezing import report_frozen
from eval_pipeline.assets.lease import LEASE
from eval_pipeline.assets.listener import LISTENER, LaunchListener
from eval_pipeline.assets.partitions import BATCH_TEAM, TASK_ATTEMPT, Family
from eval_pipeline.assets.pool import POOL
from eval_pipeline.assets.run_metadata import (
    crash_metadata,
    events_metadata,
    place_in_report,
    run_metadata,
    shown_model,
)
from eval_pipeline.execution.cells import CellEnd, CellResult
from eval_pipeline.execution.circuit import OpenCircuit
from eval_pipeline.execution.collector import rarely_collecting
from eval_pipeline.execution.interrupts import run_interruptibly
from eval_pipeline.execution.launch import open_launch
from eval_pipeline.execution.run_many import LaunchPlan, LaunchResult, run_cells
from eval_pipeline.ids import BatchTeam, TaskAttempt
from eval_pipeline.settings import load_settings
from eval_pipeline.suites import Suite, load_tasks
from eval_pipeline.teams.registry import load_teams

RETRY_CRASHED_TAG = "eval/retry_crashed"
"""A launch by a person or a sensor always retries crashed runs; the command line says ``false`` without its option."""

ASKED_AT_TAG = "eval/asked_at"
"""When a launch of several Dagster runs was asked for, an ISO date: each of them alone would seem asked later."""

_SHOWN_FAILURES = 20


def asked_tag(moment: datetime) -> dict[str, str]:
    """The tag of every Dagster run of what was asked for at ``moment``."""
    return {ASKED_AT_TAG: moment.isoformat()}


def runs_assets(suite: Suite, family: Family, backfill_policy: dg.BackfillPolicy) -> dg.AssetsDefinition:
    """The multi-asset of ``suite``. Asking for one of the two makes both."""

    @dg.multi_asset(
        name=f"{suite.name}__runs",
        specs=[
            dg.AssetSpec(
                family.key("runs"),
                deps=[family.key("tasks"), family.key("team_configs")],
                skippable=True,
                description=(
                    f"One run of the agent team per (task, attempt) of suite {suite.name} and batch@team, scored and "
                    "committed to the table runs as it ends.\n\n"
                    "- **Start a batch**: *Materialize…*, add a batch_team such as `first@v5-multitool`, choose *All* "
                    "tasks, *Launch backfill*.\n"
                    "- **Green** is a run that was scored, right or wrong; **red** is one that crashed, and the cell's "
                    "events say why.\n"
                    "- **Go on**: launch the same again; what is done is skipped and costs nothing."
                ),
                kinds={"autogen", "postgres"},
                group_name=suite.name,
                owners=OWNERS,
            ),
            dg.AssetSpec(
                family.key("events"),
                deps=[family.key("runs")],
                skippable=True,
                description="The trace of every run, event by event, in the table events; written with the run.",
                kinds={"postgres", "table"},
                group_name=suite.name,
                owners=OWNERS,
            ),
        ],
        can_subset=True,
        partitions_def=family.cells,
        backfill_policy=backfill_policy,
        pool=POOL,
        required_resource_keys={LISTENER, LEASE},
    )
    def runs_and_events(context: dg.AssetExecutionContext) -> Iterator[dg.Output[None]]:
        with one_line_errors():
            cells = [_cell(key) for key in partition_keys(context)]
            unfinished = []
            circuit: OpenCircuit | None = None
            # a range may run along either dimension: one task over several teams is as possible as the reverse
            for batch_team, group in groupby(sorted(cells), key=lambda cell: cell[0]):
                order = {cell: position for position, cell in enumerate(cells)}
                attempts = [cell[1] for cell in sorted(group, key=lambda cell: order[cell])]
                result = _launch(context, suite, family, batch_team, attempts)
                circuit = circuit or result.circuit
                unfinished += [(batch_team, ended) for ended in result.unfinished]
        if unfinished:
            raise dg.Failure(
                description=circuit.line() if circuit else _what_is_left(len(cells), unfinished),
                metadata={"unfinished": len(unfinished), "cells": len(cells)},
                allow_retries=False,
            )
        yield from ()

    return runs_and_events


def _asked_at(context: dg.AssetExecutionContext) -> datetime | None:
    """When somebody asked for what this Dagster run does, which may have been queued since."""
    tags = context.run.tags
    if ASKED_AT_TAG in tags:
        with contextlib.suppress(ValueError):
            return datetime.fromisoformat(tags[ASKED_AT_TAG]).astimezone(UTC)
    backfill_id = tags.get("dagster/backfill")
    backfill = context.instance.get_backfill(backfill_id) if backfill_id else None
    if backfill is not None:
        return datetime.fromtimestamp(backfill.backfill_timestamp, UTC)
    record = context.instance.get_run_record_by_id(context.run_id)
    return record.create_timestamp if record else None


def _cell(key: str) -> tuple[BatchTeam, TaskAttempt]:
    dimensions = key.keys_by_dimension if isinstance(key, dg.MultiPartitionKey) else _split(key)
    return (
        BatchTeam.parse(dimensions[BATCH_TEAM], "partition key"),
        TaskAttempt.parse(dimensions[TASK_ATTEMPT], "partition key"),
    )


def _split(key: str) -> dict[str, str]:
    batch_team, _, task_attempt = key.partition("|")
    return {BATCH_TEAM: batch_team, TASK_ATTEMPT: task_attempt}


def _launch(
    context: dg.AssetExecutionContext,
    suite: Suite,
    family: Family,
    batch_team: BatchTeam,
    attempts: Sequence[TaskAttempt],
) -> LaunchResult:
    settings = load_settings()
    listener: LaunchListener = getattr(context.resources, LISTENER)
    launch = open_launch(
        settings,
        database(settings),
        batch_team,
        load_tasks(suite, settings),
        load_teams(settings.teams_dir),
        retry_crashed=context.run.tags.get(RETRY_CRASHED_TAG) != "false",
        dagster_run_id=context.run_id,
        begun_at=_asked_at(context),
    )
    report_frozen(context, family, launch)

    def planned(plan: LaunchPlan) -> None:
        context.log.info(f"{batch_team.key}: {plan.line()}")
        listener.planned(batch_team, plan)

    model = shown_model(settings)

    def ended(results: Sequence[CellResult]) -> None:
        materializations: list[dg.AssetMaterialization] = []
        for result in results:
            place = place_in_report(settings, batch_team, result.task_attempt)
            for event in _events(family, batch_team, result, model, place):
                if isinstance(event, dg.AssetMaterialization):
                    materializations.append(event)
                else:
                    context.log_event(event)
            if result.end not in (CellEnd.COMPLETED, CellEnd.SKIPPED):
                context.log.error(f"{result.task_attempt.key}: {result.end}: {result.message}")
        log_materializations(context, materializations)
        for result in results:
            listener.ended(result)

    with rarely_collecting():
        result = run_interruptibly(run_cells(launch, attempts, planned, ended, listener.begun))
    context.log.info(result.line())
    listener.finished(result)
    return result


def _events(
    family: Family, batch_team: BatchTeam, result: CellResult, model: str, place: dg.MetadataValue
) -> Iterator[dg.AssetMaterialization | dg.AssetObservation]:
    """What Dagster is told of one committed cell. The dimension tags make the UI show it in its two columns."""
    run = result.run
    if run is None:
        return
    key = family.cell_key(batch_team.key, result.task_attempt.key)
    tags = {
        "dagster/partition/batch_team": batch_team.key,
        "dagster/partition/task_attempt": result.task_attempt.key,
    }
    if result.end in (CellEnd.COMPLETED, CellEnd.SKIPPED):
        # the same run reported again is the same data: what was made from it stays up to date
        tags["dagster/data_version"] = str(run.run_id)
        figures = run_metadata(run, model, skipped=result.end is CellEnd.SKIPPED)
        for name, metadata in (("runs", figures), ("events", events_metadata(run))):
            yield dg.AssetMaterialization(
                asset_key=family.key(name), partition=key, metadata={**metadata, "in_the_report": place}, tags=tags
            )
    elif run.status == "crashed":
        # an observation leaves the cell red and says there why it is
        metadata = {**crash_metadata(run, model), "in_the_report": place}
        yield dg.AssetObservation(asset_key=family.key("runs"), partition=key, metadata=metadata, tags=tags)


def _what_is_left(cells: int, unfinished: Sequence[tuple[BatchTeam, CellResult]]) -> str:
    crashed = [f"{result.task_attempt.key} ({result.message or result.end})" for _, result in unfinished]
    more = f" and {len(crashed) - _SHOWN_FAILURES} more" if len(crashed) > _SHOWN_FAILURES else ""
    return (
        f"{len(crashed)} of {cells} cells have no completed run: {'; '.join(crashed[:_SHOWN_FAILURES])}{more}. "
        "What completed is kept; launch 'only failed and missing' to try the rest again."
    )
