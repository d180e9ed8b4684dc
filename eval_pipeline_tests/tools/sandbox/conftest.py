"""A test that takes ``way`` runs once for each level of the sandbox that this machine can make."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import psutil
import pytest

from eval_pipeline.tools.sandbox import LEVELS, Limits, probe
from eval_pipeline.tools.sandbox.command import Way
from eval_pipeline.tools.sandbox.policy import PRIVATE_FILES
from eval_pipeline.tools.sandbox.runner import Ended, run


def made(level: str) -> Way:
    way = next((probe.way(each) for each in LEVELS if each == level), None)
    if way is None:
        pytest.skip(f"this machine cannot make the level {level} of the sandbox")
    return way


@pytest.fixture(params=LEVELS)
def way(request: pytest.FixtureRequest) -> Way:
    return made(request.param)


@pytest.fixture(params=[level for level in LEVELS if level in PRIVATE_FILES])
def private_way(request: pytest.FixtureRequest) -> Way:
    return made(request.param)


@pytest.fixture(params=[level for level in LEVELS if level != "limits"])
def walled_way(request: pytest.FixtureRequest) -> Way:
    return made(request.param)


@pytest.fixture
def attachment(tmp_path: Path) -> Path:
    folder = tmp_path / "stage" / "task-1"
    folder.mkdir(parents=True)
    file = folder / "매출 sales.csv"
    file.write_text("item,price\nlatte,4.5\n")
    file.chmod(0o444)
    return file


@pytest.fixture
def marker() -> Iterator[str]:
    """A word for the command line of processes that must not be left behind; those that are, are ended."""
    word = f"left-behind-{uuid4().hex}"
    yield word
    for process in carrying(word):
        process.kill()


def carrying(word: str) -> list[psutil.Process]:
    """The processes of the machine that have ``word`` in their command line."""
    return [process for process in psutil.process_iter(["cmdline"]) if word in " ".join(process.info["cmdline"] or ())]


def descendants() -> set[psutil.Process]:
    """All that this process has started and that has not ended."""
    return {process for process in psutil.Process().children(recursive=True) if not _is_postgres(process)}


def _is_postgres(process: psutil.Process) -> bool:
    """The server of the tests may be this process's child, and starts processes of its own whenever it likes."""
    try:
        return process.name().startswith("postgres")
    except psutil.NoSuchProcess:
        return True


def orphans() -> list[psutil.Process]:
    """Programs that are still there though their scratch folder has been removed."""
    programs = [process for process in carrying("python_exec-") if process.info["cmdline"][-1].endswith("/main.py")]
    return [process for process in programs if not Path(process.info["cmdline"][-1]).exists()]


async def appeared(word: str) -> bool:
    """Wait, at most ten seconds, for a process that has ``word`` in its command line."""
    for _ in range(200):
        if carrying(word):
            return True
        await asyncio.sleep(0.05)
    return False


async def disappeared(word: str) -> bool:
    """Wait, at most ten seconds, until no process has ``word`` in its command line."""
    for _ in range(200):
        if not carrying(word):
            return True
        await asyncio.sleep(0.05)
    return False


async def quick(
    way: Way, code: str, attachment: Path | None = None, *, seconds: float = 8, memory: int = 2**30, processes: int = 64
) -> Ended:
    """Run ``code`` with less than a model gets."""
    return await run(way, code, attachment, Limits(seconds=seconds, memory=memory, processes=processes))
