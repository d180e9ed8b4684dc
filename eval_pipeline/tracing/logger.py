"""Stores the trace of one run while it goes on, without ever holding it up or ending it.

Rows are made in :mod:`eval_pipeline.tracing.records` and stored by :mod:`eval_pipeline.tracing.writer`; here they meet,
and what is lost is counted.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from uuid import UUID

from sqlalchemy import Engine

from eval_pipeline.clock import Clock
from eval_pipeline.tracing.calls import call_row
from eval_pipeline.tracing.hygiene import TextHygiene
from eval_pipeline.tracing.inserts import Row, report_dropped, said
from eval_pipeline.tracing.items import ModelCall, StreamItem
from eval_pipeline.tracing.masking import Masker
from eval_pipeline.tracing.records import RecordBuilder, Totals
from eval_pipeline.tracing.rows import EventRow
from eval_pipeline.tracing.writer import Pace, TraceQueue, TraceWriter

_log = logging.getLogger(__name__)

_WARN_EVERY_S = 60.0
_SAID = 300


class TraceLogger:
    """The trace of one run, whose row in ``runs`` must exist.

    ``observe`` and ``model_call`` return at once and never raise, from whatever happens to the database; they
    are to be called from one thread. ``close`` must be awaited when the run has ended; what was lost by then
    is in ``events_dropped`` and ``calls_dropped``, and the first of them is also kept up to date on the row
    of the run. ``writer`` is shared by the runs of a launch; without one the trace has its own, of ``pace``.
    """

    def __init__(
        self,
        engine: Engine,
        run_id: UUID,
        clock: Clock,
        masker: Masker,
        *,
        planner: str = "planner",
        pace: Pace | None = None,
        writer: TraceWriter | None = None,
    ) -> None:
        self._engine = engine
        self._run_id = run_id
        self._masker = masker
        self._builder = RecordBuilder(clock, masker, planner=planner)
        self._call_hygiene = TextHygiene(masker)
        self._calls_seen = 0
        self._writer = writer or TraceWriter(engine, pace)
        self._queue = TraceQueue(self._writer, run_id, self._drop, self._report_dropped)

        self._counting = threading.Lock()
        """Guards the counts below."""
        self._events_dropped = 0
        self._calls_dropped = 0
        self._dropped_reported = 0
        self._warned_at_s: float | None = None
        self._warned_of = 0

    @property
    def totals(self) -> Totals:
        """The sums of what was observed, whether or not it could be stored."""
        totals = self._builder.totals
        return replace(totals, text_repairs=totals.text_repairs + self._call_hygiene.repairs)

    @property
    def events_dropped(self) -> int:
        """Rows of ``events`` that are not in the database and will not be."""
        return self._events_dropped

    @property
    def calls_dropped(self) -> int:
        """Rows of ``model_calls`` that are not in the database and will not be."""
        return self._calls_dropped

    def observe(self, item: StreamItem) -> None:
        """Take one object of the stream into the trace."""
        try:
            rows = self._builder.rows(item)
        except Exception as error:  # the trace is never a reason to end a run
            self._count_lost(1, 0, said(error))
        else:
            self._add(rows)

    def model_call(self, call: ModelCall) -> None:
        """Take one request to the model into the trace."""
        call_no, self._calls_seen = self._calls_seen, self._calls_seen + 1
        try:
            row = call_row(call, call_no, self._call_hygiene)
        except Exception as error:  # as above
            self._count_lost(0, 1, said(error))
        else:
            self._add([row])

    def close_open_calls(self, reason: str) -> None:
        """Add an ``interrupted`` error for each tool call without a result, when a run ends early."""
        self._add(self._builder.close_open_calls(reason))

    async def flush(self, timeout_s: float = 30.0) -> bool:
        """Wait until all that was observed is stored or given up; whether it was in ``timeout_s`` seconds."""
        return await self._queue.flush(timeout_s)

    async def close(self, timeout_s: float = 30.0) -> None:
        """Store what is left, giving up what is not stored within ``timeout_s`` seconds.

        What the database is still busy with then counts as lost, although it may yet be stored. Nothing is
        taken into the trace after this.
        """
        try:
            await self.flush(timeout_s)
        finally:
            self._end()

    def _end(self) -> None:
        left = self._queue.end()
        if left:
            self._drop(left, "the run ended before the database took them")
        if self._events_dropped + self._calls_dropped != self._warned_of:
            self._warn("the run has ended", always=True)

    def _add(self, rows: Iterable[Row]) -> None:
        beyond = self._queue.add(rows)
        if beyond:
            self._drop(beyond, "the trace was closed" if self._queue.closed else "the database is too slow or away")

    def _report_dropped(self) -> None:
        """Keep the loss on the row of the run: this process may not live to end the run."""
        dropped = self._events_dropped
        if dropped == self._dropped_reported:
            return
        try:
            report_dropped(self._engine, self._run_id, dropped, timeout_s=self._writer.pace.statement_timeout_s)
        except Exception as error:
            _log.debug("run %s: its loss was not written down: %s", self._run_id, self._shown(said(error)))
        else:
            self._dropped_reported = dropped

    def _drop(self, rows: Sequence[Row], why: str) -> None:
        events = sum(isinstance(row, EventRow) for row in rows)
        self._count_lost(events, len(rows) - events, why)

    def _count_lost(self, events: int, calls: int, why: str) -> None:
        with self._counting:
            self._events_dropped += events
            self._calls_dropped += calls
        self._warn(why)

    def _warn(self, why: str, *, always: bool = False) -> None:
        now_s = time.monotonic()
        if not always and self._warned_at_s is not None and now_s - self._warned_at_s < _WARN_EVERY_S:
            return
        self._warned_at_s, self._warned_of = now_s, self._events_dropped + self._calls_dropped
        _log.warning(
            "run %s: %d events and %d model calls of its trace could not be stored: %s",
            self._run_id,
            self._events_dropped,
            self._calls_dropped,
            self._shown(why),
        )

    def _shown(self, text: str) -> str:
        return self._masker.text(text)[:_SAID]
