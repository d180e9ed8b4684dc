"""The circuit of an endpoint: after a few quota or auth failures in a row no further run starts, on any worker.

It is kept in the database, since a batch may have many workers and last for days. Retrying one request, and waiting for
a rate limit, is the business of the role clients; neither helps when the day's quota is gone or the key is wrong.

An endpoint that refuses hears at most ``FAILURES_TO_OPEN + workers * concurrency - 1`` requests of a launch: runs that
have begun before the circuit opens find out for themselves, with one request each, and no other begins.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, case, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert

from eval_pipeline.db import tables
from eval_pipeline.errors import ErrorClass
from eval_pipeline.execution.contract import endpoint_host, model_name
from eval_pipeline.ids import BatchTeam
from eval_pipeline.settings import Settings

FAILURES_TO_OPEN = 5
"""Consecutive runs that ended in a quota or auth failure."""
OPENING = frozenset({ErrorClass.QUOTA.value, ErrorClass.AUTH.value})
_SAID = 200


@dataclass(frozen=True, slots=True)
class OpenCircuit:
    """Why no further run starts."""

    endpoint: str
    error_class: str
    error_message: str
    opened_at: datetime

    def line(self) -> str:
        """What happened and what to do, in one line."""
        cure = "wait until the quota is renewed" if self.error_class == ErrorClass.QUOTA else "check EVAL_LLM_API_KEY"
        return (
            f"{FAILURES_TO_OPEN} runs in a row failed at {self.endpoint} with {self.error_class} "
            f"({self.error_message[:_SAID]}), so no further run starts: {cure}, then launch the batch again; "
            "what is done is kept and what had not started has cost nothing"
        )


def endpoint_of(settings: Settings) -> str | None:
    """The name of the configured endpoint's circuit: host and model; ``None`` for the scripted model."""
    host = endpoint_host(settings)
    return f"{host} {model_name(settings)}" if host else None


def open_circuit(connection: Connection, endpoint: str | None) -> OpenCircuit | None:
    """The open circuit of ``endpoint``, if it is open."""
    if endpoint is None:
        return None
    circuits = tables.circuits
    row = connection.execute(
        select(circuits).where(circuits.c.endpoint == endpoint, circuits.c.opened_at.is_not(None))
    ).one_or_none()
    if row is None:
        return None
    return OpenCircuit(row.endpoint, row.error_class, row.error_message or "", row.opened_at)


def launch_begins(connection: Connection, endpoint: str | None, batch_team: BatchTeam, asked_at: datetime) -> None:
    """Forget what was counted before ``asked_at``: somebody launches again and means it.

    What was asked for before the circuit opened, or while failures were being counted, is not somebody who means it:
    another worker of the same launch, or what had been queued.
    """
    circuits = tables.circuits
    counted_at = func.coalesce(circuits.c.opened_at, circuits.c.updated_at)
    connection.execute(
        update(circuits)
        .where(circuits.c.endpoint == endpoint, counted_at < asked_at)
        .values(failures=0, opened_at=None, error_class=None, error_message=None, updated_at=datetime.now(UTC))
    )
    if open_circuit(connection, endpoint) is None:
        connection.execute(delete(tables.pauses).where(*_pause_of(batch_team)))


def pause(connection: Connection, circuit: OpenCircuit, batch_team: BatchTeam) -> None:
    """Remember that ``circuit`` has stopped this batch, now."""
    row = {"batch_id": batch_team.batch, "team_id": batch_team.team}
    what = {"endpoint": circuit.endpoint, "since": datetime.now(UTC)}
    connection.execute(
        insert(tables.pauses).values(**row, **what).on_conflict_do_update(index_elements=list(row), set_=what)
    )


def paused_by(connection: Connection, batch_team: BatchTeam) -> OpenCircuit | None:
    """The open circuit that has stopped this batch, if one has and is still open."""
    endpoint = connection.execute(select(tables.pauses.c.endpoint).where(*_pause_of(batch_team))).scalar()
    return open_circuit(connection, endpoint) if endpoint else None


def count_end(
    connection: Connection,
    endpoint: str | None,
    batch_team: BatchTeam,
    run_id: UUID,
    error_class: str | None,
    message: str,
) -> None:
    """Count how a run at ``endpoint`` ended; ``error_class`` is ``None`` for a completed one.

    A completed run that got an answer after the latest failure proves that the quota is not gone, whatever its
    verdict. One that had its last answer before proves nothing, nor does a crash of another class.
    """
    if endpoint is None:
        return
    circuits = tables.circuits
    now = datetime.now(UTC)
    if error_class is None:
        answered_at = _last_answer(connection, run_id)
        if answered_at is not None:
            connection.execute(
                update(circuits)
                .where(
                    circuits.c.endpoint == endpoint,
                    circuits.c.failures > 0,
                    circuits.c.opened_at.is_(None),
                    circuits.c.updated_at < answered_at,
                )
                .values(failures=0, updated_at=now)
            )
    elif error_class in OPENING:
        first = insert(circuits).values(
            endpoint=endpoint, failures=1, error_class=error_class, error_message=message, updated_at=now
        )
        failures = circuits.c.failures + 1
        connection.execute(
            first.on_conflict_do_update(
                index_elements=["endpoint"],
                set_={
                    "failures": failures,
                    "error_class": error_class,
                    "error_message": message,
                    "updated_at": now,
                    "opened_at": case(
                        (circuits.c.opened_at.is_not(None), circuits.c.opened_at),
                        (failures >= FAILURES_TO_OPEN, now),
                        else_=None,
                    ),
                },
            )
        )
        circuit = open_circuit(connection, endpoint)
        if circuit is not None:
            pause(connection, circuit, batch_team)


def _last_answer(connection: Connection, run_id: UUID) -> datetime | None:
    """When the endpoint last answered this run, by the clock of the worker that asked."""
    calls = tables.model_calls
    row = connection.execute(
        select(calls.c.started_at, calls.c.latency_ms)
        .where(calls.c.run_id == run_id, calls.c.outcome == "ok")
        .order_by(calls.c.call_no.desc())
        .limit(1)
    ).one_or_none()
    return None if row is None else row.started_at + timedelta(milliseconds=row.latency_ms)


def _pause_of(batch_team: BatchTeam) -> tuple[ColumnElement[bool], ...]:
    pauses = tables.pauses
    return pauses.c.batch_id == batch_team.batch, pauses.c.team_id == batch_team.team
