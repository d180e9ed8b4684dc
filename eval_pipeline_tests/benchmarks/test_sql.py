"""sql: the worked cases, the query in an answer, the loader, and the sample suite from end to end."""

from __future__ import annotations

import csv
import json
import sqlite3
import subprocess
import sys
import time
import unicodedata
from pathlib import Path

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eval_pipeline.benchmarks.base import Answer, Task
from eval_pipeline.benchmarks.sql import Server, Sql, compare, extract_sql
from eval_pipeline.errors import ScorerError, TaskDataError
from eval_pipeline.tools.sql.runner import QueryLimits
from eval_pipeline_tests.benchmarks.suite_runs import metrics, played, tools_called
from eval_pipeline_tests.conftest import Database

ROOT = Path(__file__).parents[2]
CASES = ROOT.parent / "shared" / "cases" / "sql_cases.csv"
GENERATOR = ROOT / "scripts" / "make_sql_files.py"
DOCS = ROOT / "docs" / "benchmarks" / "sql.md"
SAMPLES = ROOT / "eval_pipeline" / "sample_data" / "sql"

SCHEMA = """
create table emp (id integer primary key, name text, dept text, pay real, boss integer, start text);
create table dept (code text, title text, budget integer);
insert into emp values (1, 'Ann', 'A', 100.0, null, '2020-01-05'), (2, 'Bob', 'A', 90.5, 1, '2021-03-01'),
    (3, 'Cho', 'B', 90.5, 1, '2021-03-01'), (4, 'Dan', 'B', 70.25, 3, null), (5, 'Eve', null, 70.25, 3, '2023-07-09'),
    (6, 'ann', 'A', 33.333333333333336, 1, '2024-02-29');
insert into dept values ('A', 'Alpha', 300), ('B', 'Beta', 200), ('C', 'Gamma', 0);
"""

OWN_CASES = """
match        select name from emp where dept = 'A'              | select name from emp where dept = 'A'
match        select name from emp order by pay                  | select name from emp
match        select name as employee from emp                   | select name from emp
match        select 100.0                                       | select 100
match        select -0.0                                        | select 0.0
match        select 9007199254740993                            | select 9007199254740992.0
match        select sum(pay) / 6 from emp                       | select avg(pay) from emp
match        select dept from emp where id = 5                  | select boss from emp where id = 1
match        select '2020-01-05'                                | select date('2020-01-05')
match        select name from emp where pay > 999               | select title from dept where budget < 0
match        select '한글'                                      | select '한글'
match        values (1, 'a'), (2, 'b')                          | select 2, 'b' union select 1, 'a'
match        with q as (select 1 as n) select n from q;         | select 1
row_count    select dept from emp where dept is not null        | select distinct dept from emp where dept is not null
row_count    select distinct pay from emp                       | select pay from emp
row_count    select e.name from emp e, dept d                   | select name from emp
row_count    select name from emp where pay > 999               | select max(pay) from emp where pay > 999
row_count    select title from dept join emp on dept = code     | select title from emp left join dept on dept = code
values       select pay, name from emp                          | select name, pay from emp
values       select cast(avg(pay) as int) from emp              | select avg(pay) from emp
values       select round(pay, 1) from emp                      | select pay from emp
values       select count(dept) from emp                        | select count(*) from emp
values       select coalesce(dept, '') from emp where id = 5    | select dept from emp where id = 5
values       select coalesce(boss, 0) from emp where id = 1     | select boss from emp where id = 1
values       select 'ANN'                                       | select 'Ann'
values       select '1'                                         | select 1
values       select '2020-01-05 00:00:00'                       | select '2020-01-05'
values       select sum(pay) from emp where id > 99             | select total(pay) from emp where id > 99
values       select 9007199254740993                            | select 9007199254740992
values       select random()                                    | select random()
columns      select name, pay, dept from emp                    | select name, pay from emp
columns      select name, pay from emp where pay > 999          | select name from emp where pay > 999
error        select nme from emp                                | select name from emp
error        select name from emp; select 1                     | select name from emp
error        drop table emp                                     | select name from emp
error        insert into dept values ('D', 'Delta', 1)          | select name from emp
error        attach 'other.db' as other                         | select name from emp
error        vacuum into 'copy.db'                              | select name from emp
error        pragma table_info(emp)                             | select name from emp
error        select load_extension('x')                         | select name from emp
error        select length(zeroblob(500000000))                 | select 500000000
error        I would look into the table emp.                   | select name from emp
no_sql       -- nothing here                                    | select name from emp
no_sql       ;                                                  | select name from emp
"""


