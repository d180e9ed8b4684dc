"""``python_exec``: runs the Python program that a model wrote, and tells the model how it went.

How the program is kept apart belongs to :mod:`eval_pipeline.tools.sandbox`.
"""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

from eval_pipeline.tools.errors import CodeFailedError, ToolTimeoutError
from eval_pipeline.tools.sandbox.policy import Limits
from eval_pipeline.tools.sandbox.probe import best_way, require
from eval_pipeline.tools.sandbox.runner import Ended, run

MAX_CODE = 200_000
"""Characters of a program."""
NO_OUTPUT = "(the program printed nothing; print what you want to see)"


async def run_python(code: str, attachment: Path | None, *, seconds: float, sandbox_minimum: str) -> str:
    """What the program printed, stdout and stderr as they came.

    Raises:
        CodeFailedError: it ended with a status other than 0 or was stopped at a limit; the message has its
            output, at the end of which stands the traceback.
        ToolTimeoutError: it took longer than ``seconds``; the message has its output so far.
        ValueError: the program is too long.
        SettingsError: this machine offers less than ``sandbox_minimum``.
    """
    if len(code) > MAX_CODE:
        raise ValueError(f"the program has {len(code)} characters, at most {MAX_CODE} are allowed")
    await asyncio.to_thread(require, sandbox_minimum)
    way = await asyncio.to_thread(best_way)
    limits = Limits(seconds=seconds)
    ended = await run(way, code, attachment, limits)
    if ended.stopped is None and ended.status == 0:
        return ended.output.strip("\n") or NO_OUTPUT
    raise _failure(ended, limits)


def _failure(ended: Ended, limits: Limits) -> CodeFailedError | ToolTimeoutError:
    output = ended.output.strip("\n")
    too_slow = ended.seconds >= limits.seconds or ended.status == 128 + signal.SIGXCPU
    if too_slow:
        reason = f"the program was stopped: it took longer than {limits.seconds:g} s"
    elif ended.stopped:
        reason = f"the program was stopped: {ended.stopped}"
    elif ended.status > 128:
        reason = f"the program was ended by signal {_signal_name(ended.status - 128)}"
    else:
        reason = f"the program failed with exit status {ended.status}"
    text = f"{reason}\n{output}" if output else f"{reason} and printed nothing"
    return ToolTimeoutError(text) if too_slow else CodeFailedError(text)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
