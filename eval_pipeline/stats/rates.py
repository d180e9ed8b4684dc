"""Intervals of a rate, and its error when attempts of one task belong together."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist


@dataclass(frozen=True, slots=True)
class Interval:
    """A two-sided interval; ``low`` and ``high`` are in the unit of what was estimated."""

    low: float
    high: float

    def contains(self, value: float) -> bool:
        return self.low <= value <= self.high


def z_value(confidence: float) -> float:
    """The two-sided normal quantile: 1.96 for 0.95."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is {confidence}; it must be between 0 and 1")
    return NormalDist().inv_cdf(0.5 + confidence / 2)


def student_value(p: float, degrees: int) -> float:
    """The ``p`` quantile of Student's distribution with that many degrees of freedom, at least one."""
    # heavy, and needed by figures of a batch only, not by the workers that load this with everything else
    from scipy.special import stdtrit  # noqa: PLC0415

    return float(stdtrit(degrees, p))


def wilson(successes: int, n: int, confidence: float = 0.95) -> Interval:
    """Wilson's score interval (1927) of a rate; never outside 0 to 1, and of sensible width at 0 and at n.

    Raises:
        ValueError: no trial, or more successes than trials.
    """
    if n < 1 or not 0 <= successes <= n:
        raise ValueError(f"{successes} successes of {n}")
    z = z_value(confidence)
    rate = successes / n
    denominator = 1 + z * z / n
    centre = (rate + z * z / (2 * n)) / denominator
    half = z * sqrt(rate * (1 - rate) / n + z * z / (4 * n * n)) / denominator
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == n else min(1.0, centre + half)
    return Interval(low, high)


def standard_error(values: Sequence[float]) -> float | None:
    """``sqrt(sum (s_i - s)^2 / (n (n-1)))``; ``None`` for fewer than two values."""
    n = len(values)
    if n < 2:
        return None
    mean = sum(values) / n
    return sqrt(sum((value - mean) ** 2 for value in values) / (n * (n - 1)))


def clustered_standard_error(
    values: Sequence[float], clusters: Sequence[Hashable], *, small: bool = True
) -> float | None:
    """The error of a mean whose values belong together in clusters: the attempts of one task.

    ``sqrt(sum_c (sum_{i in c} (s_i - s))^2) / n`` (Miller, arXiv 2411.00640), times ``sqrt(C/(C-1))`` when ``small``,
    as statsmodels does. ``None`` for fewer than two clusters.
    """
    if len(values) != len(clusters):
        raise ValueError(f"{len(values)} values in {len(clusters)} clusters")
    n = len(values)
    sums: dict[Hashable, float] = {}
    mean = sum(values) / n if n else 0.0
    for value, cluster in zip(values, clusters, strict=True):
        sums[cluster] = sums.get(cluster, 0.0) + value - mean
    if len(sums) < 2:
        return None
    error = sqrt(sum(total * total for total in sums.values())) / n
    return error * sqrt(len(sums) / (len(sums) - 1)) if small else error


def bounds(successes: int, completed: int, planned: int) -> Interval:
    """The rate over all that was planned if everything without a verdict were wrong, or right.

    Raises:
        ValueError: the counts do not fit.
    """
    if not 0 <= successes <= completed <= planned or planned < 1:
        raise ValueError(f"{successes} of {completed} of {planned}")
    return Interval(successes / planned, (successes + planned - completed) / planned)


def task_rates(verdicts: Mapping[Hashable, Sequence[bool]]) -> dict[Hashable, float]:
    """The share of right attempts of every task that has one."""
    return {task: sum(attempts) / len(attempts) for task, attempts in verdicts.items() if attempts}
