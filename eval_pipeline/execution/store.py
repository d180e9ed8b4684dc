"""The states of a run in the database: begun, alive, completed, crashed.

Every change of state is one transaction here; the database's constraints hold against the rest. Reading figures for
people belongs to :mod:`eval_pipeline.execution.summaries`.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, and_, func, select, text, update
from sqlalchemy.dialects.postgresql import insert

from eval_pipeline.db import tables
from eval_pipeline.errors import DatabaseError, ErrorClass
from eval_pipeline.execution.cells import Cell
from eval_pipeline.ids import BatchTeam
from eval_pipeline.run_ids import new_run_id

HEARTBEAT_EVERY_S = 5.0
HEARTBEAT_DEAD_AFTER_S = 60.0
"""A running row whose heartbeat is older than this counts as crashed. Seconds."""

_INTERRUPTED = ErrorClass.INTERRUPTED.value
_CLOSING = frozenset({"tool_result", "tool_error"})


@dataclass(frozen=True, slots=True)
class Begun:
    """A new try has begun: it is ours to finish."""

    run_id: UUID
    try_no: int


@dataclass(frozen=True, slots=True)
class NotBegun:
    """The cell is not ours to run: its live try is ``completed``, ``crashed`` (and stays so) or ``running``."""

    run_id: UUID
    status: str
    worker: str | None


def worker_name() -> str:
    """Host and process of this worker, for people who look for it."""
    return f"{platform.node()}:{os.getpid()}"


def plan_cells(connection: Connection, batch_team: BatchTeam, cells: Sequence[Cell]) -> None:
    """Remember that a launch asked for these cells: they are in the denominator from now on."""
    rows = [
        {
            "batch_id": batch_team.batch,
            "team_id": batch_team.team,
            "task_id": cell.task.task_id,
            "attempt": cell.attempt,
            "task_hash": cell.task.content_hash,
        }
        for cell in cells
    ]
    if rows:
        connection.execute(insert(tables.plan).on_conflict_do_nothing(), rows)


def begin_try(
    connection: Connection,
    cell: Cell,
    *,
    retry_crashed: bool,
    dagster_run_id: str | None,
    run_id: UUID | None = None,
) -> Begun | NotBegun:
    """Begin a new try of ``cell`` unless there is a reason not to; two workers at once get one ``Begun``.

    ``run_id`` is the new try's: with it, one that was begun before and whose confirmation an outage swallowed is found
    again. A running try whose heartbeat stopped is closed as interrupted and counts as crashed.
    """
    first = Begun(run_id or new_run_id(), 1)
    # nearly every cell has no try yet, and this says so in one statement
    if _insert_try(connection, cell, first, dagster_run_id):
        return first
    runs = tables.runs
    connection.execute(
        text("select pg_advisory_xact_lock(hashtext(:batch), hashtext(:cell))"),
        {"batch": cell.batch_team.key, "cell": cell.task_attempt.key},
    )
    this_cell = _of_cell(cell)
    live = connection.execute(
        select(runs.c.run_id, runs.c.try_no, runs.c.status, runs.c.worker, runs.c.heartbeat_at).where(
            this_cell, runs.c.live
        )
    ).one_or_none()
    if live is not None and live.run_id == run_id:
        return Begun(live.run_id, live.try_no)
    if live is not None:
        status = live.status
        if status == "running" and _stopped(live.heartbeat_at):
            close_interrupted(connection, live.run_id, "its worker stopped without a word")
            status = "crashed"
        if status != "crashed" or not retry_crashed:
            return NotBegun(live.run_id, status, live.worker)
        connection.execute(update(runs).where(runs.c.run_id == live.run_id).values(live=False))
    last = connection.execute(select(func.max(runs.c.try_no)).where(this_cell)).scalar()
    begun = Begun(first.run_id, (last or 0) + 1)
    if not _insert_try(connection, cell, begun, dagster_run_id):
        raise DatabaseError(
            f"{cell.batch_team.key}: a try of {cell.task_attempt.key} could not begin beside others; launch again"
        )
    return begun


def _insert_try(connection: Connection, cell: Cell, begun: Begun, dagster_run_id: str | None) -> bool:
    """Add the row of a new try; whether there was room for it: no live try, and none of this number."""
    now = datetime.now(UTC)
    row = {
        "run_id": begun.run_id,
        "batch_id": cell.batch_team.batch,
        "team_id": cell.batch_team.team,
        "task_id": cell.task.task_id,
        "attempt": cell.attempt,
        "try_no": begun.try_no,
        "live": True,
        "task_hash": cell.task.content_hash,
        "level": cell.task.level,
        "status": "running",
        "started_at": now,
        "heartbeat_at": now,
        "dagster_run_id": dagster_run_id,
        "worker": worker_name(),
    }
    statement = insert(tables.runs).on_conflict_do_nothing().returning(tables.runs.c.run_id)
    return connection.execute(statement, row).first() is not None


def _of_cell(cell: Cell) -> ColumnElement[bool]:
    runs = tables.runs
    return and_(
        runs.c.batch_id == cell.batch_team.batch,
        runs.c.team_id == cell.batch_team.team,
        runs.c.task_id == cell.task.task_id,
        runs.c.attempt == cell.attempt,
    )


def _stopped(heartbeat_at: datetime | None) -> bool:
    return heartbeat_at is None or datetime.now(UTC) - heartbeat_at > timedelta(seconds=HEARTBEAT_DEAD_AFTER_S)


def beat(connection: Connection, run_ids: Sequence[UUID]) -> None:
    """Say that these runs are alive."""
    if not run_ids:
        return
    runs = tables.runs
    # one that is being ended needs no heartbeat, and a group that ends several locks them in an order of its own
    free = (
        select(runs.c.run_id)
        .where(runs.c.run_id.in_(run_ids), runs.c.status == "running")
        .with_for_update(skip_locked=True, key_share=True)
    )
    connection.execute(update(runs).where(runs.c.run_id.in_(free)).values(heartbeat_at=datetime.now(UTC)))


def finish(connection: Connection, run_id: UUID, figures: Mapping[str, object]) -> bool:
    """Commit how a run ended; whether the run was still ours to end.

    ``figures`` are columns of ``runs``, ``status`` among them. A try that someone else has already closed stays closed.
    """
    done = connection.execute(
        update(tables.runs)
        .where(tables.runs.c.run_id == run_id, tables.runs.c.status == "running")
        .values(finished_at=datetime.now(UTC), **figures)
    )
    return done.rowcount == 1


def close_interrupted(connection: Connection, run_id: UUID, why: str) -> None:
    """End a dead try: crashed with class interrupted, its open tool calls closed so that the trace is whole.

    Usage is what the trace and the recorded calls have of it: unknown where they have none, nothing without a call.
    """
    events, calls = tables.events, tables.model_calls
    _close_open_calls(connection, run_id, why)
    visible = connection.execute(
        select(
            func.sum(events.c.tokens_in),
            func.sum(events.c.tokens_out),
            func.count().filter(events.c.message_type == "agent_message"),
            func.count().filter(events.c.message_type == "tool_call"),
            func.count().filter(events.c.message_type == "tool_error"),
        ).where(events.c.run_id == run_id)
    ).one()
    spent = connection.execute(
        select(
            func.sum(calls.c.prompt_tokens),
            func.sum(calls.c.completion_tokens),
            func.count(),
        ).where(calls.c.run_id == run_id)
    ).one()
    # without a call nothing was spent; with calls that told no usage it is unknown
    unknown = None if spent[2] else 0
    figures = {
        "status": "crashed",
        "error_class": ErrorClass.INTERRUPTED.value,
        "error_message": why,
        "tokens_in": unknown if visible[0] is None else visible[0],
        "tokens_out": unknown if visible[1] is None else visible[1],
        "turns": visible[2],
        "tool_calls": visible[3],
        "tool_errors": visible[4],
        "all_tokens_in": unknown if spent[0] is None else spent[0],
        "all_tokens_out": unknown if spent[1] is None else spent[1],
        "model_calls": spent[2],
    }
    finish(connection, run_id, figures)


def _close_open_calls(connection: Connection, run_id: UUID, why: str) -> None:
    events = tables.events
    rows = connection.execute(
        select(events.c.seq, events.c.message_type, events.c.tool_name, events.c.tool_call_id, events.c.source)
        .where(events.c.run_id == run_id)
        .order_by(events.c.seq)
    ).all()
    open_calls = []
    for row in rows:
        if row.message_type == "tool_call":
            open_calls.append(row)
        elif row.message_type in _CLOSING:
            match = next((call for call in open_calls if call.tool_call_id == row.tool_call_id), None)
            if match is not None:
                open_calls.remove(match)
    next_seq = rows[-1].seq + 1 if rows else 0
    closing = [
        {
            "run_id": run_id,
            "seq": next_seq + number,
            "ts": datetime.now(UTC),
            "message_type": "tool_error",
            "source": call.source,
            "content": f"interrupted: {why}",
            "tool_name": call.tool_name,
            "tool_call_id": call.tool_call_id,
            "error": {"class": _INTERRUPTED, "type": _INTERRUPTED, "message": why},
        }
        for number, call in enumerate(open_calls)
    ]
    if closing:
        connection.execute(insert(events), closing)
