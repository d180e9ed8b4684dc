"""Bringing a database to the newest state, whatever state it is in and whoever else is at it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import Engine, inspect, text

from eval_pipeline.db import sqlfiles
from eval_pipeline.db.engine import engine
from eval_pipeline.db.migrations import checksum, migrate, pending
from eval_pipeline.db.sqlfiles import Migration, SqlFile
from eval_pipeline.errors import DatabaseError
from eval_pipeline.settings import load_settings
from eval_pipeline_tests.conftest import Database

ALL = [step.version for step in sqlfiles.migrations()]


def step(version: int, statement: str) -> Migration:
    return Migration(version, f"step{version}", SqlFile(Path(f"{version:03}_step{version}.sql"), statement))


def recorded(database: Database) -> list[int]:
    with database.engine.connect() as connection:
        return list(connection.scalars(text("select version from schema_migrations order by version")))


def tables_of(pool: Engine, schema: str) -> set[str]:
    return set(inspect(pool).get_table_names(schema=schema))


def message(pool: Engine, *steps: Migration) -> str:
    with pytest.raises(DatabaseError) as caught:
        migrate(pool, steps or None)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_an_empty_database_gets_every_migration_in_our_schema_only(empty_database: Database) -> None:
    assert [step.version for step in pending(empty_database.engine)] == ALL
    assert [step.version for step in migrate(empty_database.engine)] == ALL
    assert recorded(empty_database) == ALL
    assert {"runs", "events", "schema_migrations"} <= tables_of(empty_database.engine, "eval_ph1")
    assert tables_of(empty_database.engine, "public") == set()


def test_a_second_time_nothing_is_left_to_do(database: Database) -> None:
    assert pending(database.engine) == []
    assert migrate(database.engine) == []
    assert recorded(database) == ALL


def test_only_what_is_missing_is_applied(empty_database: Database) -> None:
    first, second = step(1, "create table one (n integer);"), step(2, "create table two (n integer);")
    assert migrate(empty_database.engine, [first]) == [first]
    assert migrate(empty_database.engine, [first, second]) == [second]


@pytest.mark.parametrize("schema", ["other", "select", "user"])
def test_another_schema_is_made_and_used(
    empty_database: Database, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVAL_PG_SCHEMA", schema)
    pool = engine(load_settings())
    migrate(pool)
    assert "runs" in tables_of(pool, schema)
    assert tables_of(pool, "public") == set()
    pool.dispose()


def test_two_schemas_of_one_database_do_not_see_each_other(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVAL_PG_SCHEMA", "second")
    pool = engine(load_settings())
    assert [step.version for step in migrate(pool)] == ALL
    pool.dispose()


def test_four_processes_at_once_apply_every_migration_once(empty_database: Database) -> None:
    program = (
        "from eval_pipeline.db.engine import engine\n"
        "from eval_pipeline.db.migrations import migrate\n"
        "from eval_pipeline.settings import load_settings\n"
        "print(len(migrate(engine(load_settings()))))\n"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    ended = [process.communicate(timeout=120) for process in started]
    assert [process.returncode for process in started] == [0] * 4, ended
    assert sorted(int(out) for out, _ in ended) == [0, 0, 0, len(ALL)]
    assert recorded(empty_database) == ALL


def test_a_migration_that_fails_leaves_no_trace(empty_database: Database) -> None:
    fine = step(1, "create table one (n integer);")
    broken = step(2, "create table two (n integer);\ncreate table three (n nonsense);")
    assert message(empty_database.engine, fine, broken) == (
        '002_step2.sql: cannot be applied: type "nonsense" does not exist LINE 2: create table three (n nonsense); ^; '
        "nothing of it was kept"
    )
    assert recorded(empty_database) == [1]
    assert tables_of(empty_database.engine, "eval_ph1") == {"one", "schema_migrations"}
    mended = step(2, "create table two (n integer);")
    assert migrate(empty_database.engine, [fine, mended]) == [mended]


def test_percent_signs_colons_and_dollar_quotes_are_left_as_they_are(empty_database: Database) -> None:
    body = (
        "create function f() returns text language plpgsql as $$ begin return '100 %s :name %'; end $$;\n"
        "create table t (n integer default 7 % 4, m text default ':x'::text);"
    )
    migrate(empty_database.engine, [step(1, body)])
    with empty_database.engine.connect() as connection:
        assert connection.scalar(text("select f()")) == "100 %s :name %"


def test_a_changed_applied_migration_is_refused(empty_database: Database) -> None:
    before = step(1, "create table one (n integer);")
    after = step(1, "create table one (n bigint);")
    migrate(empty_database.engine, [before])
    said = message(empty_database.engine, after)
    assert said.startswith("001_step1.sql: has changed since it was applied to database 'test_")
    assert f"(then {checksum(before)[:12]}, now {checksum(after)[:12]})" in said
    assert "restore the file and put the change into a new migration" in said


def test_a_change_of_line_ends_is_no_change(empty_database: Database, tmp_path: Path) -> None:
    unix, windows = tmp_path / "unix", tmp_path / "windows"
    for folder, end in ((unix, b"\n"), (windows, b"\r\n")):
        folder.mkdir()
        (folder / "001_a.sql").write_bytes(b"create table one (" + end + b"n integer);" + end)
    migrate(empty_database.engine, sqlfiles.migrations(unix))
    assert migrate(empty_database.engine, sqlfiles.migrations(windows)) == []


def test_a_renamed_migration_is_no_change(empty_database: Database) -> None:
    migrate(empty_database.engine, [step(1, "create table one (n integer);")])
    renamed = Migration(1, "another_name", SqlFile(Path("001_another_name.sql"), "create table one (n integer);"))
    assert migrate(empty_database.engine, [renamed]) == []


def test_a_database_newer_than_the_code_is_refused(database: Database) -> None:
    older = sqlfiles.migrations()[:-1]
    assert message(database.engine, *older) == (
        f"database {database.engine.url.database!r} is at migration {ALL[-1]:03}, newer than this version of "
        f"eval-pipeline, which knows {len(older):03}; update eval-pipeline"
    )


def test_a_database_that_lacks_an_earlier_step_is_refused(database: Database) -> None:
    with database.engine.begin() as connection:
        connection.execute(text("delete from schema_migrations where version = 2"))
    assert "has migration 003 but not 002" in message(database.engine)


@pytest.mark.parametrize(("encoding", "shown"), [("latin1", "LATIN1"), ("sql_ascii", "SQL_ASCII")])
def test_a_database_that_cannot_hold_all_texts_is_refused(
    empty_database: Database, encoding: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"{empty_database.engine.url.database}_{encoding}"
    with empty_database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql(f"create database {name} template template0 encoding {encoding}")
    monkeypatch.setenv("EVAL_PG_DSN", empty_database.dsn.replace(str(empty_database.engine.url.database), name))
    pool = engine(load_settings())
    assert f"the database has the encoding {shown}" in message(pool)
    pool.dispose()


def test_a_user_who_may_not_make_the_schema_is_told_so(
    empty_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    role = f"reader_{empty_database.engine.url.database}"
    with empty_database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql(f"create role {role} login")
    monkeypatch.setenv("EVAL_PG_DSN", empty_database.dsn.replace("postgres@", f"{role}@"))
    pool = engine(load_settings())
    said = message(pool)
    assert "permission denied for database" in said
    assert "check that it runs and that EVAL_PG_DSN is right" in said
    pool.dispose()
    with empty_database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql(f"drop role {role}")


def test_a_user_who_was_given_the_schema_needs_no_right_to_make_it(
    empty_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    role = f"owner_{empty_database.engine.url.database}"
    with empty_database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql(f"create role {role} login")
        connection.exec_driver_sql(f"create schema eval_ph1 authorization {role}")
    monkeypatch.setenv("EVAL_PG_DSN", empty_database.dsn.replace("postgres@", f"{role}@"))
    pool = engine(load_settings())
    assert [step.version for step in migrate(pool)] == ALL
    pool.dispose()
