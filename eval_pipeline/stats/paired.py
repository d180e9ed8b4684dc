"""Two conditions over the same tasks: how far apart, how surely, and what this many tasks can tell at all.

Everything is per task, since the attempts of one task are not independent of each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import comb, sqrt

from eval_pipeline.stats.rates import Interval, standard_error, student_value, z_value

EXACT_SIGN_FLIPS = 14
"""Up to this many tasks that differ, every assignment of signs is counted; beyond, a sample is drawn."""


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """The mean of (after - before) over tasks. ``interval`` is ``None`` where the error cannot be estimated."""

    tasks: int
    mean: float
    standard_error: float | None
    interval: Interval | None


def paired_difference(before: Sequence[float], after: Sequence[float], confidence: float = 0.95) -> PairedDifference:
    """The paired difference of task means, with Student's interval.

    ``d_i = after_i - before_i``, ``SE = sqrt(sum (d_i - d)^2 / (n (n-1)))`` (Miller, arXiv 2411.00640).

    Raises:
        ValueError: the sequences are not of one length, or are empty.
    """
    if len(before) != len(after) or not before:
        raise ValueError(f"{len(before)} tasks before, {len(after)} after: the tasks must be the same")
    differences = [b - a for a, b in zip(before, after, strict=True)]
    n = len(differences)
    mean = sum(differences) / n
    error = standard_error(differences)
    if error is None:
        return PairedDifference(n, mean, None, None)
    half = student_value(0.5 + confidence / 2, n - 1) * error
    return PairedDifference(n, mean, error, Interval(mean - half, mean + half))


def mcnemar_exact(only_before: int, only_after: int) -> float:
    """McNemar's exact test of discordant tasks, two-sided: ``min(1, 2 P(Bin(b+c, 1/2) <= min(b, c)))``."""
    if only_before < 0 or only_after < 0:
        raise ValueError(f"{only_before} and {only_after} discordant tasks")
    n = only_before + only_after
    if n == 0:
        return 1.0
    tail = sum(comb(n, k) for k in range(min(only_before, only_after) + 1))
    return min(1.0, tail / (1 << (n - 1)))


def sign_flip_test(differences: Sequence[float], *, samples: int = 20_000, seed: int = 0) -> float:
    """Permutation test of task differences against 0, two-sided: under no effect each sign is as likely as the other.

    Exact up to 14 tasks that differ, else over ``samples`` draws with the usual +1 in numerator and denominator.
    """
    import numpy as np  # noqa: PLC0415 - as in bootstrap_difference

    moved = np.array([value for value in differences if value != 0], dtype=float)
    if moved.size == 0:
        return 1.0
    observed = abs(float(moved.sum())) - 1e-12
    if moved.size <= EXACT_SIGN_FLIPS:
        signs = np.array(list(product((-1.0, 1.0), repeat=moved.size)))
        return float(np.mean(np.abs(signs @ moved) >= observed))
    random = np.random.default_rng(seed)
    extreme = 0
    for begin in range(0, samples, 1000):
        signs = random.choice((-1.0, 1.0), size=(min(1000, samples - begin), moved.size))
        extreme += int(np.sum(np.abs(signs @ moved) >= observed))
    return (extreme + 1) / (samples + 1)


def bootstrap_difference(
    before: Sequence[float], after: Sequence[float], *, confidence: float = 0.95, samples: int = 5_000, seed: int = 0
) -> Interval | None:
    """BCa interval of the mean paired difference, resampling tasks; ``None`` where all differences are equal."""
    # heavy, and needed by a comparison only, not by the workers that load this with everything else
    import numpy as np  # noqa: PLC0415
    from scipy import stats as scipy_stats  # noqa: PLC0415

    differences = np.asarray(after, dtype=float) - np.asarray(before, dtype=float)
    if differences.size < 2 or np.ptp(differences) == 0:
        return None
    found = scipy_stats.bootstrap(
        (differences,),
        np.mean,
        confidence_level=confidence,
        n_resamples=samples,
        method="BCa",
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return Interval(float(found.low), float(found.high))


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Holm's step-down adjustment of several comparisons (1979); keys are kept, values are adjusted p-values."""
    ordered = sorted(p_values, key=lambda name: p_values[name])
    adjusted: dict[str, float] = {}
    largest = 0.0
    for position, name in enumerate(ordered):
        largest = max(largest, min(1.0, p_values[name] * (len(ordered) - position)))
        adjusted[name] = largest
    return {name: adjusted[name] for name in p_values}


def minimal_detectable_difference(
    tasks: int, *, variance: float | None = None, confidence: float = 0.95, power: float = 0.8
) -> float | None:
    """The smallest difference of pass rates that ``tasks`` paired tasks show with ``power``.

    ``(z_{alpha/2} + z_beta) sqrt(Var(d) / n)``; ``Var(d)`` is 0.25 by default: correlation 0.5 at a pass rate of 0.5.
    165 tasks see about 11 points. ``None`` without tasks.
    """
    if tasks < 1:
        return None
    spread = 0.25 if variance is None else variance
    return (z_value(confidence) + z_value(2 * power - 1)) * sqrt(spread / tasks)
