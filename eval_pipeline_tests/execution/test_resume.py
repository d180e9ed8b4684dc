"""What a later launch does with a cell: completed is kept, crashed is tried again, dead is closed, busy is left."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from sqlalchemy import func, insert, select, update

from eval_pipeline.db import tables
from eval_pipeline.db.checks import run_checks
from eval_pipeline.execution import store
from eval_pipeline.execution.cells import CellEnd
from eval_pipeline.execution.summaries import live_run
from eval_pipeline.ids import TaskAttempt
from eval_pipeline_tests.conftest import Database
from eval_pipeline_tests.execution.launching import CAFE, TANK, TILES, Told, block_staging, opened, run, tries


def _count(database: Database, table: str) -> int:
    with database.engine.connect() as connection:
        return int(connection.execute(select(func.count()).select_from(tables.metadata.tables[table])).scalar_one())


async def test_a_completed_cell_is_skipped_without_a_call_or_a_row(database: Database) -> None:
    await run(opened(database, "first@v5-multitool"), [CAFE, TILES])
    before = {name: _count(database, name) for name in ("runs", "events", "model_calls", "texts")}

    told = Told()
    result = await run(opened(database, "first@v5-multitool"), [CAFE, TILES], told)

    assert [ended.end for ended in result.results] == [CellEnd.SKIPPED, CellEnd.SKIPPED]
    assert {name: _count(database, name) for name in before} == before
    assert (told.plans[0].run, told.plans[0].skip, told.plans[0].most_calls) == (0, 2, 0)
    assert result.line() == (
        "batch=first team=v5-multitool planned=2 started=0 completed=0 crashed=0 skipped=2 retried=0"
    )


async def test_a_crashed_cell_is_tried_again_and_its_first_try_is_kept(database: Database) -> None:
    obstacle = block_staging(CAFE.task_id)
    first = await run(opened(database, "first@v5-multitool"), [CAFE, TILES])
    assert {ended.task_attempt: ended.end for ended in first.results} == {
        CAFE: CellEnd.CRASHED,
        TILES: CellEnd.COMPLETED,
    }
    obstacle.unlink()

    told = Told()
    second = await run(opened(database, "first@v5-multitool"), [CAFE, TILES], told)

    assert (told.plans[0].run, told.plans[0].retry, told.plans[0].skip) == (0, 1, 1)
    assert second.line().endswith("started=1 completed=1 crashed=0 skipped=1 retried=1")
    crashed, completed = tries(database, CAFE)
    assert (crashed.try_no, crashed.live, crashed.status) == (1, False, "crashed")
    assert (completed.try_no, completed.live, completed.status) == (2, True, "completed")
    assert len(tries(database, TILES)) == 1


async def test_the_command_line_leaves_a_crashed_cell_unless_it_is_asked_to_retry(database: Database) -> None:
    obstacle = block_staging(CAFE.task_id)
    await run(opened(database, "first@v5-multitool"), [CAFE])
    obstacle.unlink()

    told = Told()
    left = await run(opened(database, "first@v5-multitool", retry_crashed=False), [CAFE], told)

    assert [ended.end for ended in left.results] == [CellEnd.LEFT]
    assert (told.plans[0].retry, told.plans[0].left) == (0, 1)
    assert len(tries(database, CAFE)) == 1


async def test_usage_is_that_of_all_tries_and_the_verdict_that_of_the_last(database: Database) -> None:
    launch = opened(database, "first@v5-multitool")
    await run(launch, [CAFE])
    (done,) = tries(database, CAFE)
    # a try that failed before, with tokens that were paid for
    with database.engine.begin() as connection:
        connection.execute(update(tables.runs).where(tables.runs.c.run_id == done.run_id).values(try_no=2))
        connection.execute(
            insert(tables.runs).values(
                run_id=uuid4(),
                batch_id="first",
                team_id="v5-multitool",
                task_id=CAFE.task_id,
                attempt=1,
                try_no=1,
                live=False,
                task_hash=done.task_hash,
                level=1,
                status="crashed",
                error_class="server_error",
                started_at=datetime.now(UTC),
                heartbeat_at=datetime.now(UTC),
                finished_at=datetime.now(UTC),
                all_tokens_in=1000,
                all_tokens_out=11,
                model_calls=3,
            )
        )
    with database.engine.connect() as connection:
        summary = live_run(connection, launch.batch_team, CAFE)

    assert summary.status == "completed"
    assert summary.tokens_in + summary.tokens_out == 5670
    assert summary.all_tokens == done.all_tokens_in + done.all_tokens_out + 1011
    assert summary.model_calls == done.model_calls + 3


def _running_try(database: Database, launch, cell: TaskAttempt, heartbeat: datetime):  # type: ignore[no-untyped-def]
    with database.engine.begin() as connection:
        store.plan_cells(connection, launch.batch_team, [launch.cell(cell)])
        begun = store.begin_try(connection, launch.cell(cell), retry_crashed=True, dagster_run_id=None)
        assert isinstance(begun, store.Begun)
        connection.execute(
            update(tables.runs).where(tables.runs.c.run_id == begun.run_id).values(heartbeat_at=heartbeat)
        )
    return begun.run_id


async def test_a_try_whose_worker_died_is_closed_and_the_cell_runs_again(database: Database) -> None:
    launch = opened(database, "first@v5-multitool")
    long_ago = datetime.now(UTC) - timedelta(seconds=store.HEARTBEAT_DEAD_AFTER_S + 5)
    dead = _running_try(database, launch, TILES, long_ago)
    with database.engine.begin() as connection:
        connection.execute(
            insert(tables.events).values(
                run_id=dead,
                seq=0,
                ts=long_ago,
                message_type="tool_call",
                source="executor",
                tool_name="python_exec",
                tool_call_id="call_1",
                tool_args={"code": "print(1)"},
                tokens_in=70,
                tokens_out=7,
            )
        )

    result = await run(launch, [TILES])

    assert result.results[0].end is CellEnd.COMPLETED
    interrupted, completed = tries(database, TILES)
    assert (interrupted.status, interrupted.error_class) == ("crashed", "interrupted")
    assert (interrupted.tokens_in, interrupted.tokens_out, interrupted.tool_calls) == (70, 7, 1)
    assert completed.try_no == 2
    with database.engine.connect() as connection:
        closing = connection.execute(
            select(tables.events).where(tables.events.c.run_id == dead, tables.events.c.seq == 1)
        ).one()
    assert (closing.message_type, closing.tool_call_id) == ("tool_error", "call_1")
    assert all(check.count == 0 for check in run_checks(database.engine))


async def test_a_cell_that_another_worker_runs_is_left_to_it_by_name(database: Database) -> None:
    launch = opened(database, "first@v5-multitool")
    _running_try(database, launch, TILES, datetime.now(UTC))

    result = await run(launch, [TILES, TANK])

    ends = {ended.task_attempt: ended for ended in result.results}
    assert ends[TILES].end is CellEnd.BUSY
    assert store.worker_name() in ends[TILES].message
    assert ends[TANK].end is CellEnd.COMPLETED
    assert len(tries(database, TILES)) == 1


def test_of_many_workers_that_begin_the_same_cell_at_once_one_gets_it(database: Database) -> None:
    launch = opened(database, "first@v5-multitool")
    cell = launch.cell(TILES)
    with database.engine.begin() as connection:
        store.plan_cells(connection, launch.batch_team, [cell])

    def begin(_: int) -> store.Begun | store.NotBegun:
        with database.engine.begin() as connection:
            return store.begin_try(connection, cell, retry_crashed=True, dagster_run_id=None)

    with ThreadPoolExecutor(8) as pool:
        begun = list(pool.map(begin, range(8)))

    assert sum(isinstance(one, store.Begun) for one in begun) == 1
    assert {one.status for one in begun if isinstance(one, store.NotBegun)} == {"running"}


async def test_a_try_that_was_closed_by_another_worker_cannot_be_finished(database: Database) -> None:
    launch = opened(database, "first@v5-multitool")
    run_id = _running_try(database, launch, TILES, datetime.now(UTC))
    with database.engine.begin() as connection:
        store.close_interrupted(connection, run_id, "somebody thought it was dead")
    with database.engine.begin() as connection:
        done = store.finish(connection, run_id, {"status": "completed", "success": True, "format_valid": True})
    assert not done
    assert tries(database, TILES)[0].status == "crashed"


async def _first_result(told: Told) -> None:
    async with asyncio.timeout(30):
        while not told.results:  # noqa: ASYNC110 - the launch has no event to wait for, only its results
            await asyncio.sleep(0.01)


async def test_a_launch_that_is_cancelled_closes_its_tries_as_interrupted(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVAL_CONCURRENCY", "2")
    launch = opened(database, "first@v5-multitool")
    cells = [TaskAttempt(task.task_id, 1) for task in launch.loaded.tasks]
    told = Told()
    working = asyncio.create_task(run(launch, cells, told))
    await _first_result(told)
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working

    with database.engine.connect() as connection:
        statuses = dict(
            connection.execute(select(tables.runs.c.status, func.count()).group_by(tables.runs.c.status)).all()
        )
        classes = set(
            connection.execute(select(tables.runs.c.error_class).where(tables.runs.c.status == "crashed")).scalars()
        )
    assert "running" not in statuses
    assert statuses["completed"] >= 1
    assert classes <= {"interrupted"}
    assert all(check.count == 0 for check in run_checks(database.engine))

    result = await run(opened(database, "first@v5-multitool"), cells)
    assert not result.unfinished
