"""One tool call in a thread and event loop of its own, so that nothing a tool does can stop the runs' event loop.

What a call's end means to the model belongs to :mod:`eval_pipeline.agents.tool_adapter`.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from typing import Any


class ToolThread:
    """Runs ``work`` from the moment it is made.

    The thread is a daemon: one that can neither be stopped nor waited for must not keep the process from ending.

    Raises:
        RuntimeError: the system is out of threads.
    """

    def __init__(self, name: str, work: Callable[[], Awaitable[object]]) -> None:
        self._work = work
        self._changed = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._cancelled = False
        self._ended: Future[object] = Future()
        self._gone: Future[None] = Future()
        for future in (self._ended, self._gone):
            # one that runs cannot be cancelled: the thread may set it whatever became of who waits for it
            future.set_running_or_notify_cancel()
        threading.Thread(target=self._run, name=f"tool {name}", daemon=True).start()

    @property
    def alive(self) -> bool:
        """Whether anything of the call is still running, its clean-up included."""
        return not self._gone.done()

    def gone(self) -> asyncio.Future[None]:
        """Done when nothing of the call is running any more."""
        return asyncio.wrap_future(self._gone)

    async def end(self, timeout_s: float) -> object:
        """What ``work`` returned, or the exception that it ended in, ``SystemExit`` and the like included.

        Raises:
            TimeoutError: it has not ended within ``timeout_s`` seconds; it has not been cancelled either.
        """
        async with asyncio.timeout(timeout_s):
            return await asyncio.wrap_future(self._ended)

    def cancel(self) -> None:
        """Ask ``work`` to end; what swallows its cancellation or never waits goes on."""
        with self._changed:
            self._cancelled = True
            if self._loop is not None and self._task is not None:
                with contextlib.suppress(RuntimeError):  # the loop has been closed: it has ended
                    self._loop.call_soon_threadsafe(self._task.cancel)

    def _run(self) -> None:
        try:
            _run_alone(self._main())
        except BaseException as error:  # SystemExit, and a cancellation, which may come of a sub-task's SystemExit
            self._settle(error)
        finally:
            self._gone.set_result(None)

    async def _main(self) -> None:
        with self._changed:
            self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
            if self._cancelled:
                self._settle(asyncio.CancelledError())
                return
        try:
            end: object = await self._work()
        except Exception as error:
            end = error
        self._settle(end)

    def _settle(self, end: object) -> None:
        if not self._ended.done():
            self._ended.set_result(end)


def _run_alone(work: Coroutine[Any, Any, None]) -> None:
    """``asyncio.run``, which at its end looks through the tasks of all loops of the process for those of this one."""
    loop = asyncio.new_event_loop()
    tasks: set[asyncio.Task[Any]] = set()

    def noted(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any], **more: Any) -> asyncio.Task[Any]:
        task = asyncio.Task(work, loop=loop, **more)
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        return task

    try:
        asyncio.set_event_loop(loop)
        loop.set_task_factory(noted)  # type: ignore[arg-type]
        loop.run_until_complete(work)
    finally:
        try:
            left = list(tasks)
            for task in left:
                task.cancel()
            if left:
                loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.run_until_complete(loop.shutdown_default_executor())
        finally:
            asyncio.set_event_loop(None)
            loop.close()
