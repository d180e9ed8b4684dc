"""A ``python_calc`` that misbehaves as its expression says, for the tests of what no tool may do to a run."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import NoReturn

import pytest

from eval_pipeline.tools.context import ToolContext
from eval_pipeline.tools.registry import TOOLS, BoundTool
from eval_pipeline_tests.stub_openai import Reply, tool_calls

_released = threading.Event()


def asks_for(*behaviours: str) -> Reply:
    """An answer that calls the tool once for each behaviour."""
    return tool_calls([("python_calc", f'{{"expression": "{behaviour}"}}') for behaviour in behaviours])


@contextmanager
def tricky_python_calc(patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Put the tool in the place of the real one; what still hangs of it afterwards is let go."""
    _released.clear()
    patch.setitem(TOOLS, "python_calc", replace(TOOLS["python_calc"], bind=_bind))
    try:
        yield
    finally:
        _released.set()


def _bind(context: ToolContext) -> BoundTool:
    del context

    async def python_calc(expression: str) -> str:
        """What the behaviour called ``expression`` returns."""
        return await _BEHAVIOURS[expression]()

    return python_calc


async def _works() -> str:
    return "42"


async def _sleeps() -> str:
    await asyncio.Event().wait()
    return ""


async def _blocks() -> str:
    _released.wait(60)
    return ""


async def _blocks_in_a_thread() -> str:
    await asyncio.to_thread(_released.wait, 60)
    return ""


async def _swallows() -> str:
    while not _released.is_set():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(0.05)
    return ""


async def _cancels() -> NoReturn:
    raise asyncio.CancelledError


async def _awaits_the_cancelled() -> str:
    task = asyncio.ensure_future(_sleeps())
    await asyncio.sleep(0)
    task.cancel()
    return await task


async def _exits() -> NoReturn:
    raise SystemExit(3)


async def _exits_in_a_task() -> str:
    await asyncio.ensure_future(_exits())
    return ""


async def _interrupts() -> NoReturn:
    raise KeyboardInterrupt


async def _fails_without_a_word() -> NoReturn:
    raise RuntimeError


async def _fails_in_a_group() -> NoReturn:
    raise BaseExceptionGroup("two at once", [ValueError("one"), SystemExit("two")])


async def _leaves_a_task() -> str:
    asyncio.ensure_future(_sleeps())  # noqa: RUF006 - nobody keeps it, that is the point
    return "42"


async def _answers_strangely() -> str:
    return "\x00 \ud83d \x1b[31m"


async def _answers_a_number() -> str:
    return 42  # type: ignore[return-value]


_BEHAVIOURS: dict[str, Callable[[], Awaitable[str]]] = {
    "works": _works,
    "sleeps": _sleeps,
    "blocks": _blocks,
    "blocks in a thread": _blocks_in_a_thread,
    "swallows": _swallows,
    "cancels": _cancels,
    "awaits the cancelled": _awaits_the_cancelled,
    "exits": _exits,
    "exits in a task": _exits_in_a_task,
    "interrupts": _interrupts,
    "fails without a word": _fails_without_a_word,
    "fails in a group": _fails_in_a_group,
    "leaves a task": _leaves_a_task,
    "answers strangely": _answers_strangely,
    "answers a number": _answers_a_number,
}
