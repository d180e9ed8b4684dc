"""Nothing that an endpoint or a tool does keeps a run from ending in time, or stays behind in the event loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Self

import pytest

from eval_pipeline.agents.run import RunOutcome, TeamRun
from eval_pipeline.db.checks import run_checks
from eval_pipeline.execution.run_many import run_cells
from eval_pipeline.ids import TaskAttempt
from eval_pipeline.teams.registry import load_teams
from eval_pipeline_tests.agents.scenes import (
    GOOD,
    LONG,
    Played,
    Scene,
    Stage,
    choose,
    launch_of,
    play,
    settings_for,
    stored,
    trace_line,
)
from eval_pipeline_tests.agents.tricky_tools import asks_for, tricky_python_calc
from eval_pipeline_tests.conftest import Database
from eval_pipeline_tests.stub_openai import FOR_EVER_S, Reply, StubServer, error, text

DEADLINE_S = 1.5
SILENT = Reply(delay_s=FOR_EVER_S)


@pytest.fixture(autouse=True)
def tools(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with tricky_python_calc(monkeypatch):
        yield


@pytest.fixture
def durations(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long each team ran, its stopping included, in seconds."""
    seconds: list[float] = []
    run = TeamRun.run

    async def timed(self: TeamRun, message: str) -> RunOutcome:
        started_s = time.monotonic()
        try:
            return await run(self, message)
        finally:
            seconds.append(time.monotonic() - started_s)

    monkeypatch.setattr(TeamRun, "run", timed)
    return seconds


class Lateness:
    """How much time the event loop did not get, in seconds: on a busy machine everything takes that much longer."""

    _BEAT_S = 0.02

    def __init__(self) -> None:
        self.seconds = 0.0

    async def __aenter__(self) -> Self:
        self._metronome = asyncio.create_task(self._beat())
        await asyncio.sleep(0)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._metronome.cancel()

    async def _beat(self) -> None:
        while True:
            before_s = time.monotonic()
            await asyncio.sleep(self._BEAT_S)
            self.seconds += time.monotonic() - before_s - self._BEAT_S


def _tool_scene(task_id: str, *behaviours: str) -> Scene:
    return Scene(task_id, {"executor": [asks_for(*behaviours)]}, LONG)


def _ends(played: Played) -> dict[str, tuple[str, bool]]:
    """Per scene what it was terminated by or its error class, and whether it was abandoned."""
    return {name: (run.terminated_by or run.error_class, run.abandoned) for name, run in played.runs.items()}


def _left_nothing(played: Played, database: Database) -> None:
    assert played.leftover_tasks == []
    assert played.complaints == []
    assert all(check.count == 0 for check in run_checks(database.engine))


async def test_every_way_to_hang_ends_within_a_second_of_the_deadline(
    database: Database, durations: list[float]
) -> None:
    scenes = {
        Scene("agent", {"planner": [SILENT]}): ("timeout", False, "user →planner"),
        Scene("selector", {"selector": [SILENT]}): ("timeout", False, "user"),
        Scene("selector-later", {"selector": [choose("planner"), SILENT]}): ("timeout", False, "user →planner planner"),
        Scene("server", {"planner": [error(500)]}): ("server_error", False, "user →planner"),
    }
    called = "user →planner planner →executor call:python_calc"
    for name, behaviour, abandoned in (
        ("sleeps", "sleeps", False),
        ("blocks", "blocks", True),
        ("blocks-in-a-thread", "blocks in a thread", True),
        ("swallows", "swallows", True),
    ):
        scenes[_tool_scene(name, behaviour)] = ("timeout", abandoned, f"{called} end:timeout error:interrupted")
    scenes[_tool_scene("one-of-two", "works", "sleeps")] = (
        "timeout",
        False,
        f"{called} call:python_calc end:timeout error:interrupted error:interrupted",
    )

    async with Lateness() as lateness:
        played = await play(
            database, list(scenes), run_timeout_s=DEADLINE_S, llm_retries=100, llm_backoff_s=0.2, tool_timeout_s=60.0
        )

    assert len(durations) == len(scenes)
    assert max(durations) < DEADLINE_S + 1 + lateness.seconds
    assert {name: (*end, trace_line(played.events[name])) for name, end in _ends(played).items()} == {
        scene.task_id: expected for scene, expected in scenes.items()
    }
    # an endpoint that stalls is a crash; our own limit ends a run as completed, whatever there is to score
    statuses = {name: run.status for name, run in played.runs.items()}
    for name in ("agent", "selector", "selector-later", "server"):
        assert statuses.pop(name) == "crashed"
    assert set(statuses.values()) == {"completed"}
    cut_off = [call for name in ("agent", "selector", "selector-later") for call in played.calls[name][-1:]]
    assert [(call.outcome, call.error_class) for call in cut_off] == [("cancelled", "interrupted")] * 3
    for scene in scenes:
        run, requests = played.runs[scene.task_id], played.requests[scene.task_id]
        assert run.model_calls == len(played.calls[scene.task_id]) == len(requests)
        assert ((run.all_tokens_in or 0), (run.all_tokens_out or 0)) == played.sent_usage(scene.task_id)
    _left_nothing(played, database)


