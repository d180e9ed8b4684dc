"""The gate follows an endpoint's refusals and recovers from them; nobody stays inside by being cancelled."""

from __future__ import annotations

import asyncio
import time

import pytest

from eval_pipeline.agents.gate import EndpointGate


def test_a_refusal_halves_the_limit_and_answers_raise_it_again() -> None:
    gate = EndpointGate(8)
    limits = []
    for _ in range(4):
        gate.refused(None)
        limits.append(gate.limit)
    assert limits == [4, 2, 1, 1]
    for _ in range(1 + 2 + 3 + 4 + 5 + 6 + 7 + 100):
        gate.answered()
        limits.append(gate.limit)
    assert limits[-1] == 8
    assert sorted(limits[3:]) == limits[3:]


async def test_no_more_than_the_limit_are_inside_at_once() -> None:
    gate = EndpointGate(4)
    gate.refused(None)
    inside = most = 0

    async def one() -> None:
        nonlocal inside, most
        async with gate.passing():
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0.001)
            inside -= 1

    await asyncio.gather(*(one() for _ in range(40)))
    assert most == 2


async def test_a_pause_holds_for_everybody() -> None:
    gate = EndpointGate(4)
    gate.refused(0.2)
    started_s = time.monotonic()

    async def one() -> float:
        async with gate.passing():
            return time.monotonic() - started_s

    assert min(await asyncio.gather(*(one() for _ in range(4)))) >= 0.2


async def test_who_is_cancelled_waiting_or_inside_leaves_his_place_to_others() -> None:
    gate = EndpointGate(1)
    entered = asyncio.Event()

    async def stay() -> None:
        async with gate.passing():
            entered.set()
            await asyncio.Event().wait()

    inside = asyncio.create_task(stay())
    await entered.wait()
    waiting = [asyncio.create_task(stay()) for _ in range(3)]
    await asyncio.sleep(0)
    entered.clear()
    for task in (waiting[0], inside):
        task.cancel()
    async with asyncio.timeout(5):
        await entered.wait()
        for task in waiting[1:]:
            task.cancel()
        await asyncio.gather(inside, *waiting, return_exceptions=True)
        async with gate.passing():
            pass


async def test_a_gate_that_is_raised_lets_the_next_one_in_at_once() -> None:
    gate = EndpointGate(2)
    gate.refused(None)
    async with gate.passing():
        second = asyncio.create_task(_through(gate))
        await asyncio.sleep(0.01)
        assert not second.done()
        gate.answered()
        async with asyncio.timeout(5):
            await second


async def _through(gate: EndpointGate) -> None:
    async with gate.passing():
        pass


@pytest.mark.parametrize("most", [1, 3])
async def test_without_a_refusal_nobody_waits(most: int) -> None:
    gate = EndpointGate(most)
    async with asyncio.timeout(5):
        await asyncio.gather(*(_through(gate) for _ in range(20)))
    assert gate.limit == most
