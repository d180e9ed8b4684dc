"""When a request that failed is sent again. What counts as a failure is decided where the answer is read."""

from __future__ import annotations

import random
from dataclasses import dataclass

from eval_pipeline.agents.completion import ModelFailure


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how long a request is tried again. Times are in seconds.

    ``budget_s`` is what all waits between the tries of one request may add up to.
    """

    retries: int = 4
    base_s: float = 1.0
    longest_s: float = 60.0
    budget_s: float = 300.0

    def wait_s(self, attempt: int, failure: ModelFailure, waited_s: float) -> float | None:
        """The pause after ``attempt`` (from 1) failed, or ``None`` to give up; ``waited_s`` is spent already.

        It is what the endpoint asked for, else exponential. Both are spread, since runs that were turned away together
        would come back together. A wait that the endpoint asks for and the budget does not hold is not begun.
        """
        if not failure.retryable or attempt > self.retries:
            return None
        asked_s = failure.retry_after_s
        if asked_s is None:
            wait_s = random.uniform(0.5, 1.0) * min(self.longest_s, self.base_s * 2 ** (attempt - 1))
            least_s = wait_s
        else:
            wait_s = asked_s + random.uniform(0.0, min(self.base_s, asked_s))
            least_s = asked_s
        return wait_s if waited_s + least_s <= self.budget_s else None
