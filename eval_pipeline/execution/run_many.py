"""Many cells of one launch at once: a semaphore, a heartbeat, and a report of each result as it is committed."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from eval_pipeline.agents.models import Models
from eval_pipeline.execution import store
from eval_pipeline.execution.cells import Cell, CellEnd, CellResult
from eval_pipeline.execution.circuit import OpenCircuit, endpoint_of, launch_begins
from eval_pipeline.execution.launch import Launch
from eval_pipeline.execution.patience import in_database
from eval_pipeline.execution.reports import Reports
from eval_pipeline.execution.run_one import CellRunner
from eval_pipeline.execution.summaries import live_runs
from eval_pipeline.ids import BatchTeam, TaskAttempt

_log = logging.getLogger(__name__)
_LAST_WORD_S = 5.0


@dataclass
class LaunchResult:
    """What a launch did with its cells."""

    batch_team: BatchTeam
    results: list[CellResult] = field(default_factory=list)
    circuit: OpenCircuit | None = None
    """Why the launch stopped before its end, if it did."""

    def count(self, *ends: CellEnd) -> int:
        return sum(result.end in ends for result in self.results)

    @property
    def unfinished(self) -> list[CellResult]:
        """Cells that have no completed run after this launch."""
        return [result for result in self.results if result.end not in (CellEnd.COMPLETED, CellEnd.SKIPPED)]

    def line(self) -> str:
        """The one line at the end of a launch."""
        started = self.count(CellEnd.COMPLETED, CellEnd.CRASHED)
        retried = sum(result.retried for result in self.results)
        skipped = self.count(CellEnd.SKIPPED, CellEnd.LEFT, CellEnd.BUSY)
        return (
            f"batch={self.batch_team.batch} team={self.batch_team.team} planned={len(self.results)} started={started} "
            f"completed={self.count(CellEnd.COMPLETED)} crashed={self.count(CellEnd.CRASHED)} skipped={skipped} "
            f"retried={retried}"
        )


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """What a launch is going to do, before the first call. Counts of cells; ``most_calls`` of model calls."""

    run: int
    retry: int
    skip: int
    left: int
    most_calls: int

    def line(self) -> str:
        return (
            f"plan: {self.run} cells to run, {self.retry} to retry, {self.skip} done already, "
            f"{self.left} crashed and left; at most {self.most_calls} model calls"
        )


async def run_cells(
    launch: Launch,
    task_attempts: Sequence[TaskAttempt],
    on_plan: Callable[[LaunchPlan], None],
    on_results: Callable[[Sequence[CellResult]], None],
    on_begin: Callable[[TaskAttempt], None] = lambda _cell: None,
) -> LaunchResult:
    """Run every given cell that has no completed run, ``EVAL_CONCURRENCY`` at once.

    ``on_plan`` is called once, before the first call to a model. ``on_results`` is called after results are committed,
    with those that wait at that moment. Both run beside the event loop and, in an outage of the database, again; what
    they raise otherwise ends the launch. ``on_begin`` is called in the event loop when a new try has begun.

    Raises:
        SuiteError: a cell is not of this suite; nothing has been started then.
    """
    cells = [launch.cell(task_attempt) for task_attempt in task_attempts]
    plan, done = await in_database(lambda: _prepare(launch, cells))
    await in_database(lambda: on_plan(plan))
    finished = {result.task_attempt for result in done}
    open_cells = [cell for cell in cells if cell.task_attempt not in finished]
    reports = Reports(on_results)
    reports.add(done)
    delivering = asyncio.create_task(reports.deliver())
    running = asyncio.create_task(_run_open(launch, open_cells, reports, on_begin))
    try:
        await asyncio.wait({delivering, running}, return_when=asyncio.FIRST_COMPLETED)
        if not running.done():
            # it does not end before it is told to, unless what it called has failed
            await delivering
        circuit = await running
        reports.close()
        await delivering
    finally:
        await _ended(running)
        reports.close()
        # what was committed in the last moment is told, unless that takes long; the next launch tells it as well
        await asyncio.wait({delivering}, timeout=_LAST_WORD_S)
        await _ended(delivering)
    return LaunchResult(launch.batch_team, reports.delivered, circuit)


async def _ended(task: asyncio.Task[Any]) -> None:
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled():
        task.exception()  # or the loop complains when it is collected


def plan_of(launch: Launch, cells: Sequence[Cell], done: Sequence[CellResult], crashed: int) -> LaunchPlan:
    left = 0 if launch.retry_crashed else crashed
    skip = sum(result.end is CellEnd.SKIPPED for result in done)
    retry = crashed - left
    to_run = len(cells) - skip - left - retry
    # per message at most one speaker's call and the selector's attempts, each as often as the retries allow
    per_message = (1 + launch.spec.max_selector_attempts) * (1 + launch.settings.llm_retries)
    return LaunchPlan(to_run, retry, skip, left, (to_run + retry) * launch.settings.max_messages * per_message)


def _prepare(launch: Launch, cells: Sequence[Cell]) -> tuple[LaunchPlan, list[CellResult]]:
    with launch.engine.begin() as connection:
        store.plan_cells(connection, launch.batch_team, cells)
        launch_begins(connection, endpoint_of(launch.settings), launch.batch_team, launch.begun_at)
        live = live_runs(connection, launch.batch_team)
    done = []
    crashed = 0
    for cell in cells:
        run = live.get(cell.task_attempt)
        if run is not None and run.status == "completed":
            done.append(CellResult(cell.task_attempt, CellEnd.SKIPPED, run))
        elif run is not None and run.status == "crashed":
            crashed += 1
    return plan_of(launch, cells, done, crashed), done


async def _run_open(
    launch: Launch, cells: Sequence[Cell], reports: Reports, on_begin: Callable[[TaskAttempt], None]
) -> OpenCircuit | None:
    if not cells:
        return None
    asyncio.get_running_loop().set_exception_handler(_noted)
    models = Models(launch.settings)
    runner = CellRunner(launch, models, on_begin)
    left = iter(cells)

    async def work() -> None:
        for cell in left:
            reports.add([await runner.run(cell)])

    heart = asyncio.create_task(_beat(launch, runner))
    workers = [asyncio.create_task(work()) for _ in range(min(launch.settings.concurrency, len(cells)))]
    try:
        await asyncio.gather(*workers)
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        runner.close()
        heart.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await heart
        await models.aclose()
    return runner.circuit


async def _beat(launch: Launch, runner: CellRunner) -> None:
    def beat() -> None:
        with launch.engine.begin() as connection:
            store.beat(connection, list(runner.active))

    while True:
        await asyncio.sleep(store.HEARTBEAT_EVERY_S)
        try:
            await in_database(beat, give_up_after_s=0)
        except SQLAlchemyError as error:
            _log.warning("heartbeat not written: %s", type(error).__name__)


def _noted(loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
    # forced teardown of a team leaves noise behind that asyncio would print with tracebacks
    _log.debug("event loop: %s", context.get("message"))
