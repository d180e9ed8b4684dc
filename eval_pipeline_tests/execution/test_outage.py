"""A database that goes away in the middle of a run costs at most rows of its trace, and nothing ever hangs."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from pydantic import SecretStr
from sqlalchemy.exc import OperationalError, ProgrammingError
from sqlalchemy.exc import TimeoutError as DatabaseTimeoutError

from eval_pipeline.db.checks import run_checks
from eval_pipeline.db.engine import engine
from eval_pipeline.execution import patience
from eval_pipeline.execution.cells import CellEnd
from eval_pipeline.execution.patience import in_database
from eval_pipeline.execution.run_many import run_cells
from eval_pipeline.ids import TaskAttempt
from eval_pipeline.teams.registry import load_teams
from eval_pipeline_tests.agents.scenes import Played, Scene, Stage, launch_of, played, settings_for
from eval_pipeline_tests.conftest import Database
from eval_pipeline_tests.stub_openai import Reply, Request, StubServer, text
from eval_pipeline_tests.tcp_proxy import Proxy, proxied

LOST = OperationalError("select 1", {}, ConnectionResetError("gone"))


@pytest.fixture
def way(database: Database) -> Iterator[tuple[Proxy, Database]]:
    """The database behind a proxy."""
    with proxied(database.dsn) as (proxy, dsn):
        settings = database.settings.model_copy(update={"pg_dsn": SecretStr(dsn)})
        pool = engine(settings)
        yield proxy, Database(dsn, settings, pool)
        pool.dispose()


async def _play(
    database: Database, scenes: Sequence[Scene], on_request: Callable[[str, Scene], None], **changes: Any
) -> Played:
    """Play scenes, telling ``on_request`` of each request's role before it is answered."""
    stage = Stage(scenes, load_teams(None)["v1-baseline"])

    def answer(request: Request) -> Reply:
        reply = stage(request)
        for scene in scenes:
            if stage.requests[scene.task_id] and stage.requests[scene.task_id][-1][1] is request:
                on_request(stage.requests[scene.task_id][-1][0], scene)
        return reply

    async with StubServer(answer) as stub:
        settings = settings_for(database, stub.base_url, **changes)
        return await played(launch_of(database, settings, scenes, "scenes@v1-baseline"), scenes, stage, stub)


def _once(work: Callable[[], None]) -> Callable[[], None]:
    done = threading.Event()

    def once() -> None:
        if not done.is_set():
            done.set()
            work()

    return once


async def test_five_seconds_without_a_database_cost_rows_of_the_trace_that_the_run_admits(
    database: Database, way: tuple[Proxy, Database]
) -> None:
    proxy, through = way

    def cut() -> None:
        proxy.cut()
        threading.Timer(5.0, proxy.mend).start()

    cut_once = _once(cut)
    rejections = [text("Redo it.", delay_s=0.6)] * 12
    scene = Scene("long", {"critic": [*rejections, text("APPROVE")]}, ("planner", "critic") * 13)

    def asked(role: str, _scene: Scene) -> None:
        if role == "critic":
            cut_once()

    result = await _play(through, [scene], asked, max_messages=60)

    run, events = result.runs["long"], result.events["long"]
    assert (run.status, run.terminated_by, run.success) == ("completed", "approve", True)
    assert result.results["long"].end is CellEnd.COMPLETED
    # every event has its number, stored or lost
    assert len(events) + run.events_dropped == events[-1].seq + 1 == 2 + 26 * 2
    assert run.events_dropped > 0
    assert (run.all_tokens_in, run.all_tokens_out) == result.sent_usage("long")
    assert run.model_calls == len(result.requests["long"]) > len(result.calls["long"])
    assert result.leftover_tasks == result.complaints == []
    assert all(check.count == 0 for check in run_checks(database.engine))


