"""The statements that store a trace. When to write, and what to do when that fails, is decided by the logger."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import Engine, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from eval_pipeline.db import tables
from eval_pipeline.tracing.rows import CallRow, EventRow

# a retry after a commit whose confirmation was lost finds its rows there already
_INSERT_EVENTS = insert(tables.events).on_conflict_do_nothing()
_INSERT_CALLS = insert(tables.model_calls).on_conflict_do_nothing()
_INSERT_TEXTS = insert(tables.texts).on_conflict_do_nothing()


def insert_rows(engine: Engine, run_id: UUID, rows: Sequence[EventRow | CallRow], *, timeout_s: float) -> None:
    """Store ``rows`` with the texts that they refer to: all of them or none, each kind in one round trip.

    Storing a row again is no error. A statement may take ``timeout_s`` seconds.
    """
    events = [row for row in rows if isinstance(row, EventRow)]
    calls = [row for row in rows if isinstance(row, CallRow)]
    bodies = {sha256: body for row in events for sha256, body in row.texts.items()}
    with engine.begin() as connection:
        connection.execute(select(func.set_config("statement_timeout", str(round(timeout_s * 1000)), True)))
        if bodies:
            # runs that store the same texts at once would lock each other out if their orders differed
            texts = sorted(bodies.items())
            values = [{"sha256": sha256, "body": body, "length": len(body)} for sha256, body in texts]
            connection.execute(_INSERT_TEXTS, values)
        if events:
            connection.execute(_INSERT_EVENTS, [{"run_id": run_id, **row.columns()} for row in events])
        if calls:
            connection.execute(_INSERT_CALLS, [{"run_id": run_id, **row.columns()} for row in calls])


def report_dropped(engine: Engine, run_id: UUID, events_dropped: int, *, timeout_s: float) -> None:
    """Write on the row of a run that is under way how many of its events are lost so far."""
    runs = tables.runs
    statement = update(runs).where(runs.c.run_id == run_id, runs.c.status == "running")
    with engine.begin() as connection:
        connection.execute(select(func.set_config("statement_timeout", str(round(timeout_s * 1000)), True)))
        connection.execute(statement.values(events_dropped=events_dropped))


def is_outage(error: Exception) -> bool:
    """Whether ``error`` is about the database as a whole, so that every other row would have failed as well."""
    if isinstance(error, PoolTimeoutError | OSError):
        return True
    if not isinstance(error, DBAPIError):
        return False
    state = getattr(error.orig, "sqlstate", None) or ""
    # class 54 is a row that is too large for the program's limits, though drivers call it operational
    return error.connection_invalidated or (
        type(error).__name__ in ("OperationalError", "InterfaceError") and not state.startswith("54")
    )


def said(error: Exception) -> str:
    """What the database said, on one line and without the statement's parameters, which hold the trace."""
    cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    first_line = (str(cause).strip() or type(cause).__name__).split("\n", 1)[0]
    return f"{type(cause).__name__}: {first_line}"
