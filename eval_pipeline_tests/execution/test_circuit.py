"""An endpoint whose quota is gone, or whose key is wrong: the batch stops early, says so, and ends another day."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import func, select

from eval_pipeline.db import tables
from eval_pipeline.db.checks import run_checks
from eval_pipeline.db.paused import paused_batches
from eval_pipeline.execution.cells import CellEnd
from eval_pipeline.execution.circuit import FAILURES_TO_OPEN, count_end, endpoint_of, open_circuit
from eval_pipeline.execution.launch import Launch
from eval_pipeline.execution.run_many import LaunchResult, run_cells
from eval_pipeline.ids import BatchTeam, TaskAttempt
from eval_pipeline.teams.registry import load_teams
from eval_pipeline_tests.agents.scenes import APPROVAL, Scene, Stage, launch_of, settings_for
from eval_pipeline_tests.conftest import Database
from eval_pipeline_tests.stub_openai import Reply, Request, StubServer, error

QUOTA = error(429, "You exceeded your current quota, please check your plan", "insufficient_quota")
FORBIDDEN = error(401)
SHORT_CALLS = 4
"""Calls of a scene that goes well: the selector and the planner, the selector and the critic."""


@dataclass
class Metered:
    """The endpoint of a stage, which refuses what ``refuses`` says of a request's number, counted from 1."""

    stage: Stage
    refuses: Callable[[int], bool]
    refusal: Reply = QUOTA
    number: int = 0
    answered: list[Request] = field(default_factory=list)
    refused: list[Request] = field(default_factory=list)

    def __call__(self, request: Request) -> Reply:
        self.number += 1
        if self.refuses(self.number):
            self.refused.append(request)
            return self.refusal
        self.answered.append(request)
        return self.stage(request)

    def renew(self) -> None:
        self.refuses = lambda _number: False

    def sent_tokens(self) -> tuple[int, int]:
        sent = [request.usage or (0, 0) for request in self.answered]
        return sum(one[0] or 0 for one in sent), sum(one[1] or 0 for one in sent)


@dataclass
class Day:
    """A batch of scenes at a metered endpoint, launched as often as a test wants."""

    database: Database
    scenes: Sequence[Scene]
    endpoint: Metered
    base_url: str
    key: str = "metered@v1-baseline"

    def open(self, *, begun_at: datetime | None = None, **changes: Any) -> Launch:
        settings = settings_for(self.database, self.base_url, **{"concurrency": 3, **changes})
        launch = launch_of(self.database, settings, self.scenes, self.key)
        return launch if begun_at is None else replace(launch, begun_at=begun_at)

    async def launch(self, scenes: Sequence[Scene] | None = None, **changes: Any) -> LaunchResult:
        cells = [TaskAttempt(scene.task_id, 1) for scene in scenes or self.scenes]
        return await run_cells(self.open(**changes), cells, lambda _plan: None, lambda _result: None)

    def rows(self) -> int:
        with self.database.engine.connect() as connection:
            return int(connection.execute(select(func.count()).select_from(tables.runs)).scalar_one())

    def is_open(self) -> bool:
        with self.database.engine.connect() as connection:
            return open_circuit(connection, endpoint_of(self.open().settings)) is not None


@asynccontextmanager
async def metered(
    database: Database, runs: int, refuses: Callable[[int], bool], refusal: Reply = QUOTA
) -> AsyncIterator[Day]:
    scenes = [Scene(f"scene-{number:02}") for number in range(runs)]
    endpoint = Metered(Stage(scenes, load_teams(None)["v1-baseline"]), refuses, refusal)
    async with StubServer(endpoint) as stub:
        yield Day(database, scenes, endpoint, stub.base_url)


@pytest.mark.parametrize(
    ("refusal", "error_class", "cure"),
    [(QUOTA, "quota", "wait until the quota is renewed"), (FORBIDDEN, "auth", "check EVAL_LLM_API_KEY")],
)
async def test_a_batch_stops_within_the_stated_calls_and_a_later_launch_ends_it(
    database: Database, refusal: Reply, error_class: str, cure: str
) -> None:
    async with metered(database, 40, lambda number: number >= 52, refusal) as day:
        stopped = await day.launch()

        concurrency = 3
        assert FAILURES_TO_OPEN <= len(day.endpoint.refused) <= FAILURES_TO_OPEN + concurrency - 1
        assert len(day.endpoint.answered) == 51
        completed, crashed = stopped.count(CellEnd.COMPLETED), stopped.count(CellEnd.CRASHED)
        not_started = [result for result in stopped.results if result.end is CellEnd.NOT_STARTED]
        assert crashed == len(day.endpoint.refused)
        assert completed + crashed + len(not_started) == 40
        assert completed >= 51 // SHORT_CALLS - concurrency

        # what had not started has no row
        assert day.rows() == completed + crashed
        with database.engine.connect() as connection:
            runs = tables.runs
            classes = connection.execute(select(runs.c.error_class).where(runs.c.status == "crashed")).scalars()
            assert set(classes) == {error_class}
            planned = connection.execute(select(func.count()).select_from(tables.plan)).scalar_one()
        assert planned == 40

        assert stopped.circuit is not None
        line = stopped.circuit.line()
        assert "\n" not in line
        assert cure in line
        assert "launch the batch again" in line
        assert not_started[0].message == line

        day.endpoint.renew()
        ended = await day.launch()

        assert ended.circuit is None
        assert not ended.unfinished
        assert ended.count(CellEnd.SKIPPED) == completed
        assert not day.is_open()
        with database.engine.connect() as connection:
            runs = tables.runs
            used = connection.execute(
                select(func.sum(runs.c.all_tokens_in), func.sum(runs.c.all_tokens_out), func.sum(runs.c.model_calls))
            ).one()
            done = select(func.count()).where(runs.c.live, runs.c.status == "completed")
            assert connection.execute(done).scalar_one() == 40
        assert (used[0], used[1]) == day.endpoint.sent_tokens()
        assert used[2] == len(day.endpoint.answered) + len(day.endpoint.refused)
        assert all(check.passed for check in run_checks(database.engine))


