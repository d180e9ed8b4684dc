"""Reads run summaries back from the database. Nothing here changes a row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from uuid import UUID

from sqlalchemy import Connection, Select, column, select, table

from eval_pipeline.execution.cells import Cell, RunSummary
from eval_pipeline.ids import BatchTeam, TaskAttempt

_FIELDS = tuple(field.name for field in fields(RunSummary))
_VIEW = table("v_runs", column("batch_id"), column("team_id"), *(column(name) for name in _FIELDS))


def _of_batch(batch_team: BatchTeam) -> Select[tuple[object, ...]]:
    # the view sums usage per cell: constants for its grouping columns keep that sum to the cells asked for
    return select(*(_VIEW.c[name] for name in _FIELDS)).where(
        _VIEW.c.batch_id == batch_team.batch, _VIEW.c.team_id == batch_team.team
    )


def _summary(row: Mapping[str, object]) -> RunSummary:
    return RunSummary(**row)  # type: ignore[arg-type]


def live_runs(connection: Connection, batch_team: BatchTeam) -> dict[TaskAttempt, RunSummary]:
    """The live try of every cell of ``batch_team`` that has one."""
    rows = connection.execute(_of_batch(batch_team)).mappings()
    summaries = [_summary({name: row[name] for name in _FIELDS}) for row in rows]
    return {TaskAttempt(summary.task_id, summary.attempt): summary for summary in summaries}


def live_run(connection: Connection, batch_team: BatchTeam, cell: TaskAttempt) -> RunSummary:
    """The live try of one cell, which must have one."""
    query = _of_batch(batch_team).where(_VIEW.c.task_id == cell.task_id, _VIEW.c.attempt == cell.attempt)
    row = connection.execute(query).mappings().one()
    return _summary({name: row[name] for name in _FIELDS})


def first_try(cell: Cell, run_id: UUID, figures: Mapping[str, object]) -> RunSummary:
    """What :func:`live_run` would read of a first try that has just been committed with ``figures``."""
    tokens = figures["all_tokens_in"], figures["all_tokens_out"]
    columns = {name: figures.get(name) for name in _FIELDS} | {
        "run_id": run_id,
        "task_id": cell.task.task_id,
        "attempt": cell.attempt,
        "try_no": 1,
        "gold": cell.task.gold,
        "all_tokens": None if None in tokens else sum(tokens),  # type: ignore[arg-type]
    }
    return _summary(columns)
