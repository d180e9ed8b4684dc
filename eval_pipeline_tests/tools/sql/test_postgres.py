"""Queries on a real PostgreSQL, by a role that may only read and by one that may do anything."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from eval_pipeline.tools.context import ToolContext
from eval_pipeline.tools.errors import ToolError
from eval_pipeline.tools.registry import TOOLS
from eval_pipeline.tools.sql.runner import (
    Failed,
    QueryLimits,
    Result,
    Server,
    UnusableDatabaseError,
    run_queries,
    schema,
)
from eval_pipeline_tests.conftest import Database

VARIABLE = "SHOP_DSN"
SCHEMA = """
create table shops (id int primary key, name text not null, town text default 'Busan');
create table "판매" (id bigint primary key, shop int references shops, amount numeric(10, 2), day date, ok boolean,
    share real, raw bytea, tags text[]);
insert into shops values (1, 'Harbour'), (2, 'Market');
insert into "판매" values (1, 1, 12.50, '2026-03-01', true, 0.5, '\\x00ff', '{a,b}');
insert into "판매" values (2, 2, 3, null, null, 'NaN', null, null);
create view best as select name from shops where id = 1;
create function wipe() returns int language plpgsql as $$ begin delete from "판매"; return 1; end $$;
"""


@pytest.fixture
def server(empty_database: Database, monkeypatch: pytest.MonkeyPatch) -> Server:
    """A database with a role that may do anything, which is the harder case."""
    with psycopg.connect(empty_database.dsn, autocommit=True) as connection:
        connection.execute(SCHEMA)
    monkeypatch.setenv(VARIABLE, empty_database.dsn)
    return Server(VARIABLE)


def one(query: str, server: Server, **limits: float) -> Result | Failed:
    (outcome,) = run_queries([query], server, QueryLimits(**limits))  # type: ignore[arg-type]
    return outcome


def count(dsn: str) -> int:
    with psycopg.connect(dsn) as connection:
        row = connection.execute('select count(*) from "판매"').fetchone()
        assert row is not None
        return int(row[0])


def test_values_come_back_as_numbers_texts_and_bytes(server: Server) -> None:
    outcome = one('select id, amount, day, ok, share, raw, tags from "판매" where id = 1', server)
    assert outcome == Result(
        ("id", "amount", "day", "ok", "share", "raw", "tags"), ((1, 12.5, "2026-03-01", 1, 0.5, b"\x00\xff", "{a,b}"),)
    )
    outcome = one('select amount, day, share::text, 1e30::numeric, 0.1::numeric from "판매" where id = 2', server)
    assert isinstance(outcome, Result)
    assert outcome.rows == ((3, None, "NaN", 10**30, 0.1),)
    assert isinstance(outcome.rows[0][0], int)


def test_many_rows_come_in_several_parts(server: Server) -> None:
    outcome = one("select n from generate_series(1, 1200) n", server)
    assert isinstance(outcome, Result)
    assert outcome.rows == tuple((n,) for n in range(1, 1201))
    assert one("select n from generate_series(1, 1200) n", server, rows=1000) == Failed(
        "capped", "the result has more than 1,000 rows"
    )


@pytest.mark.parametrize(
    "query",
    [
        'delete from "판매"',
        'with gone as (delete from "판매" returning 1) select * from gone',
        "select wipe()",
        "create table other (a int)",
        "select 1 into other",
        'select * from "판매" for update',
        "set transaction_read_only = off",
        "copy shops to program 'true'",
        "commit",
        'select 1; delete from "판매"',
        "select set_config('transaction_read_only', 'off', true), wipe()",
        "select set_config('transaction_read_only', 'off', false), wipe()",
        "select nme from shops",
        "select '\ud800'",
        "select 1\0",
        "",
    ],
)
def test_what_does_not_only_read_fails_and_changes_nothing(
    query: str, server: Server, empty_database: Database
) -> None:
    outcome = one(query, server)
    assert isinstance(outcome, Failed)
    assert outcome.failure == "error"
    assert count(empty_database.dsn) == 2


def test_a_query_that_turns_the_guard_off_does_not_help_the_next_one(server: Server, empty_database: Database) -> None:
    off = (
        "select set_config('default_transaction_read_only', 'off', false), set_config('statement_timeout', '0', false)"
    )
    outcomes = run_queries([off, "select wipe()"], server, QueryLimits())
    assert isinstance(outcomes[1], Failed)
    assert count(empty_database.dsn) == 2


@pytest.mark.parametrize(
    "query",
    [
        "select pg_sleep(60)",
        "select count(*) from generate_series(1, 1000000) a, generate_series(1, 1000000) b",
        "select set_config('statement_timeout', '0', false), n, pg_sleep(0.01) from generate_series(1, 100000) n",
    ],
)
def test_a_query_that_takes_too_long_is_stopped_on_the_server_too(
    query: str, server: Server, empty_database: Database
) -> None:
    begin = time.perf_counter()
    outcome = one(query, server, seconds=1.0)
    assert isinstance(outcome, Failed)
    assert outcome.failure == "timeout"
    assert time.perf_counter() - begin < 20
    with psycopg.connect(empty_database.dsn) as connection:
        busy = "select count(*) from pg_stat_activity where state = 'active' and query like '%%fetch%%' and pid <> %s"
        assert connection.execute(busy, [connection.info.backend_pid]).fetchone() == (0,)


@pytest.fixture
def reader(server: Server, empty_database: Database) -> Iterator[str]:
    """The DSN of a role that may read one table."""
    role = f"reader_{os.getpid()}"
    with psycopg.connect(empty_database.dsn, autocommit=True) as connection:
        connection.execute(f"create role {role} login")
        connection.execute(f"grant select on shops to {role}")
    yield psycopg.conninfo.make_conninfo(empty_database.dsn, user=role)
    with psycopg.connect(empty_database.dsn, autocommit=True) as connection:
        connection.execute(f"drop owned by {role}")
        connection.execute(f"drop role {role}")


def test_a_role_that_can_only_read_is_enough(server: Server, reader: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, reader)
    assert one("select name from shops where id = 1", server) == Result(("name",), (("Harbour",),))
    assert one('select * from "판매"', server) == Failed("error", "permission denied for table 판매")
    (table,) = schema(server)
    assert table == "TABLE public.shops (id integer NOT NULL, name text NOT NULL, town text, PRIMARY KEY (id))"


def test_the_schema_tells_columns_and_keys(server: Server) -> None:
    assert schema(server) == [
        "TABLE public.shops (id integer NOT NULL, name text NOT NULL, town text, PRIMARY KEY (id))",
        'TABLE public."판매" (id bigint NOT NULL, shop integer, amount numeric(10,2), day date, ok boolean, '
        "share real, raw bytea, tags text[], PRIMARY KEY (id), FOREIGN KEY (shop) REFERENCES shops(id))",
        "VIEW public.best (name text)",
    ]


async def test_the_tools_reach_the_server_by_the_variable(server: Server) -> None:
    context = ToolContext(dsn_env=VARIABLE)
    assert (await TOOLS["sql_schema"].bind(context)()).startswith("TABLE public.shops")
    assert await TOOLS["sql_query"].bind(context)(query="select name from best") == "name\nHarbour\n(1 row)"
    with pytest.raises(ToolError, match='the query failed: column "nme" does not exist'):
        await TOOLS["sql_query"].bind(context)(query="select nme from best")


@pytest.mark.parametrize(
    ("dsn", "told"),
    [
        ("postgresql://u:sesame@127.0.0.1:1/db?connect_timeout=2", "connection"),
        ("host=127.0.0.1 password=sesame nonsense", "the DSN cannot be used"),
        ("sesame", "the DSN cannot be used"),
        ("postgresql://u:sesame@[", "the DSN cannot be used"),
    ],
)
def test_a_server_that_cannot_be_reached_is_told_without_the_password(
    dsn: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, dsn)
    with pytest.raises(UnusableDatabaseError) as caught:
        run_queries(["select 1"], Server(VARIABLE))
    assert told in str(caught.value)
    assert "sesame" not in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_a_variable_that_is_not_set_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(UnusableDatabaseError, match=f"the environment variable {VARIABLE} is not set"):
        run_queries(["select 1"], Server(VARIABLE))
