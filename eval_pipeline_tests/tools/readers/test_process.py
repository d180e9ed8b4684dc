"""The process that reads: one per process of ours, quick, killable, and gone when nobody needs it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import openpyxl
import psutil
import pytest

from eval_pipeline.tools.errors import ToolError, ToolTimeoutError
from eval_pipeline.tools.readers import client
from eval_pipeline_tests.tools.readers.conftest import Read


@pytest.fixture
def book(tmp_path: Path) -> Path:
    workbook = openpyxl.Workbook()
    assert workbook.active is not None
    workbook.active.append(["total", 42])
    workbook.save(tmp_path / "book.xlsx")
    return tmp_path / "book.xlsx"


@pytest.fixture
def slow(tmp_path: Path) -> Path:
    """A file whose reading never ends: nobody ever writes into this pipe."""
    os.mkfifo(tmp_path / "slow.bin")
    return tmp_path / "slow.bin"


def servers() -> list[psutil.Process]:
    return [child for child in psutil.Process().children() if "tools.readers.server" in _command(child)]


def _command(process: psutil.Process) -> str:
    """Its command line; a child that has ended and is not waited for, such as a killed database's, has none."""
    try:
        return " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return ""


async def test_one_server_reads_all_files(book: Path, read: Read) -> None:
    await read(book)
    before = [server.pid for server in servers()]

    results = await asyncio.gather(*(read(book) for _ in range(20)))

    assert len(set(results)) == 1
    assert [server.pid for server in servers()] == before
    assert len(before) == 1


async def test_a_read_takes_no_second_import(book: Path, read: Read) -> None:
    await read(book)
    started = time.monotonic()

    for _ in range(10):
        await read(book)

    assert time.monotonic() - started < 5


def test_threads_with_loops_of_their_own_share_it(book: Path, read: Read) -> None:
    results: list[str] = []
    threads = [threading.Thread(target=lambda: results.append(asyncio.run(read(book)))) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert len(results) == 5
    assert len(servers()) == 1


async def test_a_read_that_takes_too_long_is_ended(book: Path, slow: Path, read: Read) -> None:
    await read(book)
    started = time.monotonic()

    with pytest.raises(ToolTimeoutError, match=r"slow\.bin took longer than 1 s"):
        await client.read(slow, seconds=1)

    assert time.monotonic() - started < 10
    assert await no_children()


async def test_a_cancelled_read_ends_its_process(book: Path, slow: Path, read: Read) -> None:
    await read(book)
    task = asyncio.ensure_future(client.read(slow, seconds=60))
    await asyncio.sleep(0.3)
    assert servers()[0].children()

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert await no_children()


async def no_children() -> bool:
    for _ in range(100):
        if not servers()[0].children():
            return True
        await asyncio.sleep(0.05)
    return False


async def test_slow_files_do_not_hold_up_others(book: Path, slow: Path, read: Read) -> None:
    tasks = [asyncio.ensure_future(client.read(slow, seconds=3)) for _ in range(4)]
    await asyncio.sleep(0.1)
    started = time.monotonic()

    assert "total | 42" in await read(book)

    assert time.monotonic() - started < 2.5
    assert all(isinstance(result, ToolTimeoutError) for result in await asyncio.gather(*tasks, return_exceptions=True))


async def test_a_killed_server_is_replaced(book: Path, read: Read) -> None:
    await read(book)
    (server,) = servers()
    server.kill()

    assert "total | 42" in await read(book)
    assert [replacement.pid for replacement in servers()] != [server.pid]


async def test_a_killed_child_is_an_error_and_not_a_hang(book: Path, slow: Path, read: Read) -> None:
    await read(book)
    task = asyncio.ensure_future(client.read(slow, seconds=60))
    await asyncio.sleep(0.3)
    servers()[0].children()[0].send_signal(signal.SIGKILL)

    with pytest.raises(ToolError, match=r"slow\.bin cannot be read: the process that reads it was stopped"):
        await asyncio.wait_for(task, 10)


async def test_no_variable_of_ours_is_in_its_environment(
    book: Path, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVAL_LLM_API_KEY", "canary-77aa")
    client.stop()
    await read(book)

    assert "canary-77aa" not in str(servers()[0].environ())


SCRIPT = """
import asyncio, os, sys
from pathlib import Path
from eval_pipeline.tools.readers import client
print(asyncio.run(client.read(Path(sys.argv[1]), seconds=20)).splitlines()[-1])
print(client._holder._server.process.pid)
sys.stdout.flush()
if sys.argv[2] == "fork":
    if os.fork() == 0:
        print(asyncio.run(client.read(Path(sys.argv[1]), seconds=20)).splitlines()[-1])
        print(client._holder._server.process.pid)
        sys.exit(0)
    os.wait()
if sys.argv[2] == "killed":
    os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("end", ["normal", "fork", "killed"])
def test_it_ends_with_the_process_that_uses_it(book: Path, end: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT, str(book), end],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    lines = done.stdout.splitlines()
    assert lines[::2] == ["1 | total | 42"] * (2 if end == "fork" else 1), done.stderr
    assert len(set(lines[1::2])) == len(lines[1::2])
    assert done.stderr == ""
    for pid in map(int, lines[1::2]):
        gone, _ = psutil.wait_procs([psutil.Process(pid)] if psutil.pid_exists(pid) else [], timeout=10)
        assert not psutil.pid_exists(pid) or gone
