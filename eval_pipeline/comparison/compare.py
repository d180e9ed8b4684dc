"""Compares two ``batch@team`` task by task. Pure; the words claim no more than the interval allows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

from eval_pipeline.comparison.outcomes import MOST_CRASHED, CellOutcome, Outcomes
from eval_pipeline.errors import EvalPipelineError
from eval_pipeline.execution.contract import differences
from eval_pipeline.stats.paired import (
    PairedDifference,
    mcnemar_exact,
    minimal_detectable_difference,
    paired_difference,
    sign_flip_test,
)

_SURE = 0.05

TEAM_FIELDS = frozenset({"team", "team.contract_hash"})
"""What two contracts may differ in when only the team was changed."""


class ComparisonError(EvalPipelineError):
    """Two batches that cannot be held against each other; says why and what to do."""


@dataclass(frozen=True, slots=True)
class TaskPair:
    """One task on both sides: the share of right attempts, and the cells behind it."""

    task_id: str
    before: float
    after: float
    cells_before: tuple[CellOutcome, ...]
    cells_after: tuple[CellOutcome, ...]

    @property
    def difference(self) -> float:
        return self.after - self.before


@dataclass(frozen=True, slots=True)
class Breakdown:
    """The same comparison over a part of the tasks, such as one level."""

    name: str
    difference: PairedDifference
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """``after`` held against ``before``. Rates are shares from 0 to 1 over tasks that have a verdict on both sides."""

    before: Outcomes
    after: Outcomes
    pairs: tuple[TaskPair, ...]
    unpaired: tuple[str, ...]
    difference: PairedDifference
    test: str
    p_value: float
    tokens: PairedDifference | None
    latency_ms: PairedDifference | None
    levels: tuple[Breakdown, ...]
    attachments: tuple[Breakdown, ...]
    other_differences: tuple[str, ...]
    resolves: float | None

    @property
    def rate_before(self) -> float:
        return fmean(pair.before for pair in self.pairs)

    @property
    def rate_after(self) -> float:
        return fmean(pair.after for pair in self.pairs)

    @property
    def gained(self) -> tuple[TaskPair, ...]:
        return tuple(pair for pair in self.pairs if pair.difference > 0)

    @property
    def lost(self) -> tuple[TaskPair, ...]:
        return tuple(pair for pair in self.pairs if pair.difference < 0)

    @property
    def comparable(self) -> bool:
        return self.before.comparable and self.after.comparable

    @property
    def verdict(self) -> str:
        """One of better, worse, no difference shown, not comparable."""
        interval = self.difference.interval
        if not self.comparable:
            return "not comparable"
        if interval is not None and interval.low > 0:
            return "better"
        if interval is not None and interval.high < 0:
            return "worse"
        return "no difference shown"

    def words(self) -> str:
        """The verdict in a sentence or two, with the figures that carry it; a scripted model is named as one."""
        after, before = self.after.batch_team.key, self.before.batch_team.key
        points = f"{100 * self.difference.mean:+.1f} points"
        interval = self.difference.interval
        if interval is not None:
            points += f" (95 % interval {100 * interval.low:+.1f} to {100 * interval.high:+.1f})"
        over = f"over {len(self.pairs)} tasks"
        match self.verdict:
            case "not comparable":
                sides = [side for side in (self.before, self.after) if not side.comparable]
                shares = ", ".join(f"{side.batch_team.key} {100 * side.crashed_share:.1f} % crashed" for side in sides)
                limit = f"at most {100 * MOST_CRASHED:.0f} % may"
                said = f"Not comparable: {shares}; {limit}. Retry the crashed runs first."
            case "no difference shown":
                said = f"No difference is shown between {after} and {before}: {points} {over}"
                if self.resolves:
                    said += f"; {len(self.pairs)} tasks can resolve about {100 * self.resolves:.0f} points"
                said += "."
            case verdict:
                said = f"{after} is {verdict} than {before}: {points} {over}"
                if self.p_value > _SURE:
                    # so few tasks differ that the exact test does not follow the interval
                    said += f"; the {self.test} test alone would not say so (p = {self.p_value:.3f}), so run more tasks"
                said += "."
        if self.other_differences:
            said += (
                f" More than the team differs ({'; '.join(self.other_differences)}), so nothing is attributed to it."
            )
        said += self._left_out()
        return f"{said} (Scripted model.)" if self.before.scripted or self.after.scripted else said

    def _left_out(self) -> str:
        sides = [side for side in (self.before, self.after) if side.left_out is not None]
        if not sides:
            return ""
        counts = " and ".join(f"{side.left_out} of {side.planned} runs of {side.batch_team.key}" for side in sides)
        return f" Left out as contaminated: {counts}."


def compare(before: Outcomes, after: Outcomes, *, common: bool = False) -> Comparison:
    """Hold ``after`` against ``before``.

    ``common`` cuts two different suites down to the tasks whose content is the same on both sides.

    Raises:
        ComparisonError: other suite hashes without ``common``, or no task has a verdict on both sides.
    """
    if before.suite_hash != after.suite_hash and not common:
        raise ComparisonError(
            f"{before.batch_team.key} and {after.batch_team.key} ran over different tasks "
            f"(suite hashes {before.suite_hash[:12]} and {after.suite_hash[:12]}); "
            "compare their common tasks with --common"
        )
    pairs, unpaired = _pairs(before, after)
    if not pairs:
        raise ComparisonError(f"no task has a completed run in both {before.batch_team.key} and {after.batch_team.key}")
    single = all(len(pair.cells_before) == len(pair.cells_after) == 1 for pair in pairs)
    if single:
        lost, gained = (sum(pair.difference * sign > 0 for pair in pairs) for sign in (-1, 1))
        test, p_value = "McNemar exact", mcnemar_exact(lost, gained)
    else:
        test, p_value = "sign-flip permutation", sign_flip_test([pair.difference for pair in pairs])
    difference = _difference(pairs)
    error = difference.standard_error
    variance = error**2 * len(pairs) if error else None
    return Comparison(
        before=before,
        after=after,
        pairs=pairs,
        unpaired=unpaired,
        difference=difference,
        test=test,
        p_value=p_value,
        tokens=_of_cells(pairs, lambda cell: cell.all_tokens),
        latency_ms=_of_cells(pairs, lambda cell: cell.latency_ms if cell.completed else None),
        levels=_breakdown(pairs, lambda cell: f"level {cell.level}"),
        attachments=_breakdown(pairs, lambda cell: cell.attachment_kind),
        other_differences=tuple(
            text
            for text in differences(before.contract, after.contract)
            if text.split(":", 1)[0] not in TEAM_FIELDS and not (common and text.startswith("suite"))
        ),
        resolves=minimal_detectable_difference(len(pairs), variance=variance),
    )


def _pairs(before: Outcomes, after: Outcomes) -> tuple[tuple[TaskPair, ...], tuple[str, ...]]:
    pairs, unpaired = [], []
    for task_id, cells_before in before.by_task.items():
        cells_after = after.by_task.get(task_id, ())
        if not cells_after or cells_after[0].task_hash != cells_before[0].task_hash:
            continue
        rate_before, rate_after = _rate(cells_before), _rate(cells_after)
        if rate_before is None or rate_after is None:
            unpaired.append(task_id)
        else:
            pairs.append(TaskPair(task_id, rate_before, rate_after, cells_before, cells_after))
    return tuple(pairs), tuple(unpaired)


def _rate(cells: Sequence[CellOutcome]) -> float | None:
    verdicts = [bool(cell.success) for cell in cells if cell.completed]
    return fmean(verdicts) if verdicts else None


def _difference(pairs: Sequence[TaskPair]) -> PairedDifference:
    return paired_difference([pair.before for pair in pairs], [pair.after for pair in pairs])


def _of_cells(pairs: Sequence[TaskPair], figure: Callable[[CellOutcome], int | None]) -> PairedDifference | None:
    """The difference of a figure's task means, over tasks that have it on both sides."""
    before, after = [], []
    for pair in pairs:
        sides = [
            [value for cell in cells if (value := figure(cell)) is not None]
            for cells in (pair.cells_before, pair.cells_after)
        ]
        if all(sides):
            before.append(fmean(sides[0]))
            after.append(fmean(sides[1]))
    return paired_difference(before, after) if before else None


def _breakdown(pairs: Sequence[TaskPair], name: Callable[[CellOutcome], str]) -> tuple[Breakdown, ...]:
    groups: dict[str, list[TaskPair]] = {}
    for pair in pairs:
        groups.setdefault(name(pair.cells_after[0]), []).append(pair)
    return tuple(
        Breakdown(
            group,
            _difference(members),
            fmean(pair.before for pair in members),
            fmean(pair.after for pair in members),
        )
        for group, members in sorted(groups.items())
    )
