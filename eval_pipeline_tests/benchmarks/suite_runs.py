"""Whole sample suites played by the scripted model for the tests beside this module, as rows of the database."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Row, select

from eval_pipeline.db import tables
from eval_pipeline.ids import TaskAttempt
from eval_pipeline_tests.conftest import Database
from eval_pipeline_tests.execution.launching import opened, run


async def played(database: Database, suite: str) -> Mapping[str, Row[Any]]:
    """Every run of ``suite`` under ``t1-text``, by its task, as the database holds it afterwards."""
    launch = opened(database, "b@t1-text", suite=suite)
    await run(launch, [TaskAttempt(task.task_id, 1) for task in launch.loaded.tasks])
    with database.engine.connect() as connection:
        return {row.task_id: row for row in connection.execute(select(tables.runs))}


def metrics(database: Database, run: Row[Any]) -> dict[str, float]:
    """The stored figures of one run."""
    stored = tables.run_metrics
    with database.engine.connect() as connection:
        rows = connection.execute(select(stored).where(stored.c.run_id == run.run_id))
        return {row.name: row.value for row in rows}


def tools_called(database: Database, run: Row[Any]) -> list[str]:
    """The names of the tools that one run called, in order."""
    events = tables.events
    query = select(events.c.tool_name).where(events.c.run_id == run.run_id, events.c.message_type == "tool_call")
    with database.engine.connect() as connection:
        return [row.tool_name for row in connection.execute(query.order_by(events.c.seq))]
