"""Batches that a circuit has paused, and the cells that they still miss."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Engine, and_, select

from eval_pipeline.db import tables
from eval_pipeline.db.sqlfiles import query
from eval_pipeline.ids import BatchTeam, TaskAttempt


@dataclass(frozen=True, slots=True)
class PausedBatch:
    """A batch that a circuit has stopped, at ``since``, with its planned cells by whether they are done."""

    suite: str
    batch_team: BatchTeam
    since: datetime
    missing: frozenset[TaskAttempt]
    done: frozenset[TaskAttempt]


def paused_batches(engine: Engine, before: datetime) -> list[PausedBatch]:
    """The batches that were stopped before ``before``, in the order in which they began."""
    plan, runs = tables.plan, tables.runs
    live = and_(
        runs.c.batch_id == plan.c.batch_id,
        runs.c.team_id == plan.c.team_id,
        runs.c.task_id == plan.c.task_id,
        runs.c.attempt == plan.c.attempt,
        runs.c.live,
    )
    found = []
    with engine.connect() as connection:
        for row in connection.execute(query("paused_batches"), {"before": before}).all():
            cells = connection.execute(
                select(plan.c.task_id, plan.c.attempt, runs.c.status)
                .outerjoin(runs, live)
                .where(plan.c.batch_id == row.batch_id, plan.c.team_id == row.team_id)
            ).all()
            done = {TaskAttempt(cell.task_id, cell.attempt) for cell in cells if cell.status == "completed"}
            planned = {TaskAttempt(cell.task_id, cell.attempt) for cell in cells}
            found.append(
                PausedBatch(
                    row.suite,
                    BatchTeam(row.batch_id, row.team_id),
                    row.since,
                    frozenset(planned - done),
                    frozenset(done),
                )
            )
    return found
