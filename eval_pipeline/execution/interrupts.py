"""Runs a launch's event loop so that a signal to end it arrives as a cancellation, and not in the middle of anything.

A signal handler that raises, which is the usual way, does so wherever the main thread happens to be: inside a task of
some library, too, which would swallow it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Coroutine
from types import FrameType
from typing import Any, TypeVar

_ENDING = (signal.SIGINT, signal.SIGTERM)

T = TypeVar("T")


def run_interruptibly(work: Coroutine[Any, Any, T]) -> T:
    """``asyncio.run(work)``; SIGINT and SIGTERM cancel ``work``, which may clean up, and then take their usual course.

    A second signal takes its usual course at once. A signal that was ignored before stays so. Signals belong to the
    main thread; in any other this is ``asyncio.run``.
    """
    if threading.current_thread() is not threading.main_thread():
        return asyncio.run(work)
    usual = {number: signal.getsignal(number) for number in _ENDING}
    received: list[signal.Signals] = []
    try:
        result = asyncio.run(_cancelled_by_signals(work, usual, received))
    except asyncio.CancelledError:
        if not received:
            raise
    if received:
        _take_its_course(received[0], usual[received[0]])
    return result


async def _cancelled_by_signals(
    work: Coroutine[Any, Any, T], usual: dict[signal.Signals, Any], received: list[signal.Signals]
) -> T:
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None

    def handle(number: int, frame: FrameType | None) -> None:
        if received:
            _take_its_course(signal.Signals(number), usual[signal.Signals(number)])
        received.append(signal.Signals(number))
        loop.call_soon_threadsafe(task.cancel)

    # asyncio may have put a handler of its own in place by now
    here = {number: signal.getsignal(number) for number in _ENDING}
    for number in _ENDING:
        if usual[number] not in (signal.SIG_IGN, None):
            signal.signal(number, handle)
    try:
        return await work
    finally:
        for number in _ENDING:
            if here[number] is not None:
                signal.signal(number, here[number])


def _take_its_course(number: signal.Signals, handler: Any) -> None:
    if callable(handler):
        handler(number, None)
    elif handler == signal.SIG_DFL:
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    # a handler that only takes a note leaves nobody to end what has been cancelled
    raise KeyboardInterrupt
