"""The statements that store a trace. When to write, and what to do when that fails, is decided by the logger."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import Engine, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from eval_pipeline.db import tables
from eval_pipeline.db.sqlfiles import query
from eval_pipeline.tracing.rows import CallRow, EventRow

_INSERT_TEXTS = insert(tables.texts).on_conflict_do_nothing()

Row = EventRow | CallRow


def insert_traces(engine: Engine, traces: Sequence[tuple[UUID, Sequence[Row]]], *, timeout_s: float) -> None:
    """Store rows of one or more runs with the texts that they refer to: all of them or none.

    Each kind goes in one statement with one parameter, however many rows there are: a parameter per value costs more
    time in this process than the server takes to store it. Storing a row again is no error. A statement may take
    ``timeout_s`` seconds.
    """
    events = [
        {"run_id": run_id, **row.columns()} for run_id, rows in traces for row in rows if isinstance(row, EventRow)
    ]
    calls = [{"run_id": run_id, **row.columns()} for run_id, rows in traces for row in rows if isinstance(row, CallRow)]
    bodies = {
        sha256: body
        for _, rows in traces
        for row in rows
        if isinstance(row, EventRow)
        for sha256, body in row.texts.items()
    }
    with engine.begin() as connection:
        connection.execute(select(func.set_config("statement_timeout", str(round(timeout_s * 1000)), True)))
        if bodies:
            # runs that store the same texts at once would lock each other out if their orders differed
            texts = sorted(bodies.items())
            values = [{"sha256": sha256, "body": body, "length": len(body)} for sha256, body in texts]
            connection.execute(_INSERT_TEXTS, values)
        if events:
            connection.execute(query("store_events"), {"rows": _as_json(events)})
        if calls:
            connection.execute(query("store_calls"), {"rows": _as_json(calls)})


def _as_json(rows: Sequence[Mapping[str, object]]) -> str:
    return json.dumps(rows, ensure_ascii=False, default=_as_text)


def _as_text(value: object) -> str:
    """What JSON has no word for: run ids and moments."""
    return value.isoformat() if isinstance(value, datetime) else str(value)


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
