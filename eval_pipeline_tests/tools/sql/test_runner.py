"""Queries on SQLite in the child process: what they return, and all that they must not be able to do."""

from __future__ import annotations

import math
import os
import sqlite3
import subprocess
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eval_pipeline.tools.sql.runner import (
    MAX_QUERY,
    Failed,
    QueryLimits,
    Result,
    UnusableDatabaseError,
    run_queries,
    schema,
)
from eval_pipeline_tests.tools.sql.conftest import SCHEMA, made

ENDLESS = "with recursive c(n) as (select 1 union all select n + 1 from c) select {} from c"


def one(query: str, database: Path, **limits: float) -> Result | Failed:
    (outcome,) = run_queries([query], database, QueryLimits(**limits))  # type: ignore[arg-type]
    return outcome


def test_a_result_has_columns_and_rows_of_every_type(database: Path) -> None:
    outcome = one("select id, name, pay, photo, start, 1e999 as huge, '' as empty from emp order by id", database)
    assert outcome == Result(
        ("id", "name", "pay", "photo", "start", "huge", "empty"),
        ((1, "Ann", 100.0, b"\x00\xff", "2020-01-05", math.inf, ""), (2, "한별", 90.5, None, None, math.inf, "")),
    )
    assert one("select 9223372036854775807, -0.0, 'a' || char(0) || 'b', x''", database) == Result(
        ("9223372036854775807", "-0.0", "'a' || char(0) || 'b'", "x''"), ((2**63 - 1, 0.0, "a\0b", b""),)
    )


def test_an_empty_result_still_has_columns(database: Path) -> None:
    assert one("select id, name from emp where id > 9", database) == Result(("id", "name"), ())


def test_a_text_that_is_not_utf_8_comes_back_as_it_is(database: Path) -> None:
    assert one("select cast(x'ff41' as text)", database) == Result(("cast(x'ff41' as text)",), (("\udcffA",),))


def test_queries_of_one_call_do_not_disturb_each_other(database: Path) -> None:
    outcomes = run_queries(["select 1", "select nope", "select 2"], database)
    assert [type(outcome) for outcome in outcomes] == [Result, Failed, Result]


@pytest.mark.parametrize(
    "query",
    [
        "insert into emp (id) values (9)",
        "insert into emp (id) values (9) returning id",
        "update emp set pay = 0",
        "delete from emp",
        "drop table emp",
        "create table other (a)",
        "create temp table other (a)",
        "alter table emp rename to other",
        "attach '{folder}/attached.db' as other",
        "vacuum into '{folder}/copy.db'",
        "vacuum",
        "reindex",
        "analyze",
        "pragma writable_schema = on",
        "pragma table_info(emp)",
        "select * from pragma_table_info('emp')",
        "select * from pragma_database_list",
        "begin",
        "commit",
        "savepoint s",
        "select load_extension('/lib/evil.so')",
        "select readfile('/etc/passwd')",
        "select writefile('{folder}/out', 'x')",
        "select fts3_tokenizer('simple')",
        "select 1; drop table emp",
        "with gone as (select 1) delete from emp where id in (select * from gone)",
        "explain delete from emp",
        "select length(zeroblob(500000000))",
        "select '\ud800'",
        "select 1\0",
        "select nme from emp",
        "not sql at all",
        "",
        "-- nothing",
    ],
)
def test_what_is_no_reading_query_fails_and_changes_nothing(query: str, database: Path) -> None:
    before = database.read_bytes()
    outcome = one(query.format(folder=database.parent), database)
    assert isinstance(outcome, Failed)
    assert outcome.failure == "error"
    assert outcome.message
    assert database.read_bytes() == before
    assert list(database.parent.iterdir()) == [database]


@pytest.mark.parametrize(
    ("query", "failure"),
    [
        (ENDLESS.format("sum(n)"), "timeout"),
        (ENDLESS.format("n"), "capped"),
        ("with recursive c(x) as (select randomblob(900000) union all select randomblob(900000) from c) "
         "select x from c order by x", "timeout"),
        ("with recursive c(n, x) as (select 1, hex(randomblob(400000)) union all select n + 1, x from c) "
         "select n, x from c", "capped"),
        ("select group_concat(x) from (with recursive c(x) as (select hex(randomblob(400000)) "
         "union all select x from c) select x from c)", "timeout"),
        ("select '" + "a" * 2000 + "' like '" + "%a" * 2000 + "b'", "error"),
    ],
)  # fmt: skip
def test_a_query_that_takes_too_much_is_stopped_in_time(query: str, failure: str, database: Path) -> None:
    begin = time.perf_counter()
    outcome = one(query, database, seconds=1.0 if failure == "timeout" else 20.0)
    assert isinstance(outcome, Failed)
    assert outcome.failure == failure
    assert time.perf_counter() - begin < 30


