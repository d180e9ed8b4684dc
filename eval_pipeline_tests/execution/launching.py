"""Launches over the sample suite for the tests of this package: the real path, with the scripted model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import Row, select

from eval_pipeline.db import tables
from eval_pipeline.execution.cells import CellResult
from eval_pipeline.execution.launch import Launch, open_launch
from eval_pipeline.execution.run_many import LaunchPlan, LaunchResult, run_cells
from eval_pipeline.home import stage_dir
from eval_pipeline.ids import BatchTeam, TaskAttempt
from eval_pipeline.settings import Settings, load_settings
from eval_pipeline.suites import load_suites, load_tasks
from eval_pipeline.teams.registry import load_teams
from eval_pipeline_tests.conftest import Database

CAFE = TaskAttempt("sample-cafe-food-total", 1)
TILES = TaskAttempt("sample-floor-tiles", 1)
TANK = TaskAttempt("sample-leaking-tank", 1)


def opened(
    database: Database,
    key: str,
    *,
    suite: str = "sample",
    retry_crashed: bool = True,
    settings: Settings | None = None,
) -> Launch:
    """A launch of ``batch@team`` over a declared suite, under ``settings`` or the environment's."""
    settings = settings or load_settings()
    loaded = load_tasks(load_suites(settings)[suite], settings)
    teams = load_teams(settings.teams_dir)
    return open_launch(settings, database.engine, BatchTeam.parse(key), loaded, teams, retry_crashed=retry_crashed)


class Told:
    """What ``run_cells`` says while it works."""

    def __init__(self) -> None:
        self.plans: list[LaunchPlan] = []
        self.results: list[CellResult] = []


async def run(launch: Launch, cells: Sequence[TaskAttempt], told: Told | None = None) -> LaunchResult:
    told = told or Told()
    return await run_cells(launch, cells, told.plans.append, told.results.extend)


def tries(database: Database, cell: TaskAttempt) -> Sequence[Row[tuple[object, ...]]]:
    """Every try of a cell, whatever its batch, in order."""
    runs = tables.runs
    query = select(runs).where(runs.c.task_id == cell.task_id, runs.c.attempt == cell.attempt)
    with database.engine.connect() as connection:
        return connection.execute(query.order_by(runs.c.batch_id, runs.c.team_id, runs.c.try_no)).all()


def block_staging(task_id: str) -> Path:
    """Make every run of a task with an attachment crash: a file lies where its folder must be made."""
    place = stage_dir(load_settings()) / task_id
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("in the way")
    return place
