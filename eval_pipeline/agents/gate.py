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


class EndpointGate:
    """Lets at most ``most`` requests through at once, fewer while the endpoint refuses. For one event loop.

    ``most`` is what the launch's concurrency asks for. A run makes one request at a time, so that nobody waits here
    unless the endpoint has refused somebody.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._limit = most
        self._inside = 0
        self._answers = 0
        self._not_before_s = 0.0
        self._changed = asyncio.Event()

    @property
    def limit(self) -> int:
        """How many requests may be under way at once right now."""
        return self._limit

    @asynccontextmanager
    async def passing(self) -> AsyncIterator[None]:
        """Wait for a place and for the end of a pause, and hold the place while the block runs."""
        while self._inside >= self._limit:
            self._changed.clear()
            await self._changed.wait()
        self._inside += 1
        try:
            # another refusal may make the pause longer while it lasts
            while (wait_s := self._not_before_s - time.monotonic()) > 0:  # noqa: ASYNC110 - a time, no event
                await asyncio.sleep(wait_s)
            yield
        finally:
            self._inside -= 1
            self._changed.set()

    def answered(self) -> None:
        """The endpoint took a request."""
        self._answers += 1
        if self._answers >= self._limit and self._limit < self._most:
            self._limit += 1
            self._answers = 0
            self._changed.set()

    def refused(self, retry_after_s: float | None) -> None:
        """The endpoint said that it is too much, and perhaps for how long (seconds)."""
        self._limit = max(1, self._limit // 2)
        self._answers = 0
        if retry_after_s is not None:
            self._not_before_s = max(self._not_before_s, time.monotonic() + retry_after_s)
