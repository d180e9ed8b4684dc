"""The engine of our own tables."""

from __future__ import annotations

import os

import pytest
from sqlalchemy import NullPool, create_engine, text

from eval_pipeline.db.engine import engine
from eval_pipeline.settings import load_settings
from eval_pipeline_tests.conftest import Database


def test_there_is_one_engine_per_address(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    assert engine(load_settings()) is database.engine
    monkeypatch.setenv("EVAL_CONCURRENCY", "9")
    assert engine(load_settings()) is database.engine
    monkeypatch.setenv("EVAL_PG_SCHEMA", "other")
    other = engine(load_settings())
    assert other is not database.engine
    other.dispose()


def test_a_session_finds_our_tables_speaks_utc_and_says_who_it_is(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", "latin1")
    with database.engine.connect() as connection:
        names = ("search_path", "TimeZone", "application_name", "client_encoding", "statement_timeout")
        found = [connection.scalar(text("select current_setting(:name)"), {"name": name}) for name in names]
    assert found == ['"eval_ph1"', "UTC", "eval-pipeline", "UTF8", "0"]


def test_the_search_path_survives_a_rolled_back_transaction(database: Database) -> None:
    with database.engine.connect() as connection:
        connection.execute(text("set search_path = pg_catalog"))
        connection.rollback()
        assert connection.scalar(text("select count(*) from experiments")) == 5


def test_a_connection_that_the_server_has_cut_is_replaced(database: Database) -> None:
    with database.engine.connect() as victim:
        pid = victim.scalar(text("select pg_backend_pid()"))
    with create_engine(database.engine.url, poolclass=NullPool).connect() as killer:
        killer.execute(text("select pg_terminate_backend(:pid, 5000)"), {"pid": pid})
    with database.engine.connect() as again:
        assert again.scalar(text("select pg_backend_pid()")) != pid


def test_a_forked_child_gets_an_engine_of_its_own(database: Database) -> None:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        mine = engine(load_settings())
        os.write(writing, b"own" if mine is not database.engine else b"parent's")
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reading, 10) == b"own"
    os.close(reading)
    os.close(writing)
