"""The circuit of an endpoint: after a few quota or auth failures in a row no further run starts, on any worker.

It is kept in the database, since a batch may have many workers and last for days. Retrying one request, and waiting for
a rate limit, is the business of the role clients; neither helps when the day's quota is gone or the key is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import Connection, case, select, update
from sqlalchemy.dialects.postgresql import insert

from eval_pipeline.db import tables
from eval_pipeline.errors import ErrorClass
from eval_pipeline.execution.contract import endpoint_host, model_name
from eval_pipeline.settings import Settings

FAILURES_TO_OPEN = 5
"""Consecutive runs that ended in a quota or auth failure."""
OPENING = frozenset({ErrorClass.QUOTA.value, ErrorClass.AUTH.value})


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
            f"({self.error_message}), so no further run starts: {cure}, then launch the batch again"
        )


def endpoint_of(settings: Settings) -> str | None:
    """The name of the configured endpoint's circuit: host and model; ``None`` for the scripted model."""
    host = endpoint_host(settings)
    return f"{host} {model_name(settings)}" if host else None


def open_circuit(connection: Connection, endpoint: str | None) -> OpenCircuit | None:
    """The open circuit of ``endpoint``, if it is open."""
    circuits = tables.circuits
    row = connection.execute(
        select(circuits).where(circuits.c.endpoint == endpoint, circuits.c.opened_at.is_not(None))
    ).one_or_none()
    if row is None:
        return None
    return OpenCircuit(row.endpoint, row.error_class, row.error_message or "", row.opened_at)


def close_circuit(connection: Connection, endpoint: str | None) -> None:
    """Forget the failures: somebody launches again and means it."""
    circuits = tables.circuits
    connection.execute(
        update(circuits)
        .where(circuits.c.endpoint == endpoint)
        .values(failures=0, opened_at=None, error_class=None, error_message=None, updated_at=datetime.now(UTC))
    )


def count_end(connection: Connection, endpoint: str | None, error_class: str | None, message: str) -> None:
    """Count how a run at ``endpoint`` ended; ``error_class`` is ``None`` for a completed one.

    A run that got answers proves that the quota is not gone, whatever its verdict. A crash of another class proves
    nothing and leaves the count as it is.
    """
    if endpoint is None:
        return
    circuits = tables.circuits
    now = datetime.now(UTC)
    if error_class is None:
        connection.execute(
            update(circuits)
            .where(circuits.c.endpoint == endpoint, circuits.c.failures > 0, circuits.c.opened_at.is_(None))
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
