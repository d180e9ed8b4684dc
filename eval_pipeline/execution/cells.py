"""What execution talks about: a cell to be run, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from eval_pipeline.benchmarks.base import Task
from eval_pipeline.ids import BatchTeam, TaskAttempt


@dataclass(frozen=True, slots=True)
class Cell:
    """One (task, attempt) of one ``batch@team``."""

    batch_team: BatchTeam
    task: Task
    attempt: int

    @property
    def task_attempt(self) -> TaskAttempt:
        return TaskAttempt(self.task.task_id, self.attempt)


class CellEnd(StrEnum):
    """How a launch left a cell."""

    COMPLETED = "completed"
    CRASHED = "crashed"
    SKIPPED = "skipped"
    """A completed run was there before; nothing was called and nothing paid."""
    LEFT = "left"
    """A crashed run was there before and this launch was not asked to retry it."""
    BUSY = "busy"
    """Another worker is at it right now."""
    NOT_STARTED = "not started"
    """The endpoint's circuit is open; the cell has no row and cost nothing."""


@dataclass(frozen=True, slots=True)
class RunSummary:
    """The figures of one run as people read them: the live try, with usage over all tries.

    Latency is in milliseconds; ``cost`` in the currency of the price settings, ``None`` without prices. Tokens are
    ``None`` where the endpoint did not report them.
    """

    run_id: UUID
    task_id: str
    attempt: int
    try_no: int
    status: str
    success: bool | None
    format_valid: bool | None
    final_answer: str | None
    gold: str
    terminated_by: str | None
    error_class: str | None
    error_message: str | None
    turns: int
    tool_calls: int
    tool_errors: int
    tokens_in: int | None
    tokens_out: int | None
    all_tokens: int | None
    model_calls: int
    latency_ms: int | None
    cost: float | None
    events_dropped: int


@dataclass(frozen=True, slots=True)
class CellResult:
    """What a launch did with one cell. ``run`` is there whenever a run of the cell has ended."""

    task_attempt: TaskAttempt
    end: CellEnd
    run: RunSummary | None = None
    retried: bool = False
    message: str = ""
