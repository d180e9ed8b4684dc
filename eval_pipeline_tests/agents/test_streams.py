"""Streams come in pieces of any size, at any pace, and say whatever they like; what is read is the same."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.agents import gathering
from eval_pipeline.agents.gathering import read_gathered
from eval_pipeline.agents.sse import DataLines, values

STREAM = (
    b'data: {"a": 1}\r\n\r\n: keep-alive\n\nevent: x\ndata:{"b": "\xea\xb0\x80"}\n\n'
    b"data: one\ndata: two\r\rdata: [DONE]"
)
PAYLOADS = [b'{"a": 1}', b'{"b": "\xea\xb0\x80"}', b"one\ntwo", b"[DONE]"]


def read(pieces: Sequence[bytes]) -> list[bytes]:
    lines = DataLines()
    found = [payload for piece in pieces for payload in lines.feed(piece)]
    return found + lines.end()


@given(cuts=st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_where_a_stream_is_cut_changes_nothing(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(STREAM)]
    assert read([STREAM[begin:end] for begin, end in pairwise(places)]) == PAYLOADS


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_a_line_ends_as_the_standard_says(end: bytes) -> None:
    assert read([end.join([b"data: 1", b"", b"data: 2", b"", b""])]) == [b"1", b"2"]


def test_an_empty_stream_and_one_of_comments_say_nothing() -> None:
    assert read([]) == read([b"", b": nothing\n\n", b"id: 7\n\n", b"\n\n\n"]) == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(chunks=st.lists(JSON, max_size=6))
def test_values_are_those_of_each_payload_alone(chunks: list[object]) -> None:
    payloads = [json.dumps(chunk, ensure_ascii=False).encode("utf-8", "surrogatepass") for chunk in chunks]
    try:
        alone = [json.loads(payload) for payload in payloads]
    except ValueError:
        with pytest.raises(ValueError):
            list(values(payloads))
    else:
        assert list(values(payloads)) == alone


@pytest.mark.parametrize("broken", [b"{", b"nothing", b'{"a": 1},{"b": 2}', b'{"a": "\xff"}', b"{}}", b"[1}"])
def test_what_came_before_a_broken_payload_is_read(broken: bytes) -> None:
    found = []
    with pytest.raises(ValueError):
        for value in values([b'{"n": 1}', b'{"n": 2}', broken]):
            found.append(value)
    assert found == [{"n": 1}, {"n": 2}]


async def paced(pieces: Sequence[bytes], pause_s: float) -> AsyncIterator[bytes]:
    for piece in pieces:
        await asyncio.sleep(pause_s)
        yield piece


async def arriving(pieces: Sequence[bytes], pause_s: float) -> AsyncIterator[bytes]:
    """As from a connection: what comes while nobody reads is there when somebody does."""
    come: asyncio.Queue[bytes | None] = asyncio.Queue()

    async def sends() -> None:
        async for piece in paced(pieces, pause_s):
            come.put_nowait(piece)
        come.put_nowait(None)

    sending = asyncio.create_task(sends())
    while (piece := await come.get()) is not None:
        yield piece
    await sending


class Taker:
    """Takes data and remembers it; ``silent`` data do not count as a word."""

    def __init__(self, silent: bytes = b"", fail_at: bytes = b"never") -> None:
        self.taken: list[bytes] = []
        self._silent = silent
        self._fail_at = fail_at

    def __call__(self, data: bytes) -> bool:
        self.taken.append(data)
        if self._fail_at in data:
            raise ValueError(f"broken at {data!r}")
        return data != self._silent

    @property
    def whole(self) -> bytes:
        return b"".join(self.taken)


NEVER: Callable[[], bool] = lambda: False  # noqa: E731


async def test_nothing_is_lost_and_little_is_taken_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "_GATHER_S", 0.05)
    pieces = [b"%d " % number for number in range(300)]
    taker = Taker()
    await read_gathered(arriving(pieces, 0.001), taker, NEVER, 5.0)
    assert taker.whole == b"".join(pieces)
    # each of the first ones at once; then what comes within the wait, together
    assert len(taker.taken) < 100


async def test_what_is_there_at_once_is_taken_at_once() -> None:
    async def at_once() -> AsyncIterator[bytes]:
        for number in range(1000):
            yield b"%d " % number

    taker = Taker()
    await read_gathered(at_once(), taker, NEVER, 5.0)
    assert len(taker.taken) == 1


async def test_a_word_that_is_an_error_is_heard_although_the_stream_goes_silent() -> None:
    async def then_silent() -> AsyncIterator[bytes]:
        yield b"fine "
        yield b"error"
        await asyncio.sleep(3600)

    taker = Taker(fail_at=b"error")
    async with asyncio.timeout(5):
        with pytest.raises(ValueError, match="broken at"):
            await read_gathered(then_silent(), taker, NEVER, 3600.0)


async def test_silence_is_a_time_out_and_a_connection_kept_alive_is_silence() -> None:
    async def kept_alive() -> AsyncIterator[bytes]:
        yield b"word"
        while True:
            await asyncio.sleep(0.02)
            yield b":"

    taker = Taker(silent=b":")
    with pytest.raises(TimeoutError):
        await read_gathered(kept_alive(), taker, NEVER, 0.3)
    assert taker.taken[0] == b"word"


async def test_a_slow_stream_that_speaks_is_no_silence() -> None:
    taker = Taker()
    await read_gathered(paced([b"a", b"b", b"c", b"d", b"e"], 0.15), taker, NEVER, 0.4)
    assert taker.whole == b"abcde"


async def test_what_came_before_a_broken_connection_is_taken() -> None:
    async def breaks() -> AsyncIterator[bytes]:
        yield b"one "
        yield b"two"
        raise ConnectionResetError("gone")

    taker = Taker()
    with pytest.raises(ConnectionResetError):
        await read_gathered(breaks(), taker, NEVER, 5.0)
    assert taker.whole == b"one two"


async def test_a_reader_that_is_cancelled_ends_at_once_with_what_it_has() -> None:
    async def slow() -> AsyncIterator[bytes]:
        yield b"one"
        await asyncio.sleep(3600)

    taker = Taker()
    reading = asyncio.create_task(read_gathered(slow(), taker, NEVER, 3600.0))
    await asyncio.sleep(0.05)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert taker.whole == b"one"