def _runs_isolated(process: psutil.Process) -> bool:
    try:
        return "-S" in process.cmdline()
    except psutil.NoSuchProcess:  # it has ended, and only its parent has not asked how
        return False


def test_a_single_step_that_never_ends_is_killed_from_outside(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eval_pipeline.tools.sql.runner._START_S", 1.0)
    # a search that compares half a million characters at every place of as many, within one step that is counted
    slow = "select " + " + ".join(["instr(hex(zeroblob(499000)), hex(zeroblob(249000)) || '1')"] * 9)
    begin = time.perf_counter()
    first, second = run_queries(["select 1", slow], database, QueryLimits(seconds=0.5))
    assert isinstance(first, Result)
    assert second == Failed("timeout", "the query took too long and was stopped")
    assert time.perf_counter() - begin < 15
    assert not [child for child in psutil.Process().children(recursive=True) if _runs_isolated(child)]


def test_limits_of_rows_and_size_are_exact(database: Path) -> None:
    count = "with recursive c(n) as (select 1 union all select n + 1 from c where n < {}) select n from c"
    assert isinstance(one(count.format(10), database, rows=10), Result)
    capped = one(count.format(11), database, rows=10)
    assert capped == Failed("capped", "the result has more than 10 rows")
    assert isinstance(one("select hex(zeroblob(400))", database, size=1000), Result)
    assert isinstance(one("select hex(zeroblob(600))", database, size=1000), Failed)


def test_a_query_of_any_length_is_answered(database: Path) -> None:
    assert isinstance(one("select 1" + " " * (MAX_QUERY - 8), database), Result)
    refused = one("select 1" + " " * 10_000_000, database)
    assert isinstance(refused, Failed)
    assert refused.message == "the query has 10,000,008 characters, at most 100,000 are allowed"


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(queries=st.lists(st.text(max_size=40), min_size=1, max_size=20))
def test_no_text_raises(database: Path, queries: list[str]) -> None:
    assert len(run_queries(queries, database)) == len(queries)


def test_checking_a_query_reads_it_without_running_it(database: Path) -> None:
    outcomes = run_queries(
        [ENDLESS.format("sum(n)"), "select name from emp", "select nme from emp", "delete from emp"],
        database,
        check=True,
    )
    assert [isinstance(outcome, Result) for outcome in outcomes] == [True, True, False, False]


def test_a_database_with_a_log_that_nobody_writes_can_be_read_where_nothing_can_be_written(tmp_path: Path) -> None:
    path = made(tmp_path / "wal.sqlite", "pragma journal_mode = wal;" + SCHEMA)
    path.chmod(0o444)
    assert isinstance(one("select * from emp", path), Result)
    assert list(tmp_path.iterdir()) == [path]


def test_a_log_that_is_there_is_read_too(tmp_path: Path) -> None:
    path = made(tmp_path / "wal.sqlite", "pragma journal_mode = wal;" + SCHEMA)
    writer = sqlite3.connect(path)
    writer.execute("insert into quiet values ('new')")
    writer.commit()
    assert one("select note from quiet", path) == Result(("note",), (("new",),))
    writer.close()


@pytest.mark.parametrize(
    "content", [b"", b"not a database, but long enough to look at", b"SQLite format 3\0" + b"\xff" * 200]
)
def test_a_file_that_is_no_database_is_said_so(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "broken.sqlite"
    path.write_bytes(content)
    if not content:
        # an empty file is an empty database
        assert schema(path) == []
        return
    with pytest.raises(UnusableDatabaseError, match="the database cannot be used"):
        run_queries(["select 1"], path)


@pytest.mark.parametrize("name", ["missing.sqlite", "nul\0.sqlite"])
def test_a_file_that_is_not_there_is_not_made(tmp_path: Path, name: str) -> None:
    with pytest.raises(UnusableDatabaseError, match="cannot be read"):
        run_queries(["select 1"], tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_the_schema_is_tables_before_views(database: Path) -> None:
    assert schema(database) == [
        "CREATE TABLE emp (id integer primary key, name text, pay real, photo blob, start text)",
        "CREATE TABLE quiet (note text)",
        "CREATE VIEW well_paid as select name from emp where pay > 95",
    ]


def test_a_query_knows_nothing_of_this_process(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVAL_LLM_API_KEY", "sk-secret")
    seen: list[dict[str, str]] = []
    popen = subprocess.Popen

    def watched(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        seen.append(options["env"])
        return popen(*arguments, **options)

    monkeypatch.setattr("eval_pipeline.tools.sql.runner.subprocess.Popen", watched)
    one("select 1", database)
    assert seen == [{"PATH": os.defpath}]
