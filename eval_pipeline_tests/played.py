"""A database with batches of the scripted model in it, played once per worker and copied for each test that asks.

Batch ``b`` under three teams, over tasks whose scripts plant what rules look for. Loaded by the conftest of the tests.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, NullPool, create_engine, text

from eval_pipeline.db import embedded
from eval_pipeline.db.engine import engine
from eval_pipeline.db.views import refresh_all
from eval_pipeline.execution.launch import open_launch
from eval_pipeline.execution.run_many import run_cells
from eval_pipeline.home import packaged
from eval_pipeline.ids import BatchTeam, TaskAttempt
from eval_pipeline.settings import load_settings
from eval_pipeline.suites import load_suites, load_tasks
from eval_pipeline.teams.registry import load_teams
from eval_pipeline_tests.conftest import FOLDER, Database, fresh_database, own_tables

V1, V3, V5 = (BatchTeam("b", team) for team in ("v1-baseline", "v3-prompt-fix", "v5-multitool"))
TASKS = {
    V1: ("cafe-food-total", "museum-weekend-children", "last-bus-minute", "bike-member-minutes", "floor-tiles"),
    V3: ("cafe-food-total", "first-letters-word", "floor-tiles"),
    V5: ("cafe-food-total", "first-letters-word", "floor-tiles", "last-bus-minute", "shapes-red-squares"),
}
"""Which tasks of the sample suite each team has played, without the beginning of their ids."""


@pytest.fixture(scope="session")
def played_template(
    postgres: embedded.Server, migrated_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The name of the database that tests copy."""
    with fresh_database(postgres, migrated_template) as url, pytest.MonkeyPatch.context() as monkeypatch:
        _clean_home(monkeypatch, tmp_path_factory.mktemp("played"))
        monkeypatch.setenv("EVAL_PG_DSN", url.render_as_string(hide_password=False))
        pool = engine(load_settings())
        asyncio.run(_play())
        refresh_all(pool)
        with pool.begin() as connection:
            connection.execute(text("analyze"))
        pool.dispose()
        yield str(url.database)


@pytest.fixture(scope="session")
def played_engine(postgres: embedded.Server, played_template: str) -> Iterator[Engine]:
    """One copy for all tests that commit nothing."""
    with fresh_database(postgres, played_template) as url:
        yield create_engine(own_tables(url), poolclass=NullPool)


@pytest.fixture
def played(
    postgres: embedded.Server, played_template: str, clean_environment: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Database]:
    """A copy of its own, and the environment that leads there."""
    with fresh_database(postgres, played_template) as url:
        monkeypatch.setenv("EVAL_PG_DSN", url.render_as_string(hide_password=False))
        settings = load_settings()
        pool = engine(settings)
        yield Database(url.render_as_string(hide_password=False), settings, pool)
        pool.dispose()


def _clean_home(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    for name in os.environ:
        if name.startswith("EVAL_") and name != FOLDER:
            monkeypatch.delenv(name)
    shutil.copy(packaged("dagster.yaml"), home)
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    monkeypatch.chdir(home)


async def _play() -> None:
    settings = load_settings()
    loaded = load_tasks(load_suites(settings)["sample"], settings)
    teams = load_teams(settings.teams_dir)
    for batch_team, names in TASKS.items():
        launch = open_launch(settings, engine(settings), batch_team, loaded, teams, retry_crashed=True)
        cells = [TaskAttempt(f"sample-{name}", 1) for name in names]
        result = await run_cells(launch, cells, lambda _: None, lambda _: None)
        assert not result.unfinished, result.line()