async def test_a_rate_limit_opens_no_circuit(database: Database) -> None:
    refusal = error(429, headers={"retry-after": "0"})
    async with metered(database, 12, lambda _number: True, refusal) as day:
        result = await day.launch()
        assert result.count(CellEnd.CRASHED) == 12
        assert result.circuit is None
        assert not day.is_open()


async def test_failures_that_are_not_in_a_row_open_no_circuit(database: Database) -> None:
    # one run at a time: four refused, one answered whole, four refused
    async with metered(database, 9, lambda number: number <= 4 or number > 4 + SHORT_CALLS) as day:
        result = await day.launch(concurrency=1)
        refused = [CellEnd.CRASHED] * 4
        assert [one.end for one in result.results] == [*refused, CellEnd.COMPLETED, *refused]
        assert not day.is_open()


async def test_an_answer_proves_that_the_quota_is_not_gone_only_if_it_came_after_the_failures(
    database: Database,
) -> None:
    slow = Scene("slow", replies={"critic": (replace(APPROVAL, delay_s=1.5),)})
    others = [Scene(f"scene-{number:02}") for number in range(5)]
    stage = Stage([slow, *others], load_teams(None)["v1-baseline"])

    def answer(request: Request) -> Reply:
        return stage(request) if "[scene slow]" in str(request.messages) else QUOTA

    def failures() -> int:
        with database.engine.connect() as connection:
            return int(connection.execute(select(tables.circuits.c.failures)).scalar_one())

    async with StubServer(answer) as stub:
        day = Day(database, [slow, *others], Metered(stage, lambda _number: False), stub.base_url)
        # begun together, and answered when the four others have been refused
        result = await day.launch([slow, *others[:4]], concurrency=5)
        assert result.count(CellEnd.CRASHED) == 4
        assert failures() == 0

        await day.launch([others[4]])
        completed = select(tables.runs.c.run_id).where(tables.runs.c.status == "completed")
        launch = day.open()
        with database.engine.begin() as connection:
            run_id = connection.execute(completed).scalar_one()
            # as if its scoring had taken until now
            count_end(connection, endpoint_of(launch.settings), launch.batch_team, run_id, None, "")
        assert failures() == 1


async def test_what_was_asked_for_before_the_circuit_opened_does_not_close_it(database: Database) -> None:
    """The other Dagster runs of a backfill, each a worker of its own, start after their neighbour has stopped."""
    async with metered(database, 20, lambda number: number >= 9) as day:
        asked_at = datetime.now(UTC)
        first, second, third = day.scenes[:10], day.scenes[10:15], day.scenes[15:]
        await day.launch(first, begun_at=asked_at)
        assert day.is_open()
        heard = day.endpoint.number

        for chunk in (second, third):
            result = await day.launch(chunk, begun_at=asked_at)
            assert {one.end for one in result.results} == {CellEnd.NOT_STARTED}
        assert day.endpoint.number == heard

        day.endpoint.renew()
        assert not (await day.launch()).unfinished


async def test_workers_of_one_launch_do_not_forget_each_others_failures(database: Database) -> None:
    """One cell each, as when a backfill has many scattered holes: the fifth refusal stops them all."""
    async with metered(database, 12, lambda _number: True) as day:
        asked_at = datetime.now(UTC)
        for scene in day.scenes:
            await day.launch([scene], begun_at=asked_at)
        assert len(day.endpoint.refused) == FAILURES_TO_OPEN
        assert day.rows() == FAILURES_TO_OPEN


async def test_another_model_or_host_has_a_circuit_of_its_own(database: Database) -> None:
    async with metered(database, 8, lambda number: number <= FAILURES_TO_OPEN) as day:
        await day.launch(concurrency=1)
        assert day.is_open()
        other = Day(database, day.scenes, day.endpoint, day.base_url, "other@v1-baseline")
        launch = other.open(begun_at=datetime.now(UTC) - timedelta(hours=1), llm_model="another-model")
        cells = [TaskAttempt(scene.task_id, 1) for scene in day.scenes]
        assert not (await run_cells(launch, cells, lambda _plan: None, lambda _result: None)).unfinished
        assert day.is_open()


async def test_only_what_the_circuit_has_stopped_counts_as_paused(database: Database) -> None:
    async with metered(database, 10, lambda number: number <= 1 or number > 1 + 2 * SHORT_CALLS) as day:
        in_an_hour = datetime.now(UTC) + timedelta(hours=1)
        # left with a crash, and nobody wants it to go on
        abandoned = Day(database, day.scenes, day.endpoint, day.base_url, "abandoned@v1-baseline")
        await abandoned.launch(day.scenes[:3], concurrency=1)
        assert paused_batches(database.engine, in_an_hour) == []

        await day.launch(concurrency=1)
        (paused,) = paused_batches(database.engine, in_an_hour)
        assert paused.batch_team == BatchTeam("metered", "v1-baseline")
        assert len(paused.missing) == 10
        assert paused_batches(database.engine, datetime.now(UTC) - timedelta(hours=1)) == []

        day.endpoint.renew()
        await day.launch()
        assert paused_batches(database.engine, in_an_hour) == []
