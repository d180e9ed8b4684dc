"""Reads a file as the tool does, in the process that reads, which is ended after the last test."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from eval_pipeline.tools.read_multi import read_multi
from eval_pipeline.tools.readers import client

Read = Callable[[Path], Awaitable[str]]


@pytest.fixture(scope="package", autouse=True)
def _no_process_left() -> Iterator[None]:
    yield
    client.stop()


@pytest.fixture
def read() -> Read:
    async def as_the_tool_does(path: Path) -> str:
        return await read_multi(str(path), path, seconds=20)

    return as_the_tool_does
