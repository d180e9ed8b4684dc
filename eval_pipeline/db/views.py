"""Renewing the stored summaries, and reading them for one ``batch@team``.

What a summary holds, and how its rows of one batch are replaced, is defined in ``sql/011_incremental_summaries.sql``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlalchemy import Connection, Engine, Row, Select, column, literal_column, select, table, text

from eval_pipeline.db import tables
from eval_pipeline.ids import BatchTeam

SUMMARY_VIEWS = ("mv_batch_summary", "mv_passk", "mv_tool_summary")

# a function's name cannot be a bound parameter, so each statement is written out
_REFRESH = {
    "mv_batch_summary": text("select refresh_mv_batch_summary(:batch_id, :team_id)"),
    "mv_passk": text("select refresh_mv_passk(:batch_id, :team_id)"),
    "mv_tool_summary": text("select refresh_mv_tool_summary(:batch_id, :team_id)"),
}

Rows = Sequence[Row[tuple[object, ...]]]


def refresh(engine: Engine, view: str, batch_teams: Iterable[BatchTeam]) -> None:
    """Renew the rows of these batches in one summary, each batch in a transaction of its own; the others' stay.

    Two refreshes of one batch at once wait for each other. A batch that is not there has no rows afterwards.

    Raises:
        KeyError: there is no such view.
    """
    statement = _REFRESH[view]
    for batch_team in batch_teams:
        with engine.begin() as connection:
            connection.execute(statement, {"batch_id": batch_team.batch, "team_id": batch_team.team})


def refresh_batches(engine: Engine, batch_teams: Iterable[BatchTeam]) -> None:
    """Renew every summary of these batches."""
    wanted = list(batch_teams)
    for view in SUMMARY_VIEWS:
        refresh(engine, view, wanted)


def refresh_all(engine: Engine) -> None:
    """Renew every summary of every batch: what it costs grows with the history."""
    batches = tables.batches
    with engine.connect() as connection:
        keys = connection.execute(select(batches.c.batch_id, batches.c.team_id).order_by(batches.c.created_at)).all()
    refresh_batches(engine, [BatchTeam(*key) for key in keys])


def _of_batch(connection: Connection, view: str, batch_team: BatchTeam, *order: str) -> Rows:
    query: Select[tuple[object, ...]] = (
        select(literal_column("*"))
        .select_from(table(view))
        .where(column("batch_id") == batch_team.batch, column("team_id") == batch_team.team)
        .order_by(*(column(name) for name in order))
    )
    return connection.execute(query).all()


def batch_summary(connection: Connection, batch_team: BatchTeam) -> Rows:
    """``mv_batch_summary`` of one ``batch@team``, a row per level."""
    return _of_batch(connection, "mv_batch_summary", batch_team, "level")


def passk(connection: Connection, batch_team: BatchTeam) -> Rows:
    """``mv_passk`` of one ``batch@team``, a row per level and k."""
    return _of_batch(connection, "mv_passk", batch_team, "level", "k")


def tool_summary(connection: Connection, batch_team: BatchTeam) -> Rows:
    """``mv_tool_summary`` of one ``batch@team``, a row per tool."""
    return _of_batch(connection, "mv_tool_summary", batch_team, "tool_name")