@pytest.fixture
def firma(tmp_path: Path) -> Path:
    return made(tmp_path / "firma.sqlite", SCHEMA)


def made(path: Path, script: str) -> Path:
    connection = sqlite3.connect(path)
    connection.executescript(script)
    connection.close()
    return path


@pytest.mark.skipif(not CASES.is_file(), reason="the shared cases are not beside this checkout")
def test_every_shared_case_has_the_proposed_verdict(tmp_path: Path) -> None:
    firma = made(tmp_path / "cases.sqlite", CASES.with_name("sql_cases_schema.sql").read_text(encoding="utf-8"))
    with CASES.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) >= 30
    for row in rows:
        verdict = compare(row["predicted_sql"], row["gold_sql"], firma)
        assert verdict.match == (row["multiset_tolerant_proposed"] == "1"), (row, verdict)
        assert (verdict.reason == "match") == verdict.match
        assert (verdict.reason == "error") == bool(row["error"]), (row, verdict)


@pytest.mark.parametrize("line", OWN_CASES.strip().splitlines())
def test_every_case_has_its_reason(line: str, firma: Path) -> None:
    reason, _, queries = line.partition(" ")
    predicted, gold = (query.strip() for query in queries.split(" | "))
    verdict = compare(predicted, gold, firma)
    assert (verdict.reason, verdict.match) == (reason, reason == "match"), verdict
    assert verdict.detail.isprintable()
    assert len(verdict.detail) < 300


@pytest.mark.parametrize(
    ("predicted", "gold", "reason"),
    [
        ("select name from emp order by pay desc", "select name from emp order by pay desc", "match"),
        ("select name from emp order by pay", "select name from emp order by pay desc", "order"),
        # Bob and Cho are paid the same, and so are Dan and Eve
        ("select name from emp order by pay desc, name desc", "select name from emp order by pay desc", "match"),
        ("select id, pay from emp order by pay desc, id desc", "select id, pay from emp order by 2 desc", "match"),
        ("select name from emp order by pay desc", "select name from emp order by pay desc, id", "match"),
        ("select name from emp order by pay desc, id desc", "select name from emp order by pay desc, id", "order"),
        ("select dept, count(*) from emp group by 1 order by count(*) desc, dept desc limit 2",
         "select dept, count(*) from emp group by dept order by count(*) desc limit 2", "match"),
        ("select name from emp order by id desc", "select name from emp", "order"),
        ("select name from emp order by pay limit 3", "select name from emp order by pay desc", "row_count"),
        ("select distinct pay from emp order by pay desc", "select distinct pay from emp order by -pay", "match"),
        ("select name from emp where id < 0", "select name from emp where id < 0 order by pay", "match"),
    ],
)  # fmt: skip
def test_where_order_counts_only_ties_are_free(predicted: str, gold: str, reason: str, firma: Path) -> None:
    assert compare(predicted, gold, firma, ordered=True).reason == reason


def test_an_arrangement_of_columns_is_a_diagnosis_and_still_wrong(firma: Path) -> None:
    swapped = compare("select pay, name from emp", "select name, pay from emp", firma)
    assert (swapped.match, swapped.reason, swapped.diagnosis) == (False, "values", "columns_permuted")
    more = compare("select dept, name, pay from emp", "select name, pay from emp", firma)
    assert (more.match, more.reason, more.diagnosis) == (False, "columns", "extra_columns")
    assert compare("select id, id from emp", "select name from emp", firma).diagnosis == ""


