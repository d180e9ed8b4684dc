"""The thread that stores traces: when rows are written, how many at once, and what an outage of the database costs.

Rows are made in :mod:`eval_pipeline.tracing.records`, statements in :mod:`eval_pipeline.tracing.inserts`. One writer
serves all runs of a launch, so that what many runs have to store at the same moment costs one transaction.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import Engine

from eval_pipeline.tracing.inserts import Row, insert_traces, is_outage, said

_log = logging.getLogger(__name__)

_CHARACTERS_AT_ONCE = 16_000_000
_GATHER_S = 0.01
"""How long rows that somebody waits for wait for those of other runs: each transaction costs CPU of its own."""
_STUCK_AFTER_S = 15.0
"""A write that takes this much longer than its statements may is not waited for by other rows any more.

Less than the end of a run waits for its rows, which is when somebody looks.
"""


@dataclass(frozen=True, slots=True)
class Pace:
    """How a writer writes. Times are in seconds.

    Rows are written at most every ``interval_s``, unless somebody waits for them, ``rows_at_once`` in one go. A write
    that failed for the database's sake is tried once more after ``retry_after_s``, which outlasts a restart.
    ``rows_held`` and ``characters_held`` bound the memory for what waits of one run; what comes beyond them is dropped
    and counted.
    """

    interval_s: float = 0.5
    rows_at_once: int = 1000
    retry_after_s: float = 3.0
    statement_timeout_s: float = 10.0
    rows_held: int = 10_000
    characters_held: int = 128_000_000


class TraceQueue:
    """The rows of one run on their way into the database.

    ``lost`` is called with rows that will not be stored, and why; ``stored`` after a write. Both come in the writer's
    thread.
    """

    def __init__(
        self,
        writer: TraceWriter,
        run_id: UUID,
        lost: Callable[[Sequence[Row], str], None],
        stored: Callable[[], None],
    ) -> None:
        self.run_id = run_id
        self.lost = lost
        self.stored = stored
        self._writer = writer
        self._changed = writer.changed
        """Guards everything below; told of new rows, flushes and the end."""
        self.waiting: deque[Row] = deque()
        self.in_flight: list[Row] = []
        self.flushes: list[tuple[int, Future[None]]] = []
        self.closed = False
        self._characters = 0
        self._accepted = 0
        self._settled = 0

    def add(self, rows: Iterable[Row]) -> list[Row]:
        """Take rows to be stored; those that are beyond what may be held, or come after the end."""
        pace = self._writer.pace
        beyond: list[Row] = []
        with self._changed:
            for row in rows:
                full = self._accepted - self._settled >= pace.rows_held
                if self.closed or full or self._characters + row.size > pace.characters_held:
                    beyond.append(row)
                    continue
                self.waiting.append(row)
                self._characters += row.size
                self._accepted += 1
            if self.waiting:
                self._writer.has_rows(self)
        return beyond

    async def flush(self, timeout_s: float) -> bool:
        """Wait until all that was added is stored or lost; whether it was in ``timeout_s`` seconds."""
        with self._changed:
            if self._settled == self._accepted:
                return True
            future: Future[None] = Future()
            # one that runs cannot be cancelled: the writer may set it whatever became of the waiting task
            future.set_running_or_notify_cancel()
            self.flushes.append((self._accepted, future))
            self._changed.notify_all()
        try:
            await asyncio.wait_for(asyncio.wrap_future(future), timeout_s)
        except TimeoutError:
            self._writer.abandon_if_stuck()
            return False
        return True

    def end(self) -> list[Row]:
        """Take no more rows; those that are not stored by now."""
        with self._changed:
            self.closed = True
            left = [*self.in_flight, *self.waiting]
            self.waiting.clear()
            self._writer.is_done(self)
        return left

    def settle(self, rows: Sequence[Row]) -> list[Future[None]]:
        """These rows have been stored or given up; the flushes that waited for just that."""
        self.in_flight = []
        self._settled += len(rows)
        self._characters -= sum(row.size for row in rows)
        done = [future for target, future in self.flushes if target <= self._settled]
        self.flushes = [flush for flush in self.flushes if flush[0] > self._settled]
        return done

    def again(self) -> None:
        """Put back what a write that is stuck has taken; storing a row twice is no error."""
        self.waiting.extendleft(reversed(self.in_flight))
        self.in_flight = []

    def give_up(self, rows: Sequence[Row], why: str) -> None:
        """Lose rows that could not be stored, unless the end of the run has counted them already."""
        if not self.closed:
            self.lost(rows, why)


_Batch = list[tuple[TraceQueue, list[Row]]]


class TraceWriter:
    """Stores the rows of its queues in a thread of its own, which lives while there is a queue with rows.

    A thread, so that neither a slow database stops the event loop nor a busy event loop delays the rows: a process that
    is killed loses what it saw in its last second at most.
    """

    def __init__(self, engine: Engine, pace: Pace | None = None) -> None:
        self.pace = pace or Pace()
        self.changed = threading.Condition()
        self._engine = engine
        self._queues: dict[TraceQueue, None] = {}
        self._thread: threading.Thread | None = None
        self._busy_since_s: float | None = None
        self._idle = False
        """Whether the thread waits for rows, and not for the time to write those that there are."""

    def has_rows(self, queue: TraceQueue) -> None:
        """``queue`` has rows waiting. To be called with ``changed`` held."""
        self._queues[queue] = None
        if self._thread is None:
            self._start()
        elif self._idle:
            self.changed.notify_all()

    def is_done(self, queue: TraceQueue) -> None:
        """``queue`` has ended. To be called with ``changed`` held."""
        self._queues.pop(queue, None)
        self.changed.notify_all()

    def abandon_if_stuck(self) -> None:
        """Let another thread write if this one's database has not answered for longer than any statement may take."""
        with self.changed:
            since_s = self._busy_since_s
            if since_s is None or time.monotonic() - since_s < self.pace.statement_timeout_s + _STUCK_AFTER_S:
                return
            for queue in self._queues:
                queue.again()
            self._thread = self._busy_since_s = None
            self._start()

    def _start(self) -> None:
        # a daemon: a database that hangs must not keep the process from ending
        thread = threading.Thread(target=self._work, name="traces", daemon=True)
        self._thread = thread
        try:
            thread.start()
        except RuntimeError as error:  # the system is out of threads; the next row tries again
            self._thread = None
            _log.debug("the writer of traces did not start: %s", error)

    def _work(self) -> None:
        last_s = -self.pace.interval_s
        while self._is_due(last_s + self.pace.interval_s):
            time.sleep(_GATHER_S)
            batch = self._taken()
            last_s = time.monotonic()
            try:
                if batch:
                    self._write(batch)
            except Exception as error:  # the writer must outlive whatever a driver may raise
                for queue, rows in batch:
                    queue.give_up(rows, said(error))
            done: list[Future[None]] = []
            with self.changed:
                if self._thread is not threading.current_thread():
                    return
                self._busy_since_s = None
                for queue, rows in batch:
                    done += queue.settle(rows)
            for future in done:
                future.set_result(None)

    def _is_due(self, not_before_s: float) -> bool:
        """Wait until there are rows and it is time to write them; false when no queue is left."""
        with self.changed:
            while self._queues and self._thread is threading.current_thread():
                ready = [queue for queue in self._queues if queue.waiting]
                wait_s = not_before_s - time.monotonic()
                if ready and (wait_s <= 0 or any(queue.flushes for queue in ready)):
                    self._busy_since_s = time.monotonic()
                    return True
                self._idle = not ready
                self.changed.wait(wait_s if ready else None)
                self._idle = False
            if self._thread is threading.current_thread():
                self._thread = None
            return False

    def _taken(self) -> _Batch:
        """Rows of the queues in turn, those that somebody waits for first, up to what goes in one write."""
        with self.changed:
            return self._batch_of([queue for queue in self._queues if queue.waiting])

    def _batch_of(self, ready: Sequence[TraceQueue]) -> _Batch:
        batch: _Batch = []
        count = characters = 0
        for queue in sorted(ready, key=lambda one: not one.flushes):
            while queue.waiting and count < self.pace.rows_at_once and characters < _CHARACTERS_AT_ONCE:
                row = queue.waiting.popleft()
                queue.in_flight.append(row)
                count += 1
                characters += row.size
            if queue.in_flight:
                batch.append((queue, list(queue.in_flight)))
        return batch

    def _write(self, batch: _Batch) -> None:
        error = self._try_insert(batch)
        if error is not None and is_outage(error):
            with self.changed:
                self.changed.wait_for(lambda: all(queue.closed for queue, _ in batch), self.pace.retry_after_s)
            error = self._try_insert(batch)
        if error is None:
            for queue, _ in batch:
                queue.stored()
        elif is_outage(error):
            for queue, rows in batch:
                queue.give_up(rows, said(error))
        elif len(batch) > 1:
            for queue, rows in batch:
                self._write([(queue, rows)])
        else:
            self._write_singly(*batch[0])

    def _write_singly(self, queue: TraceQueue, rows: Sequence[Row]) -> None:
        """Store all rows but those that the database refuses."""
        for number, row in enumerate(rows):
            error = self._try_insert([(queue, [row])])
            if error is not None and is_outage(error):
                queue.give_up(rows[number:], said(error))
                return
            if error is not None:
                queue.give_up([row], said(error))
        queue.stored()

    def _try_insert(self, batch: _Batch) -> Exception | None:
        traces = [(queue.run_id, rows) for queue, rows in batch]
        try:
            insert_traces(self._engine, traces, timeout_s=self.pace.statement_timeout_s)
        except Exception as error:
            return error
        return None
