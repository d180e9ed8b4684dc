"""Which runs have no trace in the database any more, since their month was archived, and where it is.

Archiving itself belongs to :mod:`eval_pipeline.export.archive`. Whoever reads traces to conclude something from them
asks here first: a trace that is away looks like one in which nothing happened.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, exists, func, select

from eval_pipeline.db import tables
from eval_pipeline.errors import EvalPipelineError
from eval_pipeline.ids import BatchTeam


class TraceArchivedError(EvalPipelineError):
    """Something was asked for that needs traces which are in files."""


@dataclass(frozen=True, slots=True)
class Archived:
    """Where the traces of ``runs`` runs are; ``folder`` is as it was when they were put there."""

    month: str
    folder: str
    runs: int

    def line(self) -> str:
        """What a person is told."""
        of = "the trace of 1 run is" if self.runs == 1 else f"the traces of {self.runs:,} runs are"
        return f"{of} archived in {self.folder}; eval-pipeline archive --restore {self.folder} brings {self.month} back"


@dataclass(frozen=True, slots=True)
class StoredMonth:
    """A row of ``archived_months``. Without ``dropped_at`` the month is in the database as well."""

    month: str
    folder: str
    events: int
    model_calls: int
    texts: int
    archived_at: datetime
    dropped_at: datetime | None


def is_archived() -> ColumnElement[bool]:
    """A condition on ``runs``: the trace of the run is in files only."""
    months, runs = tables.archived_months, tables.runs
    away = months.c.dropped_at.is_not(None) & (runs.c.run_id >= months.c.first_id) & (runs.c.run_id < months.c.end_id)
    return exists().where(away)


def archived_trace(connection: Connection, run_id: UUID) -> Archived | None:
    """Where the trace of a run is, if it is in files only."""
    found = _archived(connection, tables.runs.c.run_id == run_id)
    return found[0] if found else None


def archived_traces(connection: Connection, batch_team: BatchTeam) -> list[Archived]:
    """Where the traces of all tries of ``batch_team`` are that are in files only, by month."""
    runs = tables.runs
    return _archived(connection, (runs.c.batch_id == batch_team.batch) & (runs.c.team_id == batch_team.team))


def _archived(connection: Connection, which: ColumnElement[bool]) -> list[Archived]:
    months, runs = tables.archived_months, tables.runs
    query = (
        select(months.c.month, months.c.folder, func.count())
        .join(runs, (runs.c.run_id >= months.c.first_id) & (runs.c.run_id < months.c.end_id))
        .where(months.c.dropped_at.is_not(None), which)
        .group_by(months.c.month, months.c.folder)
        .order_by(months.c.month)
    )
    return [Archived(*row) for row in connection.execute(query)]


def refuse_archived(connection: Connection, batch_team: BatchTeam) -> None:
    """See that every trace of ``batch_team`` is in the database.

    Raises:
        TraceArchivedError: some are not; says how to bring them back.
    """
    found = archived_traces(connection, batch_team)
    if found:
        raise TraceArchivedError(
            f"{batch_team.key}: {'; '.join(one.line() for one in found)}, which must be done first"
        )


def archived_months(connection: Connection) -> list[StoredMonth]:
    """Every month that was ever archived, in order."""
    months = tables.archived_months
    columns = [months.c[name] for name in StoredMonth.__slots__]
    return [StoredMonth(*row) for row in connection.execute(select(*columns).order_by(months.c.month))]
