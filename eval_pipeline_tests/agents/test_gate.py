"""The gate of a launch: one refusal is the word to every run, and the limit follows what the endpoint takes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace

import pytest

from eval_pipeline.agents.gate import LONGEST_HOLD_S, EndpointGate, Passage
from eval_pipeline_tests.agents.scenes import GOOD, Scene, Stage, play
from eval_pipeline_tests.conftest import Database
from eval_pipeline_tests.stub_openai import Reply, Request, error

PATIENCE_S = 300.0


def refuse(gate: EndpointGate, passage: Passage, retry_after_s: float | None = None) -> None:
    gate.refused(passage, retry_after_s, bearable_s=PATIENCE_S)


async def pass_once(gate: EndpointGate) -> Passage:
    async with gate.passing() as passage:
        return passage


async def answers(gate: EndpointGate, count: int) -> None:
    for _ in range(count):
        gate.answered(await pass_once(gate))


async def test_the_limit_is_halved_at_each_refusal_and_never_below_one() -> None:
    gate = EndpointGate(25)
    limits = []
    for _ in range(6):
        refuse(gate, await pass_once(gate))
        limits.append(gate.limit)
    assert limits == [12, 6, 3, 1, 1, 1]


async def test_requests_that_went_together_and_are_refused_together_are_one_word() -> None:
    gate = EndpointGate(24)
    together = [await pass_once(gate) for _ in range(24)]
    for passage in together:
        refuse(gate, passage)
    assert gate.limit == 12


async def test_the_limit_recovers_by_one_for_as_many_answers_as_it_allows() -> None:
    gate = EndpointGate(8)
    old = await pass_once(gate)
    refuse(gate, await pass_once(gate))
    assert gate.limit == 4
    gate.answered(old)
    await answers(gate, 3)
    assert gate.limit == 4
    await answers(gate, 1)
    assert gate.limit == 5
    await answers(gate, 5 + 6 + 7)
    assert gate.limit == 8
    await answers(gate, 100)
    assert gate.limit == 8


@pytest.mark.parametrize("refusals", [0, 1, 2, 9])
async def test_no_more_are_inside_at_once_than_the_limit_says(refusals: int) -> None:
    gate = EndpointGate(8)
    for _ in range(refusals):
        refuse(gate, await pass_once(gate))
    inside = most = 0

    async def request() -> None:
        nonlocal inside, most
        async with gate.passing():
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0.001)
            inside -= 1

    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        for _ in range(60):
            group.create_task(request())
    assert most == gate.limit == max(1, 8 >> refusals)


async def test_a_place_is_given_back_whatever_happens_in_it() -> None:
    gate = EndpointGate(1)
    with pytest.raises(RuntimeError):
        async with gate.passing():
            raise RuntimeError
    waiting = asyncio.ensure_future(pass_once(gate))
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    async with asyncio.timeout(5):
        await pass_once(gate)


async def test_a_pause_holds_requests_and_new_runs_and_may_grow_but_not_shrink() -> None:
    gate = EndpointGate(4)
    begun_s = time.monotonic()
    refuse(gate, await pass_once(gate), 0.4)
    refuse(gate, Passage(0), 0.1)
    await asyncio.gather(pass_once(gate), gate.may_begin())
    assert time.monotonic() - begun_s >= 0.4
    async with asyncio.timeout(5):
        await asyncio.gather(pass_once(gate), gate.may_begin())


async def test_a_pause_beyond_the_patience_of_runs_keeps_only_new_ones_from_beginning() -> None:
    gate = EndpointGate(4)
    gate.refused(await pass_once(gate), 0.5, bearable_s=0.1)
    begun_s = time.monotonic()
    await pass_once(gate)
    assert time.monotonic() - begun_s < 0.4
    await gate.may_begin()
    assert time.monotonic() - begun_s >= 0.4


async def test_no_answer_of_an_endpoint_keeps_new_runs_waiting_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    assert LONGEST_HOLD_S <= 3600
    monkeypatch.setattr("eval_pipeline.agents.gate.LONGEST_HOLD_S", 0.2)
    gate = EndpointGate(4)
    gate.refused(await pass_once(gate), float("inf"), bearable_s=PATIENCE_S)
    async with asyncio.timeout(5):
        await gate.may_begin()


def _gaps(requests: Sequence[Request], at_s: float) -> list[float]:
    return [request.at_s - at_s for request in requests if request.at_s > at_s]


async def test_retry_after_holds_every_run_of_the_launch(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """One run of twenty is told to come back in a second: nobody asks before, and nobody's run is lost."""
    pause_s = 1.0
    refused_at_s: list[float] = []
    usual = Stage.__call__

    def answer(stage: Stage, request: Request) -> Reply:
        reply = usual(stage, request)
        if reply.status == 429:
            refused_at_s.append(time.monotonic())
        return reply

    monkeypatch.setattr(Stage, "__call__", answer)
    told = error(429, headers={"retry-after": str(pause_s)})
    scenes = [Scene("told", {"planner": (told, GOOD)}), *(Scene(f"other-{number:02}") for number in range(19))]
    played = await play(database, scenes, concurrency=5)

    assert all(run.status == "completed" for run in played.runs.values())
    (at_s,) = refused_at_s
    later = sorted(_gaps([request for _, one in played.requests.items() for _, request in one], at_s))
    # what was on its way when the answer came could not know
    under_way = [gap for gap in later if gap < pause_s]
    assert len(under_way) < 5
    assert all(gap < pause_s / 2 for gap in under_way)
    assert len(later) - len(under_way) > 19


async def test_an_endpoint_that_takes_few_at_once_is_asked_little_more_than_it_takes(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    takes, takes_s = 4, 0.05
    busy_until_s: list[float] = []
    turned_away = 0
    usual = Stage.__call__

    def answer(stage: Stage, request: Request) -> Reply:
        nonlocal turned_away
        now_s = time.monotonic()
        busy_until_s[:] = [until_s for until_s in busy_until_s if until_s > now_s]
        if len(busy_until_s) >= takes:
            turned_away += 1
            return error(429)
        busy_until_s.append(now_s + takes_s)
        return replace(usual(stage, request), delay_s=takes_s)

    monkeypatch.setattr(Stage, "__call__", answer)
    scenes = [Scene(f"scene-{number:02}") for number in range(40)]
    played = await play(database, scenes, concurrency=16, llm_retries=12, llm_backoff_s=0.02)
    assert all(run.status == "completed" for run in played.runs.values())
    taken = sum(map(len, played.requests.values()))
    # sixteen runs that each only wait for themselves would be turned away three times out of four
    assert turned_away < taken / 3
