"""Hands on what became of cells, in order, beside the runs that are still under way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from eval_pipeline.execution.cells import CellResult
from eval_pipeline.execution.patience import in_database

_GATHER_S = 0.05
"""How long a result waits for others: telling Dagster of one costs nearly as much as telling it of ten."""
_AT_ONCE = 100
"""Results in one call: what waits together is told together, and no call takes so long that others wait for it."""


class Reports:
    """A queue of results between the runs and ``on_results``, which is called with one list at a time."""

    def __init__(self, on_results: Callable[[Sequence[CellResult]], None]) -> None:
        self.delivered: list[CellResult] = []
        self._on_results = on_results
        self._waiting: list[CellResult] = []
        self._changed = asyncio.Event()
        self._closed = False

    def add(self, results: Sequence[CellResult]) -> None:
        """Results that are committed."""
        self._waiting += results
        self._changed.set()

    def close(self) -> None:
        """Nothing more will be added."""
        self._closed = True
        self._changed.set()

    async def deliver(self) -> None:
        """Call ``on_results`` with all that is added, until that is closed.

        Raises:
            Exception: whatever ``on_results`` raised that is no outage of the database.
        """
        while self._waiting or not self._closed:
            await self._changed.wait()
            if not self._closed:
                await asyncio.sleep(_GATHER_S)
            self._changed.clear()
            while self._waiting:
                results, self._waiting = self._waiting[:_AT_ONCE], self._waiting[_AT_ONCE:]
                self.delivered += results
                await in_database(partial(self._on_results, results))
