"""The comparison of a report's batch with its baseline, cut down to what the page shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import Connection

from eval_pipeline.comparison.baseline import default_baseline
from eval_pipeline.comparison.compare import Breakdown, Comparison, ComparisonError, TaskPair, compare
from eval_pipeline.comparison.outcomes import CellOutcome, Outcomes, outcomes
from eval_pipeline.ids import BatchTeam
from eval_pipeline.reporting.material import Contrast, Moved, Part, Shift
from eval_pipeline.stats.paired import PairedDifference


def contrast_with_baseline(
    connection: Connection, after: Outcomes, against: BatchTeam | None
) -> tuple[Contrast | None, str | None]:
    """The comparison of ``after`` with ``against`` or else its default baseline; or why there is none.

    Raises:
        IdError: there is no batch ``against``.
        ComparisonError: ``against`` cannot be compared with. A default baseline that cannot is a reason, no error.
    """
    if against is not None:
        return contrast_of(compare(outcomes(connection, against), after)), None
    baseline = default_baseline(connection, after.batch_team)
    if baseline is None:
        return None, "There is no batch of the parent team whose contract is the same but for the team."
    try:
        return contrast_of(compare(outcomes(connection, baseline), after)), None
    except ComparisonError:
        return None, "No task has a completed run both here and in the latest batch of the parent team."


def contrast_of(found: Comparison) -> Contrast:
    """What the page shows of ``found``."""
    return Contrast(
        before=found.before.batch_team,
        scripted=found.before.scripted or found.after.scripted,
        verdict=found.verdict,
        words=replace(found, other_differences=()).words(),
        tasks=len(found.pairs),
        unpaired=len(found.unpaired),
        rate_before=found.rate_before,
        rate_after=found.rate_after,
        difference=_shift(found.difference),
        test=found.test,
        p_value=found.p_value,
        tokens=_shift(found.tokens) if found.tokens else None,
        latency_ms=_shift(found.latency_ms) if found.latency_ms else None,
        levels=_parts(found.levels),
        attachments=_parts(found.attachments),
        gained=tuple(map(_moved, found.gained)),
        lost=tuple(map(_moved, found.lost)),
        other_differences=found.other_differences,
    )


def _shift(found: PairedDifference) -> Shift:
    return Shift(found.tasks, found.mean, found.interval)


def _parts(found: Sequence[Breakdown]) -> tuple[Part, ...]:
    return tuple(
        Part(one.name, one.difference.tasks, one.before, one.after, one.difference.mean, one.difference.interval)
        for one in found
    )


def _moved(pair: TaskPair) -> Moved:
    """The task with the attempt on each side that shows best why it moved."""
    gained = pair.difference > 0
    before = _telling(pair.cells_before, right=not gained)
    after = _telling(pair.cells_after, right=gained)
    return Moved(pair.task_id, after.cell.attempt, pair.before, pair.after, before.run_id, after.run_id)


def _telling(cells: Sequence[CellOutcome], *, right: bool) -> CellOutcome:
    completed = [cell for cell in cells if cell.completed]
    return next((cell for cell in completed if bool(cell.success) == right), completed[0])