async def test_a_run_that_ends_while_the_database_is_away_is_stored_when_it_is_back(
    database: Database, way: tuple[Proxy, Database]
) -> None:
    proxy, through = way

    def cut() -> None:
        proxy.cut()
        threading.Timer(3.0, proxy.mend).start()

    cut_once = _once(cut)
    scenes = [Scene("first"), Scene("second")]
    result = await _play(through, scenes, lambda role, _: cut_once() if role == "critic" else None, concurrency=1)

    # the second one begins when the first has been stored, or during the outage: both come to their end
    assert {name: run.terminated_by for name, run in result.runs.items()} == {"first": "approve", "second": "approve"}
    assert {one.end for one in result.results.values()} == {CellEnd.COMPLETED}
    assert result.leftover_tasks == result.complaints == []
    assert all(check.count == 0 for check in run_checks(database.engine))


async def test_a_database_that_is_gone_for_good_makes_a_run_a_crash_of_its_class(
    database: Database, way: tuple[Proxy, Database], monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy, through = way
    monkeypatch.setattr(patience, "GIVE_UP_AFTER_S", 1.0)
    cut_once = _once(proxy.cut)
    scenes = [Scene("first"), Scene("second"), Scene("third")]
    started_s = time.monotonic()
    outcomes = await _results(through, scenes, lambda role: cut_once() if role == "critic" else None, concurrency=2)

    assert time.monotonic() - started_s < 30
    assert {name: end for name, (end, _) in outcomes.items()} == dict.fromkeys(outcomes, CellEnd.CRASHED)
    assert all(message.startswith("database: ") for _, message in outcomes.values())
    assert len(outcomes) == len(scenes)


@pytest.mark.slow
async def test_a_database_that_neither_answers_nor_fails_is_given_up_too(
    way: tuple[Proxy, Database], monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy, through = way
    monkeypatch.setattr(patience, "GIVE_UP_AFTER_S", 1.0)
    monkeypatch.setattr(patience, "STUCK_AFTER_S", 2.0)
    freeze_once = _once(proxy.freeze)
    started_s = time.monotonic()
    outcomes = await _results(through, [Scene("one")], lambda role: freeze_once() if role == "critic" else None)

    assert time.monotonic() - started_s < 60
    end, message = outcomes["one"]
    assert end is CellEnd.CRASHED
    assert message.startswith("database: the database has not answered")
    proxy.mend()


async def _results(
    database: Database, scenes: Sequence[Scene], on_role: Callable[[str], None], **changes: Any
) -> dict[str, tuple[CellEnd, str]]:
    """What the launch says of each scene; for a database that cannot be asked afterwards."""
    stage = Stage(scenes, load_teams(None)["v1-baseline"])

    def answer(request: Request) -> Reply:
        reply = stage(request)
        on_role(next(asked[-1][0] for asked in stage.requests.values() if asked and asked[-1][1] is request))
        return reply

    async with StubServer(answer) as stub:
        settings = settings_for(database, stub.base_url, **changes)
        launch = launch_of(database, settings, scenes, "scenes@v1-baseline")
        before = asyncio.all_tasks()
        cells = [TaskAttempt(scene.task_id, 1) for scene in scenes]
        result = await run_cells(launch, cells, lambda _plan: None, lambda _result: None)
        assert asyncio.all_tasks() - before - stub.tasks == set()
    return {one.task_attempt.task_id: (one.end, one.message) for one in result.results}


async def test_work_is_done_again_until_an_outage_is_over() -> None:
    failures = [LOST, LOST]

    def work() -> str:
        if failures:
            raise failures.pop()
        return "done"

    assert await in_database(work, give_up_after_s=10) == "done"


async def test_an_outage_that_lasts_is_given_up_and_a_refusal_is_not_repeated() -> None:
    tried: list[Exception] = []

    def failing(error: Exception) -> Callable[[], None]:
        def work() -> None:
            tried.append(error)
            raise error

        return work

    with pytest.raises(OperationalError):
        await in_database(failing(LOST), give_up_after_s=0.7)
    assert len(tried) == 2
    refusal = ProgrammingError("select", {}, ValueError("no such table"))
    with pytest.raises(ProgrammingError):
        await in_database(failing(refusal), give_up_after_s=10)
    assert tried.count(refusal) == 1


async def test_a_call_that_is_stuck_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "STUCK_AFTER_S", 0.2)
    released = threading.Event()
    with pytest.raises(DatabaseTimeoutError, match="has not answered"):
        await in_database(lambda: released.wait(30), give_up_after_s=0)
    released.set()
