"""Paired comparison: the stated values, the oracles, and how often it is wrong when it should not be."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests

from eval_pipeline.stats.paired import (
    bootstrap_difference,
    holm,
    mcnemar_exact,
    minimal_detectable_difference,
    paired_difference,
    sign_flip_test,
)

BEFORE = [1, 0, 0, 1, 0, 0, 1, 0, 0, 1]
AFTER = [1, 1, 0, 1, 0, 1, 1, 0, 1, 1]


def test_the_stated_paired_difference() -> None:
    found = paired_difference(BEFORE, AFTER)
    assert found.mean == pytest.approx(0.3)
    assert found.standard_error == pytest.approx(0.152753, abs=1e-6)
    assert found.interval is not None
    assert found.interval.contains(0.3)


@pytest.mark.parametrize(
    ("only_before", "only_after", "p"),
    [
        (10, 3, 0.092285),
        (5, 0, 0.0625),
        (6, 0, 0.03125),
        (20, 8, 0.035698),
        (3, 12, 0.035156),
        (1, 1, 1),
        (0, 0, 1),
        (9, 16, 0.2295),
    ],
)
def test_mcnemars_stated_values(only_before: int, only_after: int, p: float) -> None:
    assert mcnemar_exact(only_before, only_after) == pytest.approx(p, abs=5e-5)


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_agrees_with_statsmodels(only_before: int, only_after: int) -> None:
    if only_before + only_after:
        oracle = mcnemar([[0, only_before], [only_after, 0]], exact=True).pvalue
        assert mcnemar_exact(only_before, only_after) == pytest.approx(oracle)


@given(st.lists(st.sampled_from([-1.0, 1.0]), max_size=12))
def test_with_one_attempt_the_sign_flip_test_is_mcnemars(differences: list[float]) -> None:
    after = differences.count(1.0)
    expected = mcnemar_exact(len(differences) - after, after)
    assert sign_flip_test(differences) == pytest.approx(expected)


def test_a_sampled_sign_flip_test_is_close_to_mcnemar_and_repeats_exactly() -> None:
    differences = [1.0] * 20 + [-1.0] * 8
    assert sign_flip_test(differences) == pytest.approx(mcnemar_exact(8, 20), abs=0.01)
    assert sign_flip_test(differences) == sign_flip_test(differences)


@settings(max_examples=30)  # the oracle takes its time
@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_agrees_with_statsmodels(values: list[float]) -> None:
    p_values = {f"comparison {number}": value for number, value in enumerate(values)}
    adjusted = holm(p_values)
    oracle = multipletests(list(p_values.values()), method="holm")[1]
    assert list(adjusted) == list(p_values)
    assert list(adjusted.values()) == pytest.approx(list(oracle))


def test_the_bootstrap_interval_is_near_students_and_none_on_constant_data() -> None:
    students = paired_difference(BEFORE * 5, AFTER * 5).interval
    found = bootstrap_difference(BEFORE * 5, AFTER * 5)
    assert found is not None
    assert students is not None
    assert (found.low, found.high) == pytest.approx((students.low, students.high), abs=0.05)
    assert bootstrap_difference([0, 0, 0], [1, 1, 1]) is None


@pytest.mark.parametrize(("tasks", "points"), [(165, 10.9), (2181, 3.0), (197, 10.0), (50, 19.8)])
def test_what_a_suite_can_resolve(tasks: int, points: float) -> None:
    found = minimal_detectable_difference(tasks)
    assert found is not None
    assert 100 * found == pytest.approx(points, abs=0.05)


def test_different_tasks_are_refused() -> None:
    with pytest.raises(ValueError, match="same"):
        paired_difference([1, 0], [1])
    with pytest.raises(ValueError, match="same"):
        paired_difference([], [])


def test_one_task_has_no_interval() -> None:
    assert paired_difference([0], [1]).interval is None


@pytest.mark.parametrize(("tasks", "shift"), [(60, 0.0), (165, 0.0), (165, 0.1)])
def test_intervals_cover_as_they_say_and_seldom_call_nothing_an_improvement(tasks: int, shift: float) -> None:
    random = np.random.default_rng(20261130)
    rounds = 3000
    difficulty = random.beta(1, 1, size=(rounds, tasks))
    before = random.random((rounds, tasks)) < difficulty * (1 - shift)
    after = random.random((rounds, tasks)) < difficulty * (1 - shift) + shift
    covered = improved = 0
    for one, other in zip(before.astype(float), after.astype(float), strict=True):
        interval = paired_difference(list(one), list(other)).interval
        if interval is None:
            continue
        covered += interval.contains(shift)
        improved += interval.low > 0
    assert 0.93 <= covered / rounds <= 0.97
    if shift == 0:
        assert improved / rounds <= 0.05
