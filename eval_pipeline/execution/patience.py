"""Database calls beside the event loop, with patience: an outage of seconds costs time, not a run that is paid for.

What is done in the database belongs to :mod:`eval_pipeline.execution.store`.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import TimeoutError as DatabaseTimeoutError

from eval_pipeline.execution.group_commit import GroupCommit
from eval_pipeline.tracing.inserts import is_outage

GIVE_UP_AFTER_S = 60.0
"""How long an outage may last before what was to be stored is given up."""
STUCK_AFTER_S = 30.0
"""After this a call is not waited for any more: a database that is frozen neither answers nor fails."""
_PAUSE_S = 0.5

T = TypeVar("T")


async def in_database(work: Callable[[], T], *, give_up_after_s: float | None = None) -> T:
    """What ``work`` returns; during an outage it is called again, so it must be able to find its own work done.

    Raises:
        SQLAlchemyError: the database is still away after ``give_up_after_s`` seconds, or refuses.
    """
    return await _patiently(lambda: _beside(work), give_up_after_s)


async def committed(
    commits: GroupCommit, work: Callable[[Connection], T], *, give_up_after_s: float | None = None
) -> T:
    """:func:`in_database` for work that fits into a transaction with others; returns when that is committed."""
    return await _patiently(lambda: _in_a_group(commits, work), give_up_after_s)


async def _patiently(once: Callable[[], Awaitable[T]], give_up_after_s: float | None) -> T:
    patience_s = GIVE_UP_AFTER_S if give_up_after_s is None else give_up_after_s
    until_s = time.monotonic() + patience_s
    while True:
        try:
            return await once()
        except Exception as error:
            if not _outage(error) or time.monotonic() + _PAUSE_S > until_s:
                raise
        await asyncio.sleep(_PAUSE_S)


async def _in_a_group(commits: GroupCommit, work: Callable[[Connection], T]) -> T:
    ended = commits.submit(work)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(STUCK_AFTER_S):
            return await asyncio.wrap_future(ended)
    commits.abandon_if_stuck(STUCK_AFTER_S)
    raise DatabaseTimeoutError(f"the database has not answered for {STUCK_AFTER_S:g} s")


def _outage(error: BaseException | None) -> bool:
    # Dagster's storage words what its driver has raised in an error of its own
    while error is not None:
        if isinstance(error, Exception) and is_outage(error):
            return True
        error = error.__cause__
    return False


async def _beside(work: Callable[[], T]) -> T:
    ended: Future[T] = Future()
    # one that runs cannot be cancelled: the thread may set it whatever became of who waits for it
    ended.set_running_or_notify_cancel()

    def run() -> None:
        try:
            result = work()
        except BaseException as error:
            ended.set_exception(error)
        else:
            ended.set_result(result)

    # a daemon, and none of the loop's own threads: a call that is stuck would keep the loop and the process from ending
    threading.Thread(target=run, name="database", daemon=True).start()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(STUCK_AFTER_S):
            return await asyncio.wrap_future(ended)
    raise DatabaseTimeoutError(f"the database has not answered for {STUCK_AFTER_S:g} s")