async def test_usage_that_a_cut_off_stream_has_told_is_counted(database: Database) -> None:
    half = text("half an answer", usage="every", break_after=2, break_how="stall")
    played = await play(database, [Scene("cut", {"planner": [half]})], run_timeout_s=DEADLINE_S, llm_stream=True)

    cut = played.calls["cut"][-1]
    assert (cut.outcome, cut.http_status, cut.model) == ("cancelled", 200, "stub-model")
    assert cut.prompt_tokens is not None
    run = played.runs["cut"]
    assert (run.all_tokens_in, run.all_tokens_out) == played.sent_usage("cut")


async def test_an_answer_that_still_flows_when_time_is_up_is_no_stalled_endpoint(database: Database) -> None:
    slow = text("word " * 2000, pieces=2000, chunk_delay_s=0.05)
    played = await play(database, [Scene("slow", {"planner": [slow]})], run_timeout_s=DEADLINE_S, llm_stream=True)
    assert _ends(played) == {"slow": ("timeout", False)}
    assert played.runs["slow"].status == "completed"


async def test_a_rate_limit_that_holds_runs_back_until_their_deadline_is_a_crash_of_its_class(
    database: Database,
) -> None:
    refused = error(429, headers={"retry-after": "60"})
    scenes = [Scene(name, {"selector": [choose("planner")], "planner": [refused]}) for name in ("first", "second")]
    scenes.append(Scene("innocent", {"planner": [text("slow", delay_s=0.8)], "selector": [choose("planner"), GOOD]}))

    played = await play(database, scenes, run_timeout_s=2 * DEADLINE_S)

    assert set(_ends(played).values()) == {("rate_limit", False)}
    assert all(run.model_calls == len(played.requests[name]) for name, run in played.runs.items())
    _left_nothing(played, database)


async def test_however_a_tool_ends_the_model_is_told_and_the_run_goes_on(database: Database) -> None:
    told = {
        "cancels": "error:CancelledError",
        "awaits the cancelled": "error:CancelledError",
        "exits": "error:SystemExit",
        "exits in a task": "error:SystemExit",
        "interrupts": "error:KeyboardInterrupt",
        "fails without a word": "error:RuntimeError",
        "fails in a group": "error:ValueError",
        "leaves a task": "result",
        "answers strangely": "result",
        "answers a number": "result",
    }
    scenes = [_tool_scene(behaviour.replace(" ", "-"), behaviour) for behaviour in told]

    played = await play(database, scenes)

    before = "user →planner planner →executor call:python_calc"
    after = "executor →planner planner →critic critic end:approve"
    traces = {name.replace("-", " "): trace_line(events) for name, events in played.events.items()}
    assert traces == {behaviour: f"{before} {outcome} {after}" for behaviour, outcome in told.items()}
    assert set(_ends(played).values()) == {("approve", False)}
    for name, events in played.events.items():
        row = next(row for row in events if row.message_type in ("tool_result", "tool_error"))
        assert row.content.strip(), name
        assert row.error is None or row.content.startswith(f"{row.error['type']}: ")
    _left_nothing(played, database)


