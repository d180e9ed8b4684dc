"""Holds what Dagster says of a cell against what the database says. The database is right; Dagster mirrors it."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime, timedelta

import dagster as dg
from sqlalchemy import Connection, Engine, exists, select

from eval_pipeline.assets.partitions import Family
from eval_pipeline.db import tables
from eval_pipeline.db.checks import SAMPLE, Check, CheckResult
from eval_pipeline.ids import BatchTeam, TaskAttempt

MIRROR = Check(
    "dagster_mirror",
    "Dagster calls a cell materialized that has no completed run, or a completed run has no materialized cell",
    "launch the cell again: a completed run is reported without a model call, a missing one is run",
)


_REPORTED_WITHIN = timedelta(minutes=1)
"""How long a launch that is under way may take from committing a run to reporting it."""


def mirror_check(instance: dg.DagsterInstance, engine: Engine) -> CheckResult:
    """Compare every suite that has a batch; two reads per suite, whatever the number of cells."""
    with engine.connect() as connection:
        suites = list(connection.execute(select(tables.batches.c.suite).distinct()).scalars())
        completed = _completed(connection)
        unreported = _being_reported(connection)
    found: list[dict[str, object]] = []
    for suite in suites:
        family = Family(suite)
        for name in ("runs", "events"):
            shown = instance.get_materialized_partitions(family.key(name))
            found += [
                {"asset": f"{suite}/{name}", "cell": cell, "problem": problem}
                for problem, cells in (
                    ("materialized without a completed run", shown - completed[suite]),
                    ("completed without a materialization", completed[suite] - shown - unreported),
                )
                for cell in sorted(cells)
            ]
    return CheckResult(MIRROR, tuple(found[:SAMPLE]), len(found))


def _completed(connection: Connection) -> defaultdict[str, set[str]]:
    """The keys of completed cells by suite."""
    runs, batches = tables.runs, tables.batches
    rows = connection.execute(
        select(batches.c.suite, runs.c.batch_id, runs.c.team_id, runs.c.task_id, runs.c.attempt)
        .join(batches, (batches.c.batch_id == runs.c.batch_id) & (batches.c.team_id == runs.c.team_id))
        .where(runs.c.live, runs.c.status == "completed")
    )
    cells: defaultdict[str, set[str]] = defaultdict(set)
    for suite, *cell in rows:
        cells[suite].add(_cell_key(*cell))
    return cells


def _being_reported(connection: Connection) -> set[str]:
    """The keys of cells that have just completed in a batch that others are running of."""
    runs = tables.runs
    other = runs.alias()
    under_way = exists().where(
        other.c.batch_id == runs.c.batch_id, other.c.team_id == runs.c.team_id, other.c.status == "running"
    )
    rows = connection.execute(
        select(runs.c.batch_id, runs.c.team_id, runs.c.task_id, runs.c.attempt).where(
            runs.c.live,
            runs.c.status == "completed",
            runs.c.finished_at > datetime.now(UTC) - _REPORTED_WITHIN,
            under_way,
        )
    )
    return {_cell_key(*cell) for cell in rows}


def _cell_key(batch_id: str, team_id: str, task_id: str, attempt: int) -> str:
    # the order of the two is that of the dimensions' names, in every suite
    return f"{BatchTeam(batch_id, team_id).key}|{TaskAttempt(task_id, attempt).key}"
