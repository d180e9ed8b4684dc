"""Reads run summaries back from the database. Nothing here changes a row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from sqlalchemy import Connection, Select, column, select, table

from eval_pipeline.execution.cells import RunSummary
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
