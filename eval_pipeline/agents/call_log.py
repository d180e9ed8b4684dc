"""What one run asks of its model: the calls that have ended, with their sums, and those under way.

Making calls belongs to :mod:`eval_pipeline.agents.role_client`, storing them to :mod:`eval_pipeline.tracing`.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from eval_pipeline.agents.completion import ModelFailure, Progress
from eval_pipeline.tracing.items import ModelCall


@dataclass(frozen=True, slots=True)
class SelectorAttempt:
    """What the selector wrote once, and the participant's name that AutoGen was handed (empty for none)."""

    text: str
    chosen: str


@dataclass(slots=True)
class OpenRequest:
    """A request that has not been answered yet, over all its tries.

    ``since_s`` is when the current try began (monotonic, seconds); ``failure`` is how the latest one before it ended;
    ``held`` is whether it is still waiting at the launch's gate.
    """

    progress: Progress
    since_s: float = field(default_factory=time.monotonic)
    failure: ModelFailure | None = None
    held: bool = False

    def silent_s(self) -> float:
        """How long the endpoint has said nothing to the current try, in seconds."""
        return time.monotonic() - max(self.since_s, self.progress.heard_at_s or 0.0)


@dataclass
class CallLog:
    """Every model call of one run; the truth about what a run has spent.

    Sums are ``None`` while no call has told its usage: unknown, not free.
    """

    on_call: Callable[[ModelCall], None]
    calls: int = 0
    tokens_in: int | None = None
    tokens_out: int | None = None
    last_error: Exception | None = None
    selector_attempts: deque[SelectorAttempt] = field(default_factory=deque)
    open_requests: list[OpenRequest] = field(default_factory=list)
    tasks: set[asyncio.Task[object]] = field(default_factory=set)
    """The tasks that wait for answers; a run that has ended must have none left."""

    def add(self, call: ModelCall) -> None:
        self.calls += 1
        if call.usage is not None:
            self.tokens_in = _added(self.tokens_in, call.usage.prompt_tokens)
            self.tokens_out = _added(self.tokens_out, call.usage.completion_tokens)
        self.on_call(call)

    def oldest_request(self) -> OpenRequest | None:
        """The request that has been open the longest, if any is."""
        return self.open_requests[0] if self.open_requests else None


def _added(total: int | None, count: int | None) -> int | None:
    return total if count is None else (total or 0) + count
