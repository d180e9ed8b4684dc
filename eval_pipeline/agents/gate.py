"""One gate for all requests of a launch to its endpoint: how many at once, and not before when.

A 429 is the word to every run of the batch, not only to the one that happened to ask. The limit follows it: halved
at a refusal, raised by one after as many answers in a row as it allows at once (additive increase, multiplicative
decrease, as TCP does).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from eval_pipeline.agents.completion import Completion, CompletionRequest, CompletionSource, ModelFailure
from eval_pipeline.errors import ErrorClass


class EndpointGate:
    """Lets at most ``most`` requests through at once, fewer while the endpoint refuses. For one event loop.

    ``most`` is what the launch's concurrency asks for; a run makes one request at a time, apart from nothing.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._limit = most
        self._inside = 0
        self._answers = 0
        self._not_before = 0.0
        self._changed = asyncio.Condition()

    @property
    def limit(self) -> int:
        """How many requests may be under way at once right now."""
        return self._limit

    @asynccontextmanager
    async def passing(self) -> AsyncIterator[None]:
        """Wait for a place and for the end of a pause, and hold the place while the block runs."""
        async with self._changed:
            while self._inside >= self._limit:
                await self._changed.wait()
            self._inside += 1
        try:
            await self._pause_over()
            yield
        finally:
            async with self._changed:
                self._inside -= 1
                self._changed.notify_all()

    async def _pause_over(self) -> None:
        # another refusal may make the pause longer while it lasts
        while (wait_s := self._not_before - time.monotonic()) > 0:  # noqa: ASYNC110 - a time is waited for, no event
            await asyncio.sleep(wait_s)

    def answered(self) -> None:
        """The endpoint took a request."""
        self._answers += 1
        if self._answers >= self._limit and self._limit < self._most:
            self._limit += 1
            self._answers = 0

    def refused(self, retry_after_s: float | None) -> None:
        """The endpoint said that it is too much, and perhaps for how long (seconds)."""
        self._limit = max(1, self._limit // 2)
        self._answers = 0
        if retry_after_s is not None:
            self._not_before = max(self._not_before, time.monotonic() + retry_after_s)


class GatedSource:
    """A source of answers behind the gate; a :class:`~eval_pipeline.agents.completion.CompletionSource`."""

    def __init__(self, source: CompletionSource, gate: EndpointGate) -> None:
        self._source = source
        self._gate = gate

    async def complete(self, request: CompletionRequest) -> Completion:
        async with self._gate.passing():
            try:
                completion = await self._source.complete(request)
            except ModelFailure as failure:
                if failure.error_class is ErrorClass.RATE_LIMIT:
                    self._gate.refused(failure.retry_after_s)
                raise
            self._gate.answered()
            return completion
