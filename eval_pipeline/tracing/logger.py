"""Stores the trace of one run while it goes on, without ever holding it up or ending it.

Rows are made in :mod:`eval_pipeline.tracing.records`, statements in :mod:`eval_pipeline.tracing.inserts`;
here is when they meet. A thread writes, so that neither a slow database stops the event loop nor a busy event
loop delays the rows: a process that is killed loses what it saw in its last second at most.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from uuid import UUID

from sqlalchemy import Engine

from eval_pipeline.clock import Clock
from eval_pipeline.tracing.calls import call_row
from eval_pipeline.tracing.hygiene import TextHygiene
from eval_pipeline.tracing.inserts import insert_rows, is_outage, report_dropped, said
from eval_pipeline.tracing.items import ModelCall, StreamItem
from eval_pipeline.tracing.masking import Masker
from eval_pipeline.tracing.records import RecordBuilder, Totals
from eval_pipeline.tracing.rows import CallRow, EventRow

_log = logging.getLogger(__name__)

_WARN_EVERY_S = 60.0
_SAID = 300

Row = EventRow | CallRow


@dataclass(frozen=True, slots=True)
class Pace:
    """How a logger writes. Times are in seconds.

    Rows are written at most every ``interval_s``, ``rows_at_once`` in one go. A write that failed for the
    database's sake is tried once more after ``retry_after_s``, which outlasts a restart. ``rows_held`` and
    ``characters_held`` bound the memory for what waits; what comes beyond them is dropped and counted.
    """

    interval_s: float = 0.5
    rows_at_once: int = 500
    retry_after_s: float = 3.0
    statement_timeout_s: float = 10.0
    rows_held: int = 10_000
    characters_held: int = 128_000_000


class TraceLogger:
    """The trace of one run, whose row in ``runs`` must exist.

    ``observe`` and ``model_call`` return at once and never raise, from whatever happens to the database; they
    are to be called from one thread. ``close`` must be awaited when the run has ended; what was lost by then
    is in ``events_dropped`` and ``calls_dropped``, and the first of them is also kept up to date on the row
    of the run.
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
    ) -> None:
        self._engine = engine
        self._run_id = run_id
        self._masker = masker
        self._pace = pace or Pace()
        self._builder = RecordBuilder(clock, masker, planner=planner)
        self._call_hygiene = TextHygiene(masker)
        self._calls_seen = 0

        self._changed = threading.Condition()
        """Guards everything below; told of new rows, flushes and the end."""
        self._waiting: deque[Row] = deque()
        self._in_flight: list[Row] = []
        self._characters = 0
        self._accepted = 0
        self._settled = 0
        self._flushes: list[tuple[int, Future[None]]] = []
        self._closed = False
        self._thread: threading.Thread | None = None
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
        with self._changed:
            if self._settled == self._accepted:
                return True
            future: Future[None] = Future()
            # one that runs cannot be cancelled: the writer may set it whatever became of the waiting task
            future.set_running_or_notify_cancel()
            self._flushes.append((self._accepted, future))
            self._changed.notify_all()
        try:
            await asyncio.wait_for(asyncio.wrap_future(future), timeout_s)
        except TimeoutError:
            return False
        return True

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
        with self._changed:
            self._closed = True
            left = [*self._in_flight, *self._waiting]
            self._waiting.clear()
            self._changed.notify_all()
        if left:
            self._drop(left, "the run ended before the database took them")
        if self._events_dropped + self._calls_dropped != self._warned_of:
            self._warn("the run has ended", always=True)

    def _add(self, rows: Iterable[Row]) -> None:
        beyond: list[Row] = []
        with self._changed:
            for row in rows:
                full = self._accepted - self._settled >= self._pace.rows_held
                if self._closed or full or self._characters + row.size > self._pace.characters_held:
                    beyond.append(row)
                    continue
                self._waiting.append(row)
                self._characters += row.size
                self._accepted += 1
            if self._waiting and self._thread is None:
                self._start()
            self._changed.notify_all()
        if beyond:
            self._drop(beyond, "the trace was closed" if self._closed else "the database is too slow or away")

    def _start(self) -> None:
        # a daemon: a database that hangs must not keep the process from ending
        thread = threading.Thread(target=self._work, name=f"trace {self._run_id}", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # the system is out of threads; the next row tries again
            _log.debug("run %s: %s", self._run_id, error)
        else:
            self._thread = thread

    def _work(self) -> None:
        last_s = -self._pace.interval_s
        while batch := self._next_batch(last_s + self._pace.interval_s):
            last_s = time.monotonic()
            try:
                self._write(batch)
            except Exception as error:  # the writer must outlive whatever a driver may raise
                self._give_up(batch, said(error))
            with self._changed:
                self._in_flight = []
                self._settled += len(batch)
                self._characters -= sum(row.size for row in batch)
                done = [future for target, future in self._flushes if target <= self._settled]
                self._flushes = [flush for flush in self._flushes if flush[0] > self._settled]
            for future in done:
                future.set_result(None)

    def _next_batch(self, not_before_s: float) -> list[Row]:
        """The rows to write next, once there are any and it is time; none when the trace is closed."""
        with self._changed:
            while not self._closed:
                wait_s = not_before_s - time.monotonic()
                if self._waiting and (self._flushes or wait_s <= 0):
                    break
                self._changed.wait(wait_s if self._waiting else None)
            count = min(len(self._waiting), self._pace.rows_at_once)
            self._in_flight = [self._waiting.popleft() for _ in range(count)]
            return self._in_flight

    def _write(self, batch: Sequence[Row]) -> None:
        error = self._try_insert(batch)
        if error is not None and is_outage(error):
            with self._changed:
                self._changed.wait_for(lambda: self._closed, self._pace.retry_after_s)
            error = self._try_insert(batch)
        if error is not None and not is_outage(error):
            error = self._write_singly(batch)
        elif error is not None:
            self._give_up(batch, said(error))
        if error is None:
            self._report_dropped()

    def _write_singly(self, batch: Sequence[Row]) -> Exception | None:
        """Store all rows but those that the database refuses; the outage that kept it from that, if any."""
        for number, row in enumerate(batch):
            error = self._try_insert([row])
            if error is not None and is_outage(error):
                self._give_up(batch[number:], said(error))
                return error
            if error is not None:
                self._give_up([row], said(error))
        return None

    def _try_insert(self, rows: Sequence[Row]) -> Exception | None:
        try:
            insert_rows(self._engine, self._run_id, rows, timeout_s=self._pace.statement_timeout_s)
        except Exception as error:
            return error
        return None

    def _report_dropped(self) -> None:
        """Keep the loss on the row of the run: this process may not live to end the run."""
        dropped = self._events_dropped
        if dropped == self._dropped_reported:
            return
        try:
            report_dropped(self._engine, self._run_id, dropped, timeout_s=self._pace.statement_timeout_s)
        except Exception as error:
            _log.debug("run %s: its loss was not written down: %s", self._run_id, self._shown(said(error)))
        else:
            self._dropped_reported = dropped

    def _give_up(self, rows: Sequence[Row], why: str) -> None:
        """Drop rows that the writer could not store, unless the end of the run has counted them already."""
        if not self._closed:
            self._drop(rows, why)

    def _drop(self, rows: Sequence[Row], why: str) -> None:
        events = sum(isinstance(row, EventRow) for row in rows)
        self._count_lost(events, len(rows) - events, why)

    def _count_lost(self, events: int, calls: int, why: str) -> None:
        with self._changed:
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