async def test_a_tool_that_takes_too_long_is_an_error_that_the_model_sees(database: Database) -> None:
    names = {"sleeps": False, "blocks": True, "swallows": True}
    played = await play(database, [_tool_scene(name, name) for name in names], tool_timeout_s=0.3)

    # what could not be stopped is still alive when the run ends, and its row says so
    assert _ends(played) == {name: ("approve", abandoned) for name, abandoned in names.items()}
    for name in names:
        failed = next(row for row in played.events[name] if row.message_type == "tool_error")
        assert failed.error["type"] == "TimeoutError"
        assert "0.3 s" in failed.content
    _left_nothing(played, database)


async def test_parallel_calls_pair_with_their_results(database: Database) -> None:
    played = await play(database, [_tool_scene("pair", "works", "exits", "works")])
    rows = [row for row in played.events["pair"] if row.tool_call_id]
    outcomes = {row.tool_call_id: row.message_type for row in rows if row.message_type != "tool_call"}
    asked = {row.tool_call_id: row.tool_args["expression"] for row in rows if row.message_type == "tool_call"}
    assert len(asked) == 3
    assert {asked[call_id]: kind for call_id, kind in outcomes.items()} == {
        "works": "tool_result",
        "exits": "tool_error",
    }
    assert sorted(asked) == sorted(outcomes)


async def test_a_cancelled_launch_closes_its_tries_as_interrupted(database: Database) -> None:
    scenes = [
        Scene("agent", {"planner": [SILENT]}),
        Scene("selector", {"selector": [SILENT]}),
        Scene("backoff", {"planner": [error(500)]}),
        _tool_scene("sleeps", "sleeps"),
        _tool_scene("blocks", "blocks"),
    ]
    waiting = Scene("never-begun")
    stage = Stage([*scenes, waiting], load_teams(None)["v1-baseline"])
    async with StubServer(stage) as stub:
        settings = settings_for(database, stub.base_url, concurrency=len(scenes), llm_backoff_s=60.0)
        launch = launch_of(database, settings, [*scenes, waiting], "scenes@v1-baseline")
        before = asyncio.all_tasks()
        cells = [TaskAttempt(scene.task_id, 1) for scene in [*scenes, waiting]]
        work = asyncio.create_task(run_cells(launch, cells, lambda _plan: None, lambda _result: None))
        async with asyncio.timeout(30):
            while not _all_under_way(stage, scenes):  # noqa: ASYNC110 - the stub has no event for this
                await asyncio.sleep(0.05)
        # an executor that is asked is not yet a tool that runs
        await asyncio.sleep(0.5)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            async with asyncio.timeout(10):
                await work
        left = asyncio.all_tasks() - before - stub.tasks - {work}

    runs, calls, events = stored(launch, scenes)
    assert {name: (run.status, run.error_class) for name, run in runs.items()} == {
        scene.task_id: ("crashed", "interrupted") for scene in scenes
    }
    assert waiting.task_id not in runs
    assert trace_line(events["sleeps"]).endswith("call:python_calc error:interrupted")
    assert [call.outcome for call in calls["agent"]] == ["ok", "cancelled"]
    assert left == set()
    assert all(check.count == 0 for check in run_checks(database.engine))


def _all_under_way(stage: Stage, scenes: list[Scene]) -> bool:
    """Whether each scene has come to its last request."""
    last = {"agent": "planner", "selector": "selector", "backoff": "planner"}
    asked = {scene.task_id: {role for role, _ in stage.requests[scene.task_id]} for scene in scenes}
    return all(last.get(name, "executor") in roles for name, roles in asked.items())
