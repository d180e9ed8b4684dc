"""The addresses of our tables and Dagster's, and the errors of a server that cannot be used."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from sqlalchemy import NullPool, create_engine, text
from sqlalchemy.exc import OperationalError

from eval_pipeline.db import embedded
from eval_pipeline.db.dsn import CONNECT_S, Database, Driver, dsn, explained, with_session_setting
from eval_pipeline.errors import DatabaseError
from eval_pipeline.home import pg_data_dir
from eval_pipeline.settings import load_settings
from eval_pipeline_tests import conftest

SECRET = "p4ss-wörd"


@pytest.fixture(params=get_args(Database))
def which(request: pytest.FixtureRequest) -> Database:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture(params=get_args(Driver))
def driver(request: pytest.FixtureRequest) -> Driver:
    return request.param  # type: ignore[no-any-return]


def where(url: object) -> tuple[str, str]:
    with create_engine(url, poolclass=NullPool).connect() as connection:  # type: ignore[call-overload]
        row = connection.execute(text("select current_database(), current_setting('search_path')")).one()
        return row[0], row[1]


@pytest.mark.parametrize("scheme", ["postgresql", "postgres"])
def test_the_driver_is_always_named(
    clean_environment: Path, monkeypatch: pytest.MonkeyPatch, scheme: str, which: Database, driver: Driver
) -> None:
    monkeypatch.setenv("EVAL_PG_DSN", f"{scheme}://me:{SECRET}@db.example:6432/evals?sslmode=require")
    url = dsn(load_settings(), database=which, driver=driver)
    assert url.drivername == f"postgresql+{driver}"
    assert (url.username, url.password, url.host, url.port, url.database) == ("me", SECRET, "db.example", 6432, "evals")
    assert url.query["sslmode"] == "require"
    assert url.query["connect_timeout"] == str(CONNECT_S)


def test_a_connect_timeout_of_the_users_own_is_kept(clean_environment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVAL_PG_DSN", "postgresql://db.example/evals?connect_timeout=60")
    assert dsn(load_settings(), database="eval", driver="psycopg").query["connect_timeout"] == "60"


def test_a_users_server_holds_both_in_schemas_of_one_database(
    empty_database: conftest.Database, driver: Driver
) -> None:
    name = empty_database.engine.url.database
    assert where(dsn(empty_database.settings, database="eval", driver=driver)) == (name, '"eval_ph1"')
    assert where(dsn(empty_database.settings, database="dagster", driver=driver)) == (name, '"dagster"')


def test_other_options_of_the_users_address_are_kept(
    empty_database: conftest.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVAL_PG_DSN", empty_database.dsn + "&options=-cwork_mem%3D7MB%20-csearch_path%3Dpublic")
    url = dsn(load_settings(), database="eval", driver="psycopg")
    assert where(url)[1] == '"eval_ph1"'
    with create_engine(url, poolclass=NullPool).connect() as connection:
        assert connection.scalar(text("show work_mem")) == "7MB"


@pytest.mark.parametrize("value", ["plain", "two words", 'quo"ted', "back\\slash", "한글", "a=b", "%25"])
def test_a_session_setting_arrives_as_it_was_given(
    empty_database: conftest.Database, value: str, driver: Driver
) -> None:
    url = with_session_setting(empty_database.engine.url.set(drivername=f"postgresql+{driver}"), "my.own", value)
    with create_engine(url, poolclass=NullPool).connect() as connection:
        assert connection.scalar(text("select current_setting('my.own')")) == value


@pytest.fixture
def own_home(folder: Path, clean_environment: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("DAGSTER_HOME", str(folder))
    yield folder
    embedded.stop(pg_data_dir())


def test_the_embedded_server_has_a_database_for_each(own_home: Path) -> None:
    settings = load_settings()
    for driver in get_args(Driver):
        assert where(dsn(settings, database="eval", driver=driver)) == ("eval", '"eval_ph1"')
        assert where(dsn(settings, database="dagster", driver=driver)) == ("dagster", '"$user", public')
    assert (own_home / ".eval_pipeline" / "pg" / "PG_VERSION").exists()


def message(dsn_text: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("EVAL_PG_DSN", dsn_text)
    url = dsn(load_settings(), database="eval", driver="psycopg")
    with pytest.raises(DatabaseError) as caught, explained(url):
        create_engine(url, poolclass=NullPool).connect()
    assert caught.value.__suppress_context__
    said = str(caught.value)
    assert "\n" not in said
    assert SECRET not in said
    return said


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def test_a_server_that_is_not_there_is_one_line_without_the_password(
    clean_environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = free_port()
    said = message(f"postgresql://me:{SECRET}@127.0.0.1:{port}/evals", monkeypatch)
    assert said.startswith(f"PostgreSQL at 127.0.0.1:{port}/evals cannot be used: ")
    assert "refused" in said
    assert "check that it runs and that EVAL_PG_DSN is right" in said


def test_a_host_that_is_not_known_is_one_line_without_the_password(
    clean_environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "no-such-host.invalid" in message(f"postgresql://me:{SECRET}@no-such-host.invalid/evals", monkeypatch)


def test_a_server_that_never_answers_is_given_up(clean_environment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        began = time.monotonic()
        said = message(f"postgresql://me:{SECRET}@127.0.0.1:{silent.getsockname()[1]}/evals", monkeypatch)
    assert "timeout" in said
    assert time.monotonic() - began < CONNECT_S * 4


def test_a_database_that_there_is_not_is_one_line(
    empty_database: conftest.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = empty_database.dsn.replace(str(empty_database.engine.url.database), "nowhere")
    assert 'database "nowhere" does not exist' in message(elsewhere, monkeypatch)


@pytest.mark.parametrize("written", [SECRET, "p4ss-w%C3%B6rd"])
def test_a_driver_that_repeats_the_password_does_not_get_it_through(
    clean_environment: Path, monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    monkeypatch.setenv("EVAL_PG_DSN", f"postgresql://me:{written}@db.example/evals")
    url = dsn(load_settings(), database="eval", driver="psycopg")
    with pytest.raises(DatabaseError) as caught, explained(url):
        raise OperationalError("", {}, Exception(f"wrong password {SECRET}\nindeed"))
    assert SECRET not in str(caught.value)
    assert "wrong password *** indeed" in str(caught.value)
