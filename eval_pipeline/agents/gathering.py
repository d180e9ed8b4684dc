"""Reads a stream of thousands of small pieces at the price of a few large ones, without being late for its end.

What a piece holds belongs to :mod:`eval_pipeline.agents.sse` and :mod:`eval_pipeline.agents.answers`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

_WAITED_S = 0.0005
"""A piece that took longer than this was not there yet."""
_WAITS_AT_ONCE = 16
_GATHER_S = 0.2
"""Once a stream has been waited for so often, each further wait is this much longer, so that more comes with it."""


async def read_gathered(
    pieces: AsyncIterator[bytes], take: Callable[[bytes], bool], is_whole: Callable[[], bool], silence_s: float
) -> None:
    """Call ``take`` with what has come of ``pieces``, joined, whenever there is nothing more to read at once.

    Tokens come one by one, and each would wake this process up; after the first few they are let gather, until
    ``is_whole``. ``take`` says whether what it got counts as a word: a server that only keeps the connection alive is
    silent.

    Raises:
        TimeoutError: nothing that counts came for ``silence_s`` seconds.
        Exception: whatever ``pieces`` or ``take`` raised. What came before it has been taken.
    """
    loop = asyncio.get_running_loop()
    gathered: list[bytes] = []
    failure: Exception | None = None
    waits, over = 0, False

    def give() -> None:
        nonlocal failure
        data = b"".join(gathered)
        gathered.clear()
        if failure is not None or not data:
            return
        try:
            heard = take(data)
        except Exception as error:
            failure = error
            heard = False
        if not over and failure is not None:
            silence.reschedule(loop.time())
        elif not over and heard:
            silence.reschedule(loop.time() + silence_s)

    try:
        async with asyncio.timeout(silence_s) as silence:
            asked_s = loop.time()
            while (piece := await anext(pieces, None)) is not None:
                if not gathered:
                    # the loop comes to it when the next piece has to be waited for, and not before
                    loop.call_soon(give)
                gathered.append(piece)
                if loop.time() - asked_s > _WAITED_S:
                    waits += 1
                    if waits > _WAITS_AT_ONCE and not is_whole():
                        await asyncio.sleep(_GATHER_S)
                asked_s = loop.time()
    except asyncio.CancelledError:
        over = True
        give()
        raise
    except Exception:
        over = True
        give()
        # what was wrong with the stream's own words came first
        if failure is not None:
            raise failure from None
        raise
    over = True
    give()
    if failure is not None:
        raise failure
