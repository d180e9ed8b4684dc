"""One thread that does a launch's short pieces of database work, those that wait at the same moment in one transaction.

A transaction of its own for every state of every run costs a thread, a connection and a disk write each; together they
cost one. What the work is belongs to :mod:`eval_pipeline.execution.store`, patience in an outage to
:mod:`eval_pipeline.execution.patience`.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from sqlalchemy import Connection, Engine

from eval_pipeline.tracing.inserts import is_outage

_AT_ONCE = 64
_GATHER_S = 0.01
"""How long a piece waits for others. A transaction of its own costs more CPU than all that is done in it."""

T = TypeVar("T")


@dataclass(eq=False)
class _Piece(Generic[T]):
    work: Callable[[Connection], T]
    ended: Future[T] = field(default_factory=Future)


class GroupCommit:
    """Runs pieces of work in the order in which they are submitted. Threads may share it; :meth:`close` ends it.

    A piece may be called more than once: if one of a group fails, the transaction is rolled back and each is done again
    in a transaction of its own, so that it ends as if it had been alone.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._changed = threading.Condition()
        self._waiting: deque[_Piece[Any]] = deque()
        self._thread: threading.Thread | None = None
        self._busy_since_s: float | None = None
        self._closed = False

    def submit(self, work: Callable[[Connection], T]) -> Future[T]:
        """What ``work`` returns, once that is committed; or what it raised.

        Raises:
            RuntimeError: the system is out of threads.
        """
        piece = _Piece(work)
        # one that runs cannot be cancelled: the thread may set it whatever became of who waits for it
        piece.ended.set_running_or_notify_cancel()
        with self._changed:
            self._waiting.append(piece)
            if self._thread is None:
                self._start()
            self._changed.notify_all()
        return piece.ended

    def abandon_if_stuck(self, after_s: float) -> None:
        """Let another thread go on if the database has not answered this one for ``after_s`` seconds.

        What it was at is not waited for any more, and may yet be committed.
        """
        with self._changed:
            if self._busy_since_s is not None and time.monotonic() - self._busy_since_s >= after_s:
                self._busy_since_s = None
                self._start()

    def close(self) -> None:
        """Take no thread any longer than for what has been submitted."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _start(self) -> None:
        # a daemon: a call that is stuck must not keep the process from ending
        thread = threading.Thread(target=self._work, name="commits", daemon=True)
        self._thread = None
        thread.start()
        self._thread = thread

    def _work(self) -> None:
        while self._has_work():
            time.sleep(_GATHER_S)
            self._together(self._taken())

    def _has_work(self) -> bool:
        """Wait until there is a piece to do; false when it is time to end."""
        me = threading.current_thread()
        with self._changed:
            # the thread that started this one has not named it yet when it gets here first
            self._changed.wait_for(lambda: self._waiting or self._closed or self._thread not in (None, me))
            if self._thread not in (None, me):
                return False
            if not self._waiting:
                self._thread = None
                return False
            self._busy_since_s = time.monotonic()
            return True

    def _taken(self) -> list[_Piece[Any]]:
        with self._changed:
            return [self._waiting.popleft() for _ in range(min(len(self._waiting), _AT_ONCE))]

    def _together(self, pieces: Sequence[_Piece[Any]]) -> None:
        try:
            with self._engine.begin() as connection:
                results = [piece.work(connection) for piece in pieces]
        except BaseException as error:
            if len(pieces) == 1 or is_outage_of_all(error):
                self._idle()
                for piece in pieces:
                    piece.ended.set_exception(error)
            else:
                for piece in pieces:
                    self._together([piece])
        else:
            self._idle()
            for piece, result in zip(pieces, results, strict=True):
                piece.ended.set_result(result)

    def _idle(self) -> None:
        with self._changed:
            if self._thread is threading.current_thread():
                self._busy_since_s = None


def is_outage_of_all(error: BaseException) -> bool:
    """Whether each piece of a group would meet ``error`` alone as well: the connection is gone, not just a deadlock."""
    invalidated = getattr(error, "connection_invalidated", False)
    return isinstance(error, Exception) and is_outage(error) and bool(invalidated)
