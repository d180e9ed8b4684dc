"""A sample suite run from end to end with the scripted model, for the tests of one benchmark each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Row, literal_column, select, table

from eval_pipeline.db import tables
from eval_pipeline.ids import TaskAttempt
from eval_pipeline_tests.conftest import Database
from eval_pipeline_tests.execution.launching import opened, run


@dataclass(frozen=True)
class SampleRun:
    """One run of the sample suite: its row, and its metrics."""

    row: Row[tuple[object, ...]]
    metrics: Mapping[str, float]


async def played(database: Database, benchmark: str) -> dict[str, SampleRun]:
    """Every task of ``sample_<benchmark>`` run by t1-text, by its id."""
    launch = opened(database, "b@t1-text", suite=f"sample_{benchmark}")
    await run(launch, [TaskAttempt(task.task_id, 1) for task in launch.loaded.tasks])
    found = {}
    with database.engine.connect() as connection:
        for row in connection.execute(select(tables.runs)):
            metrics = connection.execute(
                select(tables.run_metrics.c.name, tables.run_metrics.c.value).where(
                    tables.run_metrics.c.run_id == row.run_id
                )
            )
            found[row.task_id] = SampleRun(row, {metric.name: metric.value for metric in metrics})
    return found


def view(database: Database, name: str) -> dict[str, Row[tuple[object, ...]]]:
    """The rows of a view by task id."""
    with database.engine.connect() as connection:
        return {row.task_id: row for row in connection.execute(select(literal_column("*")).select_from(table(name)))}
