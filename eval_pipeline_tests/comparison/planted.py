"""Outcomes with planted verdicts: what a test says that a batch came to, without a database."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from eval_pipeline.comparison.outcomes import CellOutcome, Outcomes
from eval_pipeline.ids import BatchTeam, TaskAttempt

Verdict = bool | None
"""Right, wrong, or crashed."""


def cell(task_id: str, verdict: Verdict, attempt: int = 1, **columns: Any) -> CellOutcome:
    completed = verdict is not None
    values: dict[str, Any] = {
        "task_hash": f"hash of {task_id}",
        "level": 1,
        "file_name": None,
        "run_id": None,
        "status": "completed" if completed else "crashed",
        "success": verdict,
        "format_valid": verdict,
        "terminated_by": "approve" if completed else None,
        "error_class": None if completed else "connection",
        "all_tokens": 1000,
        "cost": None,
        "latency_ms": 2000,
    }
    return CellOutcome(TaskAttempt(task_id, attempt), **(values | columns))


def outcomes_of(key: str, cells: Iterable[CellOutcome], **more: Any) -> Outcomes:
    batch_team = BatchTeam.parse(key)
    contract = {"suite": "gaia", "suite.hash": "s" * 64, "team": batch_team.team, "model": "glm", "max_messages": 30}
    values: dict[str, Any] = {
        "suite": "gaia",
        "suite_hash": "s" * 64,
        "scripted": False,
        "contract": contract | more.pop("contract", {}),
    }
    return Outcomes(batch_team, cells=tuple(cells), **(values | more))


def batch(key: str, verdicts: Mapping[str, Verdict | list[Verdict]], **more: Any) -> Outcomes:
    """A batch whose tasks have one verdict, or one for each attempt."""
    cells = [
        cell(task_id, one, attempt)
        for task_id, given in verdicts.items()
        for attempt, one in enumerate(given if isinstance(given, list) else [given], start=1)
    ]
    return outcomes_of(key, cells, **more)


def tasks(number: int, verdict: Callable[[int], Verdict]) -> dict[str, Verdict | list[Verdict]]:
    return {f"t{position:03}": verdict(position) for position in range(number)}
