"""Runs one program in the sandbox to its end, which comes in bounded time whatever the program does.

What the end means for the model belongs to :mod:`eval_pipeline.tools.python_exec`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

import psutil

from eval_pipeline.tools.sandbox.command import Command, Way, command
from eval_pipeline.tools.sandbox.output import Shown
from eval_pipeline.tools.sandbox.policy import PRIVATE_FILES, Level, Limits
from eval_pipeline.tools.sandbox.watch import excess

_CHUNK = 256 * 1024
_LOOK_S = 0.25
"""How often the use of memory is looked at; a program cannot take more than a few hundred MiB in between."""
_LEFTOVER_S = 1.0
"""How long what a program has printed may take to arrive after its end."""
_KILL_S = 3.0
_REMOVE_S = 10.0


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended: ``status`` as a shell gives it (128 + signal), ``output`` as it is shown.

    ``stopped`` says in words why we ended it, ``None`` where it ended by itself.
    """

    level: Level
    status: int
    output: str
    stopped: str | None
    seconds: float


async def run(way: Way, code: str, attachment: Path | None, limits: Limits, *, pass_fds: tuple[int, ...] = ()) -> Ended:
    """Run ``code`` with nothing but ``attachment`` to read; a cancelled call leaves no process behind.

    ``pass_fds`` are open files that the program finds under the same numbers.

    Raises:
        UnicodeEncodeError: the code has a lone surrogate, and so is no text that could be run.
        OSError: this machine cannot start another process.
    """
    started = time.monotonic()
    code.encode()
    async with _folder(way) as folder:
        start = command(way, code, attachment, limits, folder)
        if folder is not None and start.uid is not None:
            os.chown(folder, start.uid, start.uid)
        shown = Shown(limits.characters)
        with _started(start, pass_fds) as process:
            try:
                stopped = await _watched(process, shown, folder, limits, started + limits.seconds)
            finally:
                _end(process, private=way.level in PRIVATE_FILES)
        return Ended(way.level, _shell_status(process.returncode), shown.text(), stopped, time.monotonic() - started)


@contextmanager
def _started(start: Command, pass_fds: tuple[int, ...]) -> Iterator[subprocess.Popen[bytes]]:
    with tempfile.TemporaryFile() as config:
        config.write(start.config)
        config.seek(0)
        process = subprocess.Popen(
            start.argv,
            stdin=config,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            bufsize=0,
            env=start.env,
            cwd="/",
            start_new_session=True,
            pass_fds=pass_fds,
        )
    yield process


async def _watched(
    process: subprocess.Popen[bytes], shown: Shown, folder: str | None, limits: Limits, deadline: float
) -> str | None:
    """Take in the output until the program has ended; returns why it must be ended, if it must."""
    assert isinstance(process.stdout, FileIO)
    reader = asyncio.StreamReader(limit=_CHUNK)
    loop = asyncio.get_running_loop()
    try:
        transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), process.stdout)
    except BaseException:
        process.stdout.close()
        raise
    taking = asyncio.ensure_future(_take(reader, shown, limits.output))
    look = time.monotonic() + _LOOK_S
    try:
        while process.poll() is None:
            now = time.monotonic()
            if now > deadline:
                return f"it took longer than {limits.seconds:g} s"
            if taking.done() and taking.result():
                return f"it printed more than {limits.output // 1024**2} MiB"
            if now > look:
                look = now + _LOOK_S
                if over := excess(process.pid, folder, limits):
                    return over
            pause = min(look, deadline) - now
            # An end of the output is nearly always the program's end: worth a closer look.
            await (asyncio.sleep(0.005) if taking.done() else asyncio.wait({taking}, timeout=max(pause, 0.005)))
        # What the program started may still hold the pipe.
        await asyncio.wait({taking}, timeout=_LEFTOVER_S)
        return None
    finally:
        taking.cancel()
        transport.close()


async def _take(reader: asyncio.StreamReader, shown: Shown, limit: int) -> bool:
    """Read to the end of the output; ``True`` where it is longer than ``limit``."""
    taken = 0
    while chunk := await reader.read(_CHUNK):
        shown.feed(chunk)
        taken += len(chunk)
        if taken > limit:
            return True
    shown.feed(b"", final=True)
    return False


def _end(process: subprocess.Popen[bytes], *, private: bool) -> None:
    """End the program and all that it started; needs no event loop, so that a cancelled call ends its program too.

    The launcher is the last to go. Where the program has a process table of its own (``private``), killing its first
    process ends all others, and the launcher outside waits for that; else the launcher is told to end them.
    """
    first = _children(process.pid) if private else [process.pid]
    for pid in first if process.poll() is None else ():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL if private else signal.SIGTERM)
    if first:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_KILL_S)
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_KILL_S)


def _children(pid: int) -> list[int]:
    try:
        return [child.pid for child in psutil.Process(pid).children()]
    except psutil.Error:
        return []


@asynccontextmanager
async def _folder(way: Way) -> AsyncIterator[str | None]:
    if way.level in PRIVATE_FILES:
        yield None
        return
    folder = tempfile.mkdtemp(prefix="python_exec-")
    try:
        yield folder
    finally:
        await asyncio.to_thread(_remove, folder)


def _remove(folder: str) -> None:
    # Not shutil: a program can nest folders deeper than Python's stack, and close them.
    for words in (["rm", "-rf"], ["chmod", "-R", "u+rwX"], ["rm", "-rf"]):
        if Path(folder).exists():
            with contextlib.suppress(subprocess.TimeoutExpired):
                subprocess.run([*words, "--", folder], capture_output=True, check=False, timeout=_REMOVE_S)


def _shell_status(returncode: int | None) -> int:
    if returncode is None:
        return 128 + signal.SIGKILL
    return returncode if returncode >= 0 else 128 - returncode
