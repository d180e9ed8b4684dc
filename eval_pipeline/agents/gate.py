"""One gate for all requests of a launch to its endpoint: how many at once, and not before when.

A 429 is the word to every run of the batch, not only to the one that happened to ask. The limit follows it: halved
at a refusal, raised by one after as many answers in a row as it allows at once (additive increase, multiplicative
decrease, as TCP does).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

LONGEST_HOLD_S = 3600.0
"""No endpoint keeps new runs waiting for longer than this at once; then one asks again. Seconds."""
_WORTH_A_WORD_S = 10.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Passage:
    """A request on its way; ``window`` counts the limits that there have been before the one that it went under."""

    window: int


class EndpointGate:
    """Lets at most ``most`` requests through at once, fewer while the endpoint refuses. For one event loop.

    ``most`` is what the launch's concurrency asks for. A run makes one request at a time, so that nobody waits here
    unless the endpoint has refused somebody.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._limit = most
        self._window = 0
        self._inside = 0
        self._answers = 0
        self._not_before_s = 0.0
        self._no_run_before_s = 0.0
        self._changed = asyncio.Event()

    @property
    def limit(self) -> int:
        """How many requests may be under way at once right now."""
        return self._limit

    @asynccontextmanager
    async def passing(self) -> AsyncIterator[Passage]:
        """Wait for a place and for the end of a pause, and hold the place while the block runs."""
        while self._inside >= self._limit:
            self._changed.clear()
            await self._changed.wait()
        self._inside += 1
        try:
            # another refusal may make the pause longer while it lasts
            while (wait_s := self._not_before_s - time.monotonic()) > 0:  # noqa: ASYNC110 - a time, no event
                await asyncio.sleep(wait_s)
            yield Passage(self._window)
        finally:
            self._inside -= 1
            self._changed.set()

    async def may_begin(self) -> None:
        """Wait until the endpoint wants to hear of new runs."""
        while (wait_s := self._no_run_before_s - time.monotonic()) > 0:  # noqa: ASYNC110 - a time, no event
            await asyncio.sleep(wait_s)

    def answered(self, passage: Passage) -> None:
        """The endpoint took a request."""
        if passage.window != self._window:
            return
        self._answers += 1
        if self._answers >= self._limit and self._limit < self._most:
            self._limit += 1
            self._answers = 0
            self._changed.set()

    def refused(self, passage: Passage, retry_after_s: float | None, *, bearable_s: float) -> None:
        """The endpoint said that it is too much, and perhaps for how long (seconds).

        A run waits for ``bearable_s`` at most. A longer pause is not imposed on runs that are under way: each of them
        finds out for itself; but no new run begins before it is over.
        """
        # those that went together are refused together: that is one word, not one for each
        if passage.window == self._window:
            self._window += 1
            self._limit = max(1, self._limit // 2)
            self._answers = 0
        if retry_after_s is None:
            return
        now_s = time.monotonic()
        hold_s = min(retry_after_s, LONGEST_HOLD_S)
        if hold_s >= _WORTH_A_WORD_S and self._no_run_before_s < now_s:
            _log.warning("the endpoint asks for a pause of %.0f s; no run begins before it is over", retry_after_s)
        self._no_run_before_s = max(self._no_run_before_s, now_s + hold_s)
        if retry_after_s <= bearable_s:
            self._not_before_s = max(self._not_before_s, now_s + retry_after_s)
