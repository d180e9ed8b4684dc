"""Reads run summaries back from the database, many at once. Nothing here changes a row."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from sqlalchemy import Connection, Row, func, select

from eval_pipeline.db import tables
from eval_pipeline.execution.cells import RunSummary
from eval_pipeline.ids import BatchTeam, TaskAttempt

_runs = tables.runs
_COLUMNS = (
    "run_id",
    "task_id",
    "attempt",
    "try_no",
    "status",
    "success",
    "format_valid",
    "final_answer",
    "terminated_by",
    "error_class",
    "error_message",
    "turns",
    "tool_calls",
    "tool_errors",
    "tokens_in",
    "tokens_out",
    "latency_ms",
    "events_dropped",
)


def _query():  # type: ignore[no-untyped-def]
    tries = _runs.alias("tries")
    same_cell = (
        (tries.c.batch_id == _runs.c.batch_id)
        & (tries.c.team_id == _runs.c.team_id)
        & (tries.c.task_id == _runs.c.task_id)
        & (tries.c.attempt == _runs.c.attempt)
    )

    def over_tries(expression):  # type: ignore[no-untyped-def]
        return select(expression).where(same_cell).correlate(_runs).scalar_subquery()

    return select(
        *(_runs.c[name] for name in _COLUMNS),
        tables.tasks.c.gold,
        over_tries(func.sum(tries.c.all_tokens_in + tries.c.all_tokens_out)).label("all_tokens"),
        over_tries(func.sum(tries.c.model_calls)).label("model_calls"),
        over_tries(func.sum(tries.c.cost)).label("cost"),
    ).join(
        tables.tasks,
        (tables.tasks.c.task_id == _runs.c.task_id) & (tables.tasks.c.content_hash == _runs.c.task_hash),
    )


def _summary(row: Row) -> RunSummary:  # type: ignore[type-arg]
    fields = dict(row._mapping)
    fields["all_tokens"] = int(fields["all_tokens"] or 0)
    fields["model_calls"] = int(fields["model_calls"] or 0)
    return RunSummary(**fields)


def live_runs(connection: Connection, batch_team: BatchTeam) -> dict[TaskAttempt, RunSummary]:
    """The live try of every cell of ``batch_team`` that has one."""
    rows = connection.execute(
        _query().where(_runs.c.batch_id == batch_team.batch, _runs.c.team_id == batch_team.team, _runs.c.live)
    )
    summaries = map(_summary, rows)
    return {TaskAttempt(summary.task_id, summary.attempt): summary for summary in summaries}


def run_summaries(connection: Connection, run_ids: Iterable[UUID]) -> dict[UUID, RunSummary]:
    """The summaries of these runs."""
    rows = connection.execute(_query().where(_runs.c.run_id.in_(list(run_ids))))
    return {summary.run_id: summary for summary in map(_summary, rows)}