def test_a_gold_result_without_rows_is_marked_as_weak(firma: Path) -> None:
    assert compare("select 1 where 0", "select name from emp where 0", firma).weak
    assert not compare("select 1", "select name from emp", firma).weak


@pytest.mark.parametrize(
    ("predicted", "reason"),
    [
        ("with recursive c(n) as (select 1 union all select n + 1 from c) select sum(n) from c", "timeout"),
        ("with recursive c(n) as (select 1 union all select n + 1 from c) select n from c", "capped"),
        ("select " + "(" * 50_000, "error"),
        ("select 1" + " union all select 1" * 5000, "error"),
        ("x" * 10_000_000, "error"),
        ("select '" + "\u202e\u200b" * 1000 + "'", "row_count"),
        ("select \0", "error"),
        ("select '\ud800'", "error"),
        (None, "no_sql"),
        ("", "no_sql"),
    ],
)
def test_hostile_queries_are_judged_in_bounded_time(predicted: str | None, reason: str, firma: Path) -> None:
    begin = time.perf_counter()
    verdict = compare(predicted, "select name from emp", firma, limits=QueryLimits(seconds=1.0))
    assert (verdict.match, verdict.reason) == (False, reason)
    assert time.perf_counter() - begin < 20


def test_decomposed_hangul_is_the_same_text(tmp_path: Path) -> None:
    nfd = unicodedata.normalize("NFD", "서울")
    firma = made(tmp_path / "nfd.sqlite", "create table t (town text)")
    with sqlite3.connect(firma) as connection:
        connection.execute("insert into t values (?)", [nfd])
    connection.close()
    assert compare("select '서울'", "select town from t", firma).match


def test_a_prediction_may_stand_in_one_fence_and_end_in_a_semicolon(firma: Path) -> None:
    assert compare("```sql\nselect name from emp;\n```", "select name from emp;", firma).match
    assert not compare("```\n```sql\nselect name from emp;\n```\n```", "select name from emp", firma).match


@pytest.mark.parametrize("gold", ["select nme from emp", "select 1; select 2", "", "drop table emp"])
def test_a_gold_query_that_is_wrong_is_nobodys_failure(gold: str, firma: Path) -> None:
    with pytest.raises(ScorerError, match=r"the gold query .* correct the task") as caught:
        compare("select 1", gold, firma)
    assert len(str(caught.value).splitlines()) == 1


def test_a_database_that_is_not_there_is_nobodys_failure(tmp_path: Path) -> None:
    with pytest.raises(ScorerError, match=r"the database missing\.sqlite cannot be read"):
        compare("select 1", "select 1", tmp_path / "missing.sqlite")


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(max_size=60))
def test_no_prediction_raises(firma: Path, text: str) -> None:
    verdict = compare(text, "select name from emp", firma)
    assert (verdict.reason == "match") == verdict.match


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    columns=st.lists(st.sampled_from(["name", "dept", "pay", "boss", "start", "id"]), min_size=1, max_size=5),
    order=st.sampled_from(["", "order by pay", "order by 1 desc", "order by id"]),
    ordered=st.booleans(),
)
def test_a_query_always_matches_itself(firma: Path, columns: list[str], order: str, ordered: bool) -> None:
    query = " ".join(["select", ", ".join(columns), "from emp", order])
    assert compare(query, query, firma, ordered=ordered).match
    turned = " ".join(["select", ", ".join(columns), "from emp order by id desc"])
    assert compare(turned, query, firma).match


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("select 1", "select 1"),
        ("  SELECT 1;\n", "SELECT 1;"),
        ("-- a comment\nselect 1", "-- a comment\nselect 1"),
        ("/* a */ (select 1)", "/* a */ (select 1)"),
        ("with a as (select 1) select * from a", "with a as (select 1) select * from a"),
        ("drop table emp", "drop table emp"),
        ("Here it is:\n```sql\nselect 1\n```\nThat is all.", "select 1"),
        ("```sql\nselect 1\n```\nNo, better:\n```sql\nselect 2\n```", "select 2"),
        ("```SQL\nselect 1\n```\n```\nresult: 5\n```", "select 1"),
        ("```sqlite\nselect 1\n```", "select 1"),
        ("```postgresql\nselect 1\n```", "select 1"),
        ("```\nselect 1\n```", "select 1"),
        ("```python\nprint()\n```", None),
        ("```sql select 1```", "select 1"),
        ("The query is select 1", None),
        ("I cannot say.", None),
        ("```sql\n```", None),
        ("", None),
        ("\u200bselect 1", None),
        ("select 1; select 2", "select 1; select 2"),
    ],
)
def test_the_query_of_an_answer_is_found(text: str, query: str | None) -> None:
    assert extract_sql(text) == query


