"""Intervals and errors of a rate against the stated values and statsmodels."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.proportion import proportion_confint

from eval_pipeline.stats.rates import bounds, clustered_standard_error, standard_error, task_rates, wilson

VALUES = [1, 1, 1, 0, 0, 0, 1, 0, 1, 1]
CLUSTERS = [0, 0, 0, 1, 1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [(18, 20, 0.6990, 0.9721), (0, 20, 0, 0.1611), (20, 20, 0.8389, 1), (50, 100, 0.4038, 0.5962)],
)
def test_wilsons_stated_values(successes: int, n: int, low: float, high: float) -> None:
    found = wilson(successes, n)
    assert (found.low, found.high) == pytest.approx((low, high), abs=5e-5)


@given(
    st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.sampled_from([0.8, 0.95, 0.99])
)
def test_wilson_agrees_with_statsmodels_and_stays_in_range(case: tuple[int, int], confidence: float) -> None:
    successes, n = case
    found = wilson(successes, n, confidence)
    low, high = proportion_confint(successes, n, alpha=1 - confidence, method="wilson")
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-9)
    assert 0 <= found.low <= successes / n <= found.high <= 1
    assert found.low < found.high


def test_the_errors_have_the_stated_values() -> None:
    assert standard_error(VALUES) == pytest.approx(0.163299, abs=1e-6)
    assert clustered_standard_error(VALUES, CLUSTERS, small=False) == pytest.approx(0.231517, abs=1e-6)
    assert clustered_standard_error(VALUES, CLUSTERS) == pytest.approx(0.267333, abs=1e-6)


def test_attempts_in_clusters_of_one_task_have_the_error_of_the_task_means() -> None:
    attempts = {"a": [1, 1], "b": [0, 1], "c": [0, 0]}
    values = [value for verdicts in attempts.values() for value in verdicts]
    clusters = [task for task, verdicts in attempts.items() for _ in verdicts]
    means = list(
        task_rates({task: [bool(value) for value in verdicts] for task, verdicts in attempts.items()}).values()
    )
    assert clustered_standard_error(values, clusters) == pytest.approx(standard_error(means))


@pytest.mark.parametrize("values", [[], [1.0]])
def test_there_is_no_error_of_fewer_than_two_values(values: list[float]) -> None:
    assert standard_error(values) is None
    assert clustered_standard_error(values, list(range(len(values)))) is None


@pytest.mark.parametrize(("successes", "n"), [(1, 0), (0, 0), (5, 4), (-1, 4)])
def test_impossible_counts_are_refused(successes: int, n: int) -> None:
    with pytest.raises(ValueError, match="of"):
        wilson(successes, n)


def test_the_bounds_count_what_has_no_verdict_as_wrong_and_as_right() -> None:
    found = bounds(6, 8, 10)
    assert (found.low, found.high) == (0.6, 0.8)
    assert bounds(10, 10, 10).low == bounds(10, 10, 10).high == 1
    with pytest.raises(ValueError, match="of"):
        bounds(9, 8, 10)
