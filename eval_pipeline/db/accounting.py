"""What each role of a team did and cost, who handed over to whom, and how the talk ended: read from the views."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, select
from sqlalchemy.dialects.postgresql import insert

from eval_pipeline.db import tables
from eval_pipeline.db.lookups import expect_lookups
from eval_pipeline.db.sqlfiles import query
from eval_pipeline.ids import BatchTeam

_PARTS = ("roles", "handovers", "endings")


@dataclass(frozen=True, slots=True)
class RoleFigures:
    """A row of ``v_role_accounting``, over all tries.

    Tokens and cost are ``None`` where they are unknown. Cost is the runs' cost shared out by tokens, latency the sum of
    the role's requests in milliseconds. Decisions are the selector's; a failed one could not be read, or AutoGen chose.
    """

    role: str
    model_calls: int
    failed_calls: int
    tokens_in: int | None
    tokens_out: int | None
    tokens: int | None
    cost: float | None
    latency_ms: int | None
    turns: int
    tool_calls: int
    tool_errors: int
    decisions: int
    failed_decisions: int


@dataclass(frozen=True, slots=True)
class Handover:
    """A row of ``v_handovers``: how often ``next_speaker`` spoke after ``speaker`` for a reason, in how many runs."""

    speaker: str
    next_speaker: str
    reason_code: str
    handovers: int
    runs: int


@dataclass(frozen=True, slots=True)
class Ending:
    """A row of ``v_endings``; ``ended_by`` is the termination, or the error class of a crash."""

    status: str
    ended_by: str
    last_speaker: str
    runs: int
    successes: int


@dataclass(frozen=True, slots=True)
class Accounting:
    """All three of one ``batch@team``; the most frequent hand-over and ending first."""

    roles: tuple[RoleFigures, ...]
    handovers: tuple[Handover, ...]
    endings: tuple[Ending, ...]


def accounting(connection: Connection, batch_team: BatchTeam) -> Accounting:
    """The accounting of ``batch_team`` as it is now; empty where nothing has run.

    Of a batch with an archived trace it is what it was before that.
    """
    expect_lookups(connection)
    kept = tables.archived_accounting
    stored = connection.execute(
        select(*(kept.c[part] for part in _PARTS)).where(
            kept.c.batch_id == batch_team.batch, kept.c.team_id == batch_team.team
        )
    ).one_or_none()
    roles, handovers, endings = _parts(connection, batch_team) if stored is None else stored
    return Accounting(
        tuple(RoleFigures(*row) for row in roles),
        tuple(Handover(*row) for row in handovers),
        tuple(Ending(*row) for row in endings),
    )


def _parts(connection: Connection, batch_team: BatchTeam) -> list[list[list[object]]]:
    condition = {"batch_id": batch_team.batch, "team_id": batch_team.team}
    return [[list(row) for row in connection.execute(query(f"accounting_{part}"), condition)] for part in _PARTS]


def keep_accounting(connection: Connection, batch_team: BatchTeam) -> None:
    """Store the accounting of ``batch_team``, which is about to lose a trace, unless it has lost one before."""
    parts = dict(zip(_PARTS, _parts(connection, batch_team), strict=True))
    values = {"batch_id": batch_team.batch, "team_id": batch_team.team, **parts}
    connection.execute(insert(tables.archived_accounting).values(values).on_conflict_do_nothing())
