"""What became of cells is handed on in order, in lists, and a failure to do so ends the launch."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import pytest

from eval_pipeline.execution.cells import CellEnd, CellResult
from eval_pipeline.execution.reports import Reports
from eval_pipeline.execution.run_many import run_cells
from eval_pipeline.execution.summaries import live_run
from eval_pipeline.ids import TaskAttempt
from eval_pipeline_tests.conftest import Database
from eval_pipeline_tests.execution.launching import CAFE, TANK, TILES, opened, run, tries


def result(number: int) -> CellResult:
    return CellResult(TaskAttempt(f"task-{number}", 1), CellEnd.COMPLETED)


async def test_results_that_wait_are_told_together_in_their_order() -> None:
    told: list[list[CellResult]] = []

    def slow(results: Sequence[CellResult]) -> None:
        told.append(list(results))
        time.sleep(0.05)

    reports = Reports(slow)
    delivering = asyncio.create_task(reports.deliver())
    for number in range(250):
        reports.add([result(number)])
        await asyncio.sleep(0)
    reports.close()
    await delivering
    everything = [result(number) for number in range(250)]
    assert [one for some in told for one in some] == reports.delivered == everything
    assert len(told) < 20
    assert max(map(len, told)) <= 100


async def test_a_listener_that_fails_ends_the_launch_and_what_is_stored_stays(database: Database) -> None:
    def refuses(results: Sequence[CellResult]) -> None:
        raise LookupError("nobody listens")

    launch = opened(database, "b@v4-prompt-fix")
    with pytest.raises(LookupError, match="nobody listens"):
        await run_cells(launch, [TANK, TILES, CAFE], lambda _plan: None, refuses)
    ended = [row.status for cell in (TANK, TILES, CAFE) for row in tries(database, cell)]
    assert "completed" in ended
    assert set(ended) <= {"completed", "crashed"}


async def test_what_a_first_try_tells_is_what_the_database_tells(database: Database) -> None:
    launch = opened(database, "b@v4-prompt-fix")
    ended = await run(launch, [TANK, TILES, CAFE])
    assert len(ended.results) == 3
    with database.engine.connect() as connection:
        for one in ended.results:
            assert one.run == live_run(connection, launch.batch_team, one.task_attempt)