@pytest.mark.parametrize("piece", ["```sql\n", "(", "--\n", "/*", "/* */", "select ", "`", "\n", "\u200b", "한"])
def test_finding_the_query_takes_time_in_proportion(piece: str) -> None:
    begin = time.perf_counter()
    extract_sql(piece * (2_000_000 // len(piece)))
    assert time.perf_counter() - begin < 30


# --- tasks and answers
# ---------------------------------------------------------------------------------------------------------------


def folder(tmp_path: Path, *rows: dict[str, object], files: bool = True) -> Path:
    data = tmp_path / "data"
    (data / "files").mkdir(parents=True)
    if files:
        made(data / "files" / "firma.sqlite", SCHEMA)
    text = "".join(json.dumps({"task_id": "t-1", "question": "?", **row}, ensure_ascii=False) + "\n" for row in rows)
    (data / "tasks.jsonl").write_text(text, encoding="utf-8")
    return data


GOOD: dict[str, object] = {"file_name": "firma.sqlite", "gold_sql": "select name from emp order by pay desc"}


def task(tmp_path: Path, **fields: object) -> Task:
    return Sql().load(folder(tmp_path, {**GOOD, **fields}))[0]


def test_a_task_is_loaded_with_its_fields(tmp_path: Path) -> None:
    loaded = task(tmp_path, ordered=True, timeout_s=2.5, level=2)
    assert (loaded.benchmark, loaded.level, loaded.gold) == ("sql", 2, GOOD["gold_sql"])
    assert loaded.extra == {"ordered": True, "timeout_s": 2.5}
    assert loaded.attachment is not None
    assert loaded.attachment.file_name == "firma.sqlite"


@pytest.mark.parametrize(
    ("fields", "field", "why"),
    [
        ({"gold_sql": None}, "gold_sql", "is None, not a text"),
        ({"gold_sql": " "}, "gold_sql", "is empty"),
        ({"gold_sql": "select 1; select 2"}, "gold_sql", "has 2 statements; write one query"),
        ({"gold_sql": "select nme from emp"}, "gold_sql", "does not read: no such column: nme"),
        ({"gold_sql": "delete from emp"}, "gold_sql", "does not read: not authorized"),
        ({"file_name": "other.sqlite"}, "file_name", "names 'other.sqlite', which is not in"),
        ({"file_name": None}, "file_name", "must name the SQLite database, or dsn_env a server; write one of the two"),
        ({"dsn_env": "PATH"}, "file_name", "must name the SQLite database, or dsn_env a server; write one of the two"),
        ({"file_name": None, "dsn_env": "NO_SUCH_DSN"}, "dsn_env", "names NO_SUCH_DSN, which is not set"),
        ({"file_name": None, "dsn_env": "postgresql://u:sesame@h/d"}, "dsn_env", "is not the name of an environment"),
        ({"ordered": "yes"}, "ordered", "is 'yes'; write true or false"),
        ({"timeout_s": 0}, "timeout_s", "is 0; write a number of seconds from 1 to 120"),
        ({"timeout_s": True}, "timeout_s", "is True; write a number of seconds from 1 to 120"),
    ],
)  # fmt: skip
def test_a_wrong_field_is_named_in_one_line(tmp_path: Path, fields: dict[str, object], field: str, why: str) -> None:
    with pytest.raises(TaskDataError) as caught:
        task(tmp_path, **fields)
    message = str(caught.value)
    assert "tasks.jsonl line 1" in message
    assert f"field {field!r} {why}" in message
    assert "sesame" not in message
    assert len(message.splitlines()) == 1


def test_the_second_task_of_a_database_is_checked_too(tmp_path: Path) -> None:
    data = folder(tmp_path, GOOD, {**GOOD, "task_id": "t-2", "gold_sql": "select 1 from nowhere"})
    with pytest.raises(TaskDataError, match="line 2: field 'gold_sql' does not read: no such table: nowhere"):
        Sql().load(data)


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    data = folder(tmp_path, GOOD, files=False)
    (data / "files" / "firma.sqlite").write_text("not a database, but long enough to look at")
    with pytest.raises(TaskDataError, match=r"line 1: field 'file_name' names .* the database cannot be used"):
        Sql().load(data)


def test_changes_that_are_still_in_a_log_are_refused(tmp_path: Path) -> None:
    data = folder(tmp_path, GOOD)
    writer = sqlite3.connect(data / "files" / "firma.sqlite")
    writer.execute("pragma journal_mode = wal")
    writer.execute("delete from dept")
    writer.commit()
    with pytest.raises(TaskDataError, match=r"PRAGMA wal_checkpoint\(TRUNCATE\)"):
        Sql().load(data)
    writer.close()


def said(text: str) -> Answer:
    return Answer(None, text)


def test_the_gold_query_scores_full_and_says_so(tmp_path: Path) -> None:
    score = Sql().score(task(tmp_path, ordered=True), said(f"```sql\n{GOOD['gold_sql']}\n```"))
    assert (score.success, score.format_valid) == (True, True)
    assert score.reason == "match: the results match (6 rows)"
    assert score.metrics == {
        "executed": 1, "columns_permuted": 0, "extra_columns": 0, "weak_gold": 0, "rows": 6, "gold_rows": 6,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "format_valid", "reason"),
    [
        ("No idea.", False, "no_sql: the answer has no query"),
        ("```sql\nselect 1; select 2\n```", False, "error: there are 2 statements where one is asked for"),
        ("```sql\n-- todo\n```", False, "no_sql: the query is empty"),
        ("```sql\nselect name from emp order by id desc\n```", True, "order: the rows match, but do not stand in"),
        ("```sql\nselect nme from emp\n```", True, "error: the query cannot be run: no such column: nme"),
        ("```sql\nselect name, pay from emp\n```", True, "columns: the result has 2 columns where the gold"),
        ("x" * 10_000_000, False, "no_sql"),
        ("```sql\n" + "select 1 + " * 1_000_000, False, "error: the query is longer than 100,000 characters"),
    ],
)  # fmt: skip
def test_an_answer_that_is_wrong_says_why(tmp_path: Path, text: str, format_valid: bool, reason: str) -> None:
    score = Sql().score(task(tmp_path, ordered=True), said(text))
    assert (score.success, score.format_valid) == (False, format_valid)
    assert score.reason.startswith(reason)
    assert len(score.reason.splitlines()) == 1


def test_the_tasks_own_time_holds(tmp_path: Path) -> None:
    begin = time.perf_counter()
    endless = "with recursive c(n) as (select 1 union all select n + 1 from c) select max(n) from c"
    score = Sql().score(task(tmp_path, timeout_s=1), said(endless))
    assert score.reason == "timeout: the query took longer than 1 s"
    assert time.perf_counter() - begin < 9


def test_a_task_on_a_server_is_scored_there(
    tmp_path: Path, empty_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    with psycopg.connect(empty_database.dsn, autocommit=True) as connection:
        connection.execute("create table emp (name text, pay numeric)")
        connection.execute("insert into emp values ('Ann', 2), ('한별', 1.5), ('Bob', 1.5)")
    monkeypatch.setenv("FIRMA_DSN", empty_database.dsn)
    row = {"dsn_env": "FIRMA_DSN", "gold_sql": "select name from emp order by pay desc", "ordered": True}
    (loaded,) = Sql().load(folder(tmp_path, row, files=False))
    assert loaded.dsn_env == "FIRMA_DSN"
    assert empty_database.dsn not in repr(loaded)
    assert Sql().score(loaded, said("select name from emp order by pay desc, name desc")).success
    assert Sql().score(loaded, said("select name from emp order by pay")).reason.startswith("order: ")
    assert Sql().score(loaded, said("delete from emp returning name")).reason.startswith("error: ")
    assert compare("select count(*) from emp", "select 3", Server("FIRMA_DSN")).match


@pytest.mark.skipif(not DOCS.is_file(), reason="the documentation is in the checkout only")
def test_the_example_of_the_documentation_is_a_task(tmp_path: Path) -> None:
    data = folder(tmp_path, files=False)
    made(data / "files" / "firm.sqlite", SCHEMA)
    (data / "tasks.jsonl").write_text(DOCS.read_text(encoding="utf-8").split("```")[1].removeprefix("json\n"))
    (found,) = Sql().load(data)
    assert Sql().score(found, said(found.gold)).success


# --- the sample suite
# ---------------------------------------------------------------------------------------------------------------

VERDICTS = {
    "sample-sql-branch-takings": (True, True, "match: the results match (4 rows)"),
    "sample-sql-unsold-in-busan": (True, True, "match: the results match (1 row)"),
    "sample-sql-library-overdue": (True, True, "match: the results match (3 rows)"),
    "sample-sql-library-genre-counts": (False, True, "row_count: the result has 3 rows where the gold query's has 5"),
    "sample-sql-station-averages": (True, True, "match: the results match (4 rows)"),
    "sample-sql-first-losses": (False, False, "error: there are 2 statements where one is asked for"),
}


async def test_the_sample_suite_ends_as_its_scripts_say(database: Database) -> None:
    runs = await played(database, "sample_sql")
    assert {task_id: (run.success, run.format_valid, run.score_reason) for task_id, run in runs.items()} == VERDICTS
    assert {run.scorer_version for run in runs.values()} == {"sql-1"}
    assert metrics(database, runs["sample-sql-library-genre-counts"])["gold_rows"] == 5
    for run in runs.values():
        assert tools_called(database, run)[0] == "sql_schema"


def dump(path: Path) -> list[str]:
    connection = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
    lines = list(connection.iterdump())
    connection.close()
    return lines


@pytest.mark.skipif(not GENERATOR.is_file(), reason="the generator of the databases is in the checkout only")
def test_the_generator_makes_the_shipped_databases(tmp_path: Path) -> None:
    for name in ("first", "second"):
        subprocess.run([sys.executable, str(GENERATOR), str(tmp_path / name)], check=True, timeout=60)
    shipped = {path.name: path for path in (SAMPLES / "files").iterdir()}
    made_now = {path.name: path for path in (tmp_path / "first").iterdir()}
    assert set(made_now) == set(shipped)
    for name, path in made_now.items():
        assert path.read_bytes() == (tmp_path / "second" / name).read_bytes()
        # the bytes of a database tell the version that wrote it
        assert dump(path) == dump(shipped[name])


def test_every_sample_has_a_result_that_tells_something() -> None:
    for loaded in Sql().load(SAMPLES):
        score = Sql().score(loaded, said(loaded.gold))
        assert score.success
        assert 0 < score.metrics["gold_rows"] < 50
