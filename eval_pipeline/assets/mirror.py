"""Holds what Dagster says of a cell against what the database says. The database is right; Dagster mirrors it."""

from __future__ import annotations

import dagster as dg
from sqlalchemy import Engine, select

from eval_pipeline.assets.partitions import Family
from eval_pipeline.db import tables
from eval_pipeline.db.checks import SAMPLE, Check, CheckResult
from eval_pipeline.ids import BatchTeam, TaskAttempt

MIRROR = Check(
    "dagster_mirror",
    "Dagster calls a cell materialized that has no completed run, or a completed run has no materialized cell",
    "launch the cell again: a completed run is reported without a model call, a missing one is run",
)


def mirror_check(instance: dg.DagsterInstance, engine: Engine) -> CheckResult:
    """Compare every suite that has a batch; two reads per suite, whatever the number of cells."""
    runs, batches = tables.runs, tables.batches
    with engine.connect() as connection:
        rows = connection.execute(
            select(batches.c.suite, runs.c.batch_id, runs.c.team_id, runs.c.task_id, runs.c.attempt)
            .join(batches, (batches.c.batch_id == runs.c.batch_id) & (batches.c.team_id == runs.c.team_id))
            .where(runs.c.live, runs.c.status == "completed")
        ).all()
        suites = list(connection.execute(select(batches.c.suite).distinct()).scalars())
    found: list[dict[str, object]] = []
    for suite in suites:
        family = Family(suite)
        completed = {
            str(family.cell_key(BatchTeam(row.batch_id, row.team_id).key, TaskAttempt(row.task_id, row.attempt).key))
            for row in rows
            if row.suite == suite
        }
        for name in ("runs", "events"):
            shown = instance.get_materialized_partitions(family.key(name))
            found += [
                {"asset": f"{suite}/{name}", "cell": cell, "problem": problem}
                for problem, cells in (
                    ("materialized without a completed run", shown - completed),
                    ("completed without a materialization", completed - shown),
                )
                for cell in sorted(cells)
            ]
    return CheckResult(MIRROR, tuple(found[:SAMPLE]), len(found))
