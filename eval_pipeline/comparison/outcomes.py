"""What one ``batch@team`` came to, cell by cell, read once and then compared, gated or reported."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import PurePosixPath
from uuid import UUID

from sqlalchemy import Connection, select

from eval_pipeline.contamination.store import flagged_runs
from eval_pipeline.db import tables
from eval_pipeline.db.sqlfiles import query
from eval_pipeline.errors import IdError
from eval_pipeline.ids import BatchTeam, TaskAttempt, shown
from eval_pipeline.jsontypes import JsonValue

MOST_CRASHED = 0.05
"""A batch with a larger share of crashed cells is called not comparable."""
LEFT_OUT = "left out"
"""The status of a cell whose run is flagged for contamination, where such runs were asked to be left out."""


@dataclass(frozen=True, slots=True)
class CellOutcome:
    """One planned cell. What its run has not said is ``None``; latency is in milliseconds, tokens over all tries."""

    cell: TaskAttempt
    task_hash: str
    level: int
    file_name: str | None
    run_id: UUID | None
    status: str | None
    success: bool | None
    format_valid: bool | None
    terminated_by: str | None
    error_class: str | None
    all_tokens: int | None
    cost: float | None
    latency_ms: int | None

    @property
    def completed(self) -> bool:
        return self.status == "completed"

    @property
    def attachment_kind(self) -> str:
        """The ending of the attached file's name, or ``none``."""
        return PurePosixPath(self.file_name).suffix.lower().lstrip(".") or "other" if self.file_name else "none"


@dataclass(frozen=True)
class Outcomes:
    """Every planned cell of one ``batch@team``, with the contract that it ran under."""

    batch_team: BatchTeam
    suite: str
    suite_hash: str
    scripted: bool
    contract: Mapping[str, JsonValue]
    cells: tuple[CellOutcome, ...]
    left_out: int | None = None
    """How many runs are left out as contaminated; ``None`` where nobody asked for that."""

    @property
    def planned(self) -> int:
        return len(self.cells)

    @cached_property
    def completed(self) -> int:
        return sum(cell.completed for cell in self.cells)

    @cached_property
    def crashed(self) -> int:
        return sum(cell.status == "crashed" for cell in self.cells)

    @cached_property
    def successes(self) -> int:
        return sum(bool(cell.success) for cell in self.cells)

    @property
    def crashed_share(self) -> float:
        return self.crashed / self.planned if self.planned else 0.0

    @property
    def comparable(self) -> bool:
        """Whether enough of it has a verdict to be held against another."""
        return self.completed > 0 and self.crashed_share <= MOST_CRASHED

    @cached_property
    def by_task(self) -> dict[str, tuple[CellOutcome, ...]]:
        """The cells of every task, in the order of the plan."""
        tasks: dict[str, list[CellOutcome]] = {}
        for cell in self.cells:
            tasks.setdefault(cell.cell.task_id, []).append(cell)
        return {task_id: tuple(cells) for task_id, cells in tasks.items()}


def outcomes(connection: Connection, batch_team: BatchTeam, *, without_flagged: bool = False) -> Outcomes:
    """The outcomes of ``batch_team`` as they are now.

    ``without_flagged`` takes the verdicts of runs away whose contamination is decided; they stay planned and are
    counted in ``left_out``.

    Raises:
        IdError: there is no such batch, or it never ran under this team.
        ContaminationError: flagged runs are to be left out, and not every run has been looked at.
    """
    batches = tables.batches
    batch = connection.execute(
        select(batches).where(batches.c.batch_id == batch_team.batch, batches.c.team_id == batch_team.team)
    ).one_or_none()
    if batch is None:
        raise IdError(f"there is no batch {shown(batch_team.key)}; eval-pipeline status lists those there are")
    rows = connection.execute(
        query("cell_outcomes"), {"batch_id": batch_team.batch, "team_id": batch_team.team}
    ).mappings()
    cells = tuple(
        CellOutcome(
            cell=TaskAttempt(row["task_id"], row["attempt"]),
            **{name: row[name] for name in CellOutcome.__slots__ if name != "cell"},
        )
        for row in rows
    )
    found = Outcomes(batch_team, batch.suite, batch.suite_hash, batch.scripted, batch.contract, cells)
    return _without(found, flagged_runs(connection, batch_team)) if without_flagged else found


def _without(found: Outcomes, flagged: Collection[UUID]) -> Outcomes:
    cells = tuple(
        replace(cell, status=LEFT_OUT, success=None, format_valid=None) if cell.run_id in flagged else cell
        for cell in found.cells
    )
    return replace(found, cells=cells, left_out=sum(cell.status == LEFT_OUT for cell in cells))
