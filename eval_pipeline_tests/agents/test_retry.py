"""When a request that failed is sent again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.agents.completion import ModelFailure
from eval_pipeline.agents.retry import RetryPolicy
from eval_pipeline.errors import ErrorClass


def _failure(*, retryable: bool = True, retry_after_s: float | None = None) -> ModelFailure:
    return ModelFailure(ErrorClass.SERVER_ERROR, "no", retryable=retryable, retry_after_s=retry_after_s)


@pytest.mark.parametrize(("attempt", "most_s"), [(1, 1.0), (2, 2.0), (3, 4.0), (7, 60.0), (100, 60.0)])
def test_waits_double_up_to_the_longest_and_are_spread(attempt: int, most_s: float) -> None:
    waits = [RetryPolicy(retries=100).wait_s(attempt, _failure(), 0.0) for _ in range(200)]
    assert all(wait is not None and most_s / 2 <= wait <= most_s for wait in waits)
    assert len(set(waits)) > 100


@pytest.mark.parametrize("attempt", [4, 5])
def test_there_are_as_many_retries_as_are_set(attempt: int) -> None:
    assert (RetryPolicy(retries=4).wait_s(attempt, _failure(), 0.0) is None) is (attempt == 5)


def test_what_asking_again_cannot_help_is_not_asked_again() -> None:
    assert RetryPolicy().wait_s(1, _failure(retryable=False), 0.0) is None


@given(asked_s=st.floats(0, 1000), waited_s=st.floats(0, 1000))
def test_the_endpoint_s_wait_is_kept_to_or_not_begun(asked_s: float, waited_s: float) -> None:
    policy = RetryPolicy(budget_s=300.0)
    wait_s = policy.wait_s(1, _failure(retry_after_s=asked_s), waited_s)
    if asked_s + waited_s > policy.budget_s:
        assert wait_s is None
    else:
        assert wait_s is not None
        assert asked_s <= wait_s <= asked_s + policy.base_s


@given(retries=st.integers(0, 50), budget_s=st.floats(0, 500))
def test_all_waits_of_a_request_stay_within_the_budget(retries: int, budget_s: float) -> None:
    policy = RetryPolicy(retries=retries, budget_s=budget_s)
    waited_s, attempt = 0.0, 1
    while (wait_s := policy.wait_s(attempt, _failure(), waited_s)) is not None:
        waited_s += wait_s
        attempt += 1
    assert waited_s <= budget_s
    assert attempt <= retries + 1


def test_runs_that_were_turned_away_together_do_not_come_back_together() -> None:
    waits = {RetryPolicy().wait_s(1, _failure(retry_after_s=5.0), 0.0) for _ in range(50)}
    assert len(waits) > 25
