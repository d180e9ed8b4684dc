"""Refreshing the materialized views, and reading them for one ``batch@team``."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, Engine, Row, Select, column, literal_column, select, table, text

from eval_pipeline.ids import BatchTeam

MATERIALIZED_VIEWS = ("mv_batch_summary", "mv_passk", "mv_tool_summary")

# a view's name cannot be a bound parameter, so each statement is written out
_REFRESH = {
    "mv_batch_summary": text("refresh materialized view concurrently mv_batch_summary"),
    "mv_passk": text("refresh materialized view concurrently mv_passk"),
    "mv_tool_summary": text("refresh materialized view concurrently mv_tool_summary"),
}

Rows = Sequence[Row[tuple[object, ...]]]


def refresh(engine: Engine, view: str) -> None:
    """Renew one materialized view; two refreshes of it at once wait for each other.

    Raises:
        KeyError: there is no such view.
    """
    statement = _REFRESH[view]
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(statement)


def refresh_all(engine: Engine) -> None:
    """Renew every materialized view."""
    for view in MATERIALIZED_VIEWS:
        refresh(engine, view)


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
