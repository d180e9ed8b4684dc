"""Pass rates of runs with their intervals, over completed and over planned runs. Pure; no wording."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from eval_pipeline.reporting.material import Run
from eval_pipeline.stats.rates import Interval, bounds, clustered_standard_error, student_value, wilson, z_value


@dataclass(frozen=True, slots=True)
class Rate:
    """A share from 0 to 1 with its 95 % interval; ``method`` says how the interval was made."""

    successes: int
    of: int
    value: float
    interval: Interval
    method: str


def pass_rate(runs: Sequence[Run]) -> Rate | None:
    """pass@1 over the completed ones of ``runs``; ``None`` without any.

    Wilson's interval where every task has one completed attempt. With more, the attempts of a task are one cluster:
    Student's interval with the clustered error (Miller, arXiv 2411.00640). Where every task has the same rate that
    error is 0 and says nothing, so the interval is Wilson's with one trial per task.
    """
    completed = [run for run in runs if run.completed]
    if not completed:
        return None
    values = [float(bool(run.success)) for run in completed]
    tasks = [run.cell.task_id for run in completed]
    n, mean, clusters = len(values), sum(values) / len(values), len(set(tasks))
    successes = round(sum(values))
    if clusters == n:
        return Rate(successes, n, mean, wilson(successes, n), "Wilson")
    error = clustered_standard_error(values, tasks)
    if not error:
        return Rate(successes, n, mean, _wilson_of_share(mean, clusters), "Wilson, one trial per task")
    half = student_value(0.975, clusters - 1) * error
    interval = Interval(max(0.0, mean - half), min(1.0, mean + half))
    return Rate(successes, n, mean, interval, "clustered by task")


def planned_rate(runs: Sequence[Run]) -> Rate | None:
    """pass@1 over all of ``runs``, between what it would be if those without a verdict were all wrong, or all right."""
    if not runs:
        return None
    completed = sum(run.completed for run in runs)
    successes = sum(bool(run.success) for run in runs)
    return Rate(successes, len(runs), successes / len(runs), bounds(successes, completed, len(runs)), "bounds")


def _wilson_of_share(share: float, n: int) -> Interval:
    """Wilson's interval of a share that is not a whole number of trials."""
    z = z_value(0.95)
    centre, scale = share + z * z / (2 * n), 1 + z * z / n
    half = z * sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return Interval(max(0.0, (centre - half) / scale), min(1.0, (centre + half) / scale))


def attempts(runs: Sequence[Run]) -> int:
    """The most attempts that a task of ``runs`` has."""
    return max((run.cell.attempt for run in runs), default=0)
