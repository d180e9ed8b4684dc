"""pass@k and pass^k: the stated values, the refusal of k > n, and the estimate's freedom from bias."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.stats.passk import mean_pass_at_k, mean_pass_hat_k, pass_at_k, pass_hat_k


@pytest.mark.parametrize(
    ("n", "c", "k", "at", "hat"),
    [
        (5, 2, 1, 0.4, 0.4),
        (5, 2, 3, 0.9, 0),
        (10, 3, 2, 0.533333, 0.066667),
        (10, 3, 5, 0.916667, 0),
        (10, 9, 10, 1, 0),
        (4, 2, 2, 0.833333, 0.166667),
        (8, 6, 4, 1, 0.214286),
    ],
)
def test_the_stated_values(n: int, c: int, k: int, at: float, hat: float) -> None:
    assert pass_at_k(n, c, k) == pytest.approx(at, abs=1e-6)
    assert pass_hat_k(n, c, k) == pytest.approx(hat, abs=1e-6)


@pytest.mark.parametrize("estimate", [pass_at_k, pass_hat_k])
@pytest.mark.parametrize(("n", "c", "k"), [(1, 0, 3), (1, 1, 2), (0, 0, 1), (3, 1, 0), (3, 4, 1), (3, -1, 1)])
def test_what_cannot_be_estimated_is_refused(estimate, n: int, c: int, k: int) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match="attempts"):
        estimate(n, c, k)


@given(st.integers(1, 9).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
def test_both_are_the_mean_over_every_choice_of_k_attempts(case: tuple[int, int, int]) -> None:
    n, c, k = case
    attempts = [True] * c + [False] * (n - c)
    chosen = list(combinations(attempts, k))
    assert pass_at_k(n, c, k) == pytest.approx(sum(any(one) for one in chosen) / len(chosen))
    assert pass_hat_k(n, c, k) == pytest.approx(sum(all(one) for one in chosen) / len(chosen))


def test_a_task_with_too_few_attempts_is_left_out_of_the_mean() -> None:
    assert mean_pass_at_k([(3, 1), (1, 1)], 3) == 1
    assert mean_pass_hat_k([(3, 3), (3, 0), (2, 2)], 3) == 0.5
    assert mean_pass_at_k([(1, 1)], 2) is None
