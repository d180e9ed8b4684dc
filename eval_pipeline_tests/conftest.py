"""Fixtures for every test: one PostgreSQL for the whole session, a fresh migrated database for each test.

The server is the embedded one, in a temporary folder outside the project that all workers of pytest-xdist share. What
only one package's tests need belongs to their own ``conftest.py``.
"""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
import hypothesis
import pytest
from sqlalchemy import URL, Connection, Engine, NullPool, create_engine, text

from eval_pipeline.db import embedded
from eval_pipeline.db.dsn import with_session_setting
from eval_pipeline.db.engine import engine
from eval_pipeline.db.migrations import migrate
from eval_pipeline.home import packaged
from eval_pipeline.settings import Settings, load_settings

pytest_plugins = ["eval_pipeline_tests.played"]
FOLDER = "EVAL_TEST_FOLDER"
"""Where the workers find the session's folder; the prefix is one that the settings leave to tests."""
_names = itertools.count(1)


@dataclass(frozen=True)
class Database:
    """A database of its own, migrated and empty. ``settings`` lead to it, and so does the environment of the test."""

    dsn: str
    settings: Settings
    engine: Engine


# how long one generated example takes says more about what else the machine is doing than about the code
hypothesis.settings.register_profile("without deadline", deadline=None)
hypothesis.settings.load_profile("without deadline")


def pytest_configure(config: pytest.Config) -> None:
    if not _is_worker(config):
        # not in pytest's own folder, which it closes to everyone else, the system user of the server included
        os.environ[FOLDER] = tempfile.mkdtemp(prefix="eval-pipeline-tests-")


def pytest_unconfigure(config: pytest.Config) -> None:
    folder = os.environ.get(FOLDER)
    if folder and not _is_worker(config):
        embedded.stop(Path(folder, "pg"))
        shutil.rmtree(folder, ignore_errors=True)


def pytest_report_header() -> str:
    return f"PostgreSQL of the tests: {os.environ[FOLDER]}"


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


@pytest.fixture(scope="session")
def postgres() -> embedded.Server:
    """The session's server. It forgets what it has written if the machine stops, and is the faster for it."""
    server = embedded.server(Path(os.environ[FOLDER], "pg"))
    with _superuser(server) as connection:
        for setting in ("fsync", "full_page_writes", "synchronous_commit"):
            connection.exec_driver_sql(f"alter system set {setting} = off")
        connection.exec_driver_sql("select pg_reload_conf()")
    return server


@pytest.fixture
def clean_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No ``EVAL_*`` variable, no ``.env`` in reach, and a home of its own with ``dagster.yaml``, which it returns."""
    for name in os.environ:
        if name.startswith("EVAL_") and name != FOLDER:
            monkeypatch.delenv(name)
    home = tmp_path / "home"
    home.mkdir()
    for name in ("dagster.yaml", "workspace.yaml"):
        shutil.copy(packaged(name), home / name)
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    monkeypatch.chdir(home)
    return home


@pytest.fixture
def empty_database(
    postgres: embedded.Server, clean_environment: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Database]:
    """A database without any table of ours; both schemas would be made in it."""
    with fresh_database(postgres, "template0") as url:
        yield from _opened(url, monkeypatch)


@pytest.fixture
def database(
    postgres: embedded.Server,
    clean_environment: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> Iterator[Database]:
    """A migrated database with nothing in it but what the migrations put there."""
    # making Dagster's tables takes a second, so that only tests that ask for an instance wait for it, once
    template = "dagster_template" if "instance" in request.fixturenames else "migrated_template"
    with fresh_database(postgres, request.getfixturevalue(template)) as url:
        yield from _opened(url, monkeypatch)


@pytest.fixture
def instance(database: Database) -> Iterator[dg.DagsterInstance]:
    """Dagster's instance as the shipped ``dagster.yaml`` makes it, on the test's database and home."""
    with dg.DagsterInstance.get() as instance:
        yield instance


@pytest.fixture(scope="session")
def migrated_template(postgres: embedded.Server) -> Iterator[str]:
    """The name of the migrated database that the tests of this worker copy."""
    with fresh_database(postgres, "template0") as url:
        pool = create_engine(own_tables(url), poolclass=NullPool)
        migrate(pool)
        yield str(url.database)


@pytest.fixture(scope="session")
def dagster_template(
    postgres: embedded.Server, migrated_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """As ``migrated_template``, with Dagster's empty tables beside ours."""
    with fresh_database(postgres, migrated_template) as url:
        # taken back at once: the test that is the first to need this has an environment of its own
        with pytest.MonkeyPatch.context() as monkeypatch:
            home = tmp_path_factory.mktemp("home")
            shutil.copy(packaged("dagster.yaml"), home)
            monkeypatch.setenv("DAGSTER_HOME", str(home))
            monkeypatch.setenv("EVAL_PG_DSN", url.render_as_string(hide_password=False))
            dg.DagsterInstance.get().dispose()
        # a database that is copied must have no connections, and Dagster leaves its pools open
        with _superuser(postgres) as connection:
            statement = text("select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = :name")
            connection.execute(statement, {"name": url.database})
        yield str(url.database)


@contextmanager
def fresh_database(server: embedded.Server, template: str) -> Iterator[URL]:
    """A copy of ``template``, dropped afterwards whoever is still connected."""
    name = f"test_{os.getpid()}_{next(_names)}"
    with _superuser(server) as connection:
        connection.exec_driver_sql(f"create database {name} template {template} strategy file_copy")
    try:
        yield server.url(name)
    finally:
        with _superuser(server) as connection:
            connection.exec_driver_sql(f"drop database {name} with (force)")


def own_tables(url: URL) -> URL:
    """The address of our tables in a database, for tests that go round the settings."""
    return with_session_setting(url.set(drivername="postgresql+psycopg"), "search_path", "eval_ph1")


def _opened(url: URL, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    monkeypatch.setenv("EVAL_PG_DSN", url.render_as_string(hide_password=False))
    settings = load_settings()
    pool = engine(settings)
    yield Database(os.environ["EVAL_PG_DSN"], settings, pool)
    pool.dispose()


def _superuser(server: embedded.Server) -> Connection:
    url = server.url(embedded.SUPERUSER).set(drivername="postgresql+psycopg")
    return create_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT").connect()
