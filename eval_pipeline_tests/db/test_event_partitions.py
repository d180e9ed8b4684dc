"""Traces lie in the month of their run, months are made in time, and nothing goes wrong where they are not."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import Connection, Engine, NullPool, create_engine, insert, select, text
from sqlalchemy.exc import DBAPIError

from eval_pipeline.db import embedded, tables
from eval_pipeline.db.engine import engine
from eval_pipeline.db.event_partitions import AHEAD, LOCK_MS, analyze, make_ahead, make_months, months_present
from eval_pipeline.db.sqlfiles import query
from eval_pipeline.execution.launch import open_launch
from eval_pipeline.execution.run_many import run_cells
from eval_pipeline.ids import BatchTeam, TaskAttempt
from eval_pipeline.run_ids import FIRST_YEAR, LAST_YEAR, Month, new_run_id
from eval_pipeline.settings import load_settings
from eval_pipeline.suites import load_suites, load_tasks
from eval_pipeline.teams.registry import load_teams, register_teams
from eval_pipeline_tests.conftest import Database, fresh_database, own_tables
from eval_pipeline_tests.db.builders import Rows

APRIL, MAY = Month(2031, 4), Month(2031, 5)
"""Months that nobody has made, whenever this runs within the next years."""


def last_of(month: Month) -> UUID:
    return UUID(int=month.end_id.int - 1)


def call(rows: Rows, run_id: UUID) -> None:
    values = {"run_id": run_id, "call_no": 0, "role": "planner", "kind": "turn", "latency_ms": 1, "outcome": "ok"}
    rows.connection.execute(insert(tables.model_calls).values(values))


def planted(rows: Rows, *run_ids: UUID) -> None:
    """Runs of these ids with an event and a model call each."""
    if not rows.connection.execute(select(tables.teams.c.team_id)).all():
        rows.team()
        rows.task()
        rows.batch()
    known = len(rows.connection.execute(select(tables.plan.c.attempt)).all())
    for number, run_id in enumerate(run_ids, start=known + 1):
        rows.cell(attempt=number)
        rows.completed(attempt=number, run_id=run_id)
        rows.event(run_id, 0)
        call(rows, run_id)


def places(connection: Connection, table: str = "events") -> dict[UUID, str]:
    """The partition of every row's run."""
    found = connection.execute(text(f"select run_id, tableoid::regclass::text as place from {table}"))  # noqa: S608
    return {row.run_id: row.place for row in found}


@pytest.mark.parametrize("month", [Month(2020, 1), Month(2024, 2), Month(2026, 12), Month(2031, 4), Month(2099, 12)])
def test_the_database_means_the_same_ids_by_a_month(rows: Rows, month: Month) -> None:
    first = text("select first_run_id(make_timestamptz(:year, :month, 1, 0, 0, 0, 'UTC'))")
    after = month.next()
    assert rows.connection.scalar(first, {"year": month.year, "month": month.month}) == month.first_id
    assert rows.connection.scalar(first, {"year": after.year, "month": after.month}) == month.end_id


def test_an_id_that_the_database_makes_is_of_version_7_and_of_now(rows: Rows) -> None:
    before = datetime.now(UTC)
    ids = rows.connection.scalars(text("select new_run_id() from generate_series(1, 200)")).all()
    assert len(set(ids)) == 200
    for run_id in ids:
        assert (run_id.version, run_id.variant) == (7, uuid4().variant)
        made = datetime.fromtimestamp((run_id.int >> 80) / 1000, UTC)
        assert before - timedelta(seconds=1) <= made <= datetime.now(UTC) + timedelta(seconds=1)


def test_a_run_without_an_id_gets_one_of_version_7(rows: Rows) -> None:
    rows.team()
    rows.task()
    rows.batch()
    rows.cell()
    rows.connection.execute(
        text(
            "insert into runs (batch_id, team_id, task_id, attempt, task_hash, level) "
            "values ('b1', 'v1', 't1', 1, 'h1', 1)"
        )
    )
    assert rows.connection.scalars(select(tables.runs.c.run_id)).one().version == 7


def test_a_migrated_database_has_the_present_month_and_the_next_ones(database: Database) -> None:
    present = Month.of(datetime.now(UTC))
    with database.engine.connect() as connection:
        assert set(present.and_next(AHEAD)) <= set(months_present(connection)) | {present.next()}
    assert make_ahead(database.engine, datetime.now(UTC)) in ([], list(present.and_next(AHEAD))[-1:])


@pytest.mark.parametrize("table", ["events", "model_calls"])
def test_rows_lie_in_the_month_of_their_run(database: Database, table: str) -> None:
    assert make_months(database.engine, [APRIL, MAY]) == [APRIL, MAY]
    below, above = Month(FIRST_YEAR, 1).first_id, Month(LAST_YEAR, 12).end_id
    expected = {
        APRIL.first_id: "2031_04",
        new_run_id(APRIL.first_id.int >> 80): "2031_04",
        last_of(APRIL): "2031_04",
        MAY.first_id: "2031_05",
        last_of(MAY): "2031_05",
        MAY.end_id: "rest",
        below: "rest",
        UUID(int=below.int - 1): "below",
        UUID(int=0): "below",
        above: "above",
        UUID(int=above.int - 1): "rest",
        UUID(int=2**128 - 1): "above",
    }
    with database.engine.begin() as connection:
        planted(Rows(connection), *expected)
        assert places(connection, table) == {run_id: f"{table}_{place}" for run_id, place in expected.items()}


def test_making_a_month_again_does_nothing(database: Database) -> None:
    assert make_months(database.engine, [APRIL]) == [APRIL]
    assert make_months(database.engine, [APRIL]) == []
    with database.engine.begin() as connection:
        connection.execute(text("select make_trace_month('2031-04-01')"))


@pytest.mark.parametrize("day", ["2031-04-02", "2019-12-01", "2100-01-01"])
def test_what_is_no_month_is_not_made(rows: Rows, day: str) -> None:
    with pytest.raises(DBAPIError, match="is not the first day of a month"):
        rows.connection.execute(text("select make_trace_month(cast(:day as date))"), {"day": day})


def test_a_month_that_comes_late_takes_its_rows_out_of_the_rest(database: Database) -> None:
    with database.engine.begin() as connection:
        planted(Rows(connection), APRIL.first_id, last_of(APRIL), MAY.first_id)
        before = connection.execute(select(tables.events).order_by("run_id")).all()
        assert set(places(connection).values()) == {"events_rest"}
    make_months(database.engine, [APRIL])
    with database.engine.begin() as connection:
        assert connection.execute(select(tables.events).order_by("run_id")).all() == before
        assert places(connection) == {
            APRIL.first_id: "events_2031_04",
            last_of(APRIL): "events_2031_04",
            MAY.first_id: "events_rest",
        }
        assert places(connection, "model_calls")[last_of(APRIL)] == "model_calls_2031_04"
        # as on every other place, an event goes with its run
        connection.execute(text("delete from runs where run_id = :run"), {"run": last_of(APRIL)})
        assert len(places(connection)) == 2


def test_a_batch_goes_on_over_the_end_of_a_month(database: Database) -> None:
    eve = datetime(2031, 4, 30, 23, 59, 59, 999_000, tzinfo=UTC)
    make_ahead(database.engine, eve)
    with database.engine.begin() as connection:
        runs = [new_run_id(round(moment.timestamp() * 1000)) for moment in (eve, eve + timedelta(milliseconds=1))]
        planted(Rows(connection), *runs)
        assert list(places(connection).values()) == ["events_2031_04", "events_2031_05"]


def test_many_at_once_make_a_month_once(database: Database) -> None:
    make_it = threading.Barrier(6)
    made: list[list[Month]] = []
    failed: list[Exception] = []

    def work() -> None:
        make_it.wait()
        try:
            made.append(make_months(database.engine, [APRIL, MAY]))
        except DBAPIError as error:
            failed.append(error)

    workers = [threading.Thread(target=work) for _ in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    # who has waited too long gives way and tries again another time
    assert all("lock timeout" in str(error) for error in failed)
    assert made
    with database.engine.connect() as connection:
        assert {APRIL, MAY} <= set(months_present(connection))


def test_runs_go_on_being_written_while_a_month_is_made(database: Database) -> None:
    with database.engine.begin() as connection:
        rows = Rows(connection)
        planted(rows, new_run_id())
        run_id = connection.scalars(select(tables.runs.c.run_id)).one()
    ended = threading.Event()
    errors: list[Exception] = []

    def write(begin: int) -> None:
        seq = begin
        while not ended.is_set():
            try:
                with database.engine.begin() as mine:
                    mine.execute(text("update runs set heartbeat_at = now()"))
                    Rows(mine).event(run_id, seq)
            except Exception as error:
                errors.append(error)
                return
            seq += 1

    writers = [threading.Thread(target=write, args=(1000 * (number + 1),)) for number in range(3)]
    for writer in writers:
        writer.start()
    made = [make_ahead(database.engine, datetime(2040 + year, 1, 15, tzinfo=UTC)) for year in range(4)]
    ended.set()
    for writer in writers:
        writer.join(60)
    assert errors == []
    assert any(made)


def test_a_lock_that_somebody_holds_is_waited_for_briefly(database: Database, caplog: pytest.LogCaptureFixture) -> None:
    with database.engine.begin() as connection:
        connection.execute(text("lock table runs in row exclusive mode"))
        begun = datetime.now(UTC)
        assert make_ahead(database.engine, datetime(2031, 4, 1, tzinfo=UTC)) == []
        assert datetime.now(UTC) - begun < timedelta(seconds=20)
    assert "have no partitions yet" in caplog.text
    assert LOCK_MS < 1000
    assert make_ahead(database.engine, datetime(2031, 4, 1, tzinfo=UTC)) == list(APRIL.and_next(AHEAD))


def test_a_month_that_is_there_is_found_without_a_lock(database: Database) -> None:
    now = datetime.now(UTC)
    make_ahead(database.engine, now)
    with database.engine.begin() as connection:
        connection.execute(text("lock table runs, events, events_rest in access exclusive mode"))
        assert make_ahead(database.engine, now) == []


@pytest.fixture
def worker_engine(database: Database, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """The engine of a role that may read and write rows, and make nothing."""
    role = f"worker_{database.engine.url.database}"
    with database.engine.begin() as connection:
        register_teams(connection, load_teams(None))
        connection.exec_driver_sql(f"create role {role} login")
        connection.exec_driver_sql(f"grant usage on schema eval_ph1 to {role}")
        connection.exec_driver_sql(f"grant select, insert, update, delete on all tables in schema eval_ph1 to {role}")
        connection.exec_driver_sql(f"grant usage on all sequences in schema eval_ph1 to {role}")
    monkeypatch.setenv("EVAL_PG_DSN", database.dsn.replace("postgres@", f"{role}@"))
    return engine(load_settings())


async def test_a_launch_without_the_right_to_make_months_writes_to_the_rest(
    database: Database, worker_engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    with database.engine.begin() as connection:
        for month in months_present(connection):
            connection.execute(text("select drop_trace_month(to_date(:month, 'YYYY-MM'))"), {"month": str(month)})
        assert months_present(connection) == []
    settings = load_settings()
    loaded = load_tasks(load_suites(settings)["sample"], settings)
    with caplog.at_level(logging.WARNING):
        launch = open_launch(
            settings, worker_engine, BatchTeam("b", "v4-prompt-fix"), loaded, load_teams(settings.teams_dir)
        )
    assert "permission denied" in caplog.text
    result = await run_cells(launch, [TaskAttempt("sample-floor-tiles", 1)], lambda _: None, lambda _: None)
    assert not result.unfinished, result.line()
    worker_engine.dispose()
    with database.engine.connect() as connection:
        assert set(places(connection).values()) == {"events_rest"}
        run = connection.execute(select(tables.runs)).one()
        assert (run.status, run.events_dropped, run.run_id.version) == ("completed", 0, 7)
    make_ahead(database.engine)
    with database.engine.connect() as connection:
        assert set(places(connection).values()) == {f"events_{str(Month.of_run(run.run_id)).replace('-', '_')}"}


BATCH = {"batch_id": "b1", "team_id": "v1"}
RUN = {"run": None}
BY_RUN: dict[str, tuple[str, dict[str, Any]]] = {
    "a trace": ("select * from events where run_id = :run order by seq", RUN),
    "a trace in the view": ("select * from v_trace where run_id = :run order by seq", RUN),
    "model calls in the view": ("select * from v_model_calls where run_id = :run", RUN),
    "the traces of some runs": ("select * from events where run_id = any(array[cast(:run as uuid)])", RUN),
    "traces of a batch": ("select * from v_trace where batch_id = :batch_id and team_id = :team_id", BATCH),
    "model calls of a batch": ("select * from v_model_calls where batch_id = :batch_id and team_id = :team_id", BATCH),
    "tools of a batch": ("select * from v_tool_totals where batch_id = :batch_id and team_id = :team_id", BATCH),
    "roles of a batch": (query("accounting_roles").text, BATCH),
    "hand-overs of a batch": (query("accounting_handovers").text, BATCH),
    "endings of a batch": (query("accounting_endings").text, BATCH),
    "a report's counts": (query("report_event_counts").text, BATCH),
    "a report's events": (query("report_events").text, BATCH | {"events": 400, "characters": 100}),
}


@pytest.fixture(scope="module")
def history(postgres: embedded.Server, migrated_template: str) -> Iterator[Engine]:
    """Four months with a batch each, in the same numbers; statistics are known."""
    with fresh_database(postgres, migrated_template) as url:
        pool = create_engine(own_tables(url), poolclass=NullPool)
        _fill(pool, list(APRIL.and_next(3)))
        analyze(pool)
        yield pool


def _fill(pool: Engine, months: list[Month]) -> None:
    make_months(pool, months)
    with pool.begin() as connection:
        rows = Rows(connection)
        rows.team()
        for number, month in enumerate(months, start=1):
            rows.batch(f"b{number}")
            for task in range(40):
                if number == 1:
                    rows.task(f"t{task}")
                rows.cell(f"t{task}", batch_id=f"b{number}")
                run_id = new_run_id((month.first_id.int >> 80) + 1000 * task)
                rows.completed(f"t{task}", batch_id=f"b{number}", run_id=run_id)
                for seq in range(20):
                    named = {"tool_name": "python_calc", "tool_call_id": f"c{seq}"} if seq % 2 else {}
                    rows.event(run_id, seq, "tool_call" if seq % 2 else "agent_message", source="planner", **named)
                call(rows, run_id)


@pytest.mark.parametrize(("statement", "parameters"), BY_RUN.values(), ids=BY_RUN.keys())
def test_who_looks_for_the_events_of_runs_looks_into_their_month_only(
    history: Engine, statement: str, parameters: dict[str, Any]
) -> None:
    with history.connect() as connection:
        run_id = connection.scalars(text("select min(run_id::text) from runs where batch_id = 'b1'")).one()
        bound = {name: run_id if value is None else value for name, value in parameters.items()}
        plan = connection.execute(text(f"explain (analyze, format json) {statement}"), bound).scalar_one()
    looked_into = set(_relations(plan[0]["Plan"]))
    assert looked_into
    assert looked_into <= {"events_2031_04", "model_calls_2031_04"}


def _relations(node: dict[str, Any]) -> list[str]:
    """The partitions that a plan has read; those that it could leave out were never begun."""
    name = node.get("Relation Name", "")
    own = [name] if name.startswith(("events_", "model_calls_")) and node["Actual Loops"] else []
    return own + [found for child in node.get("Plans", []) for found in _relations(child)]


def test_every_index_and_key_of_the_tables_is_on_every_partition(rows: Rows) -> None:
    per_partition = text(
        "select inhrelid::regclass::text as place, "
        "(select count(*) from pg_index where indrelid = inhrelid and indisvalid) as indexes, "
        "(select array_agg(conname::text order by conname) from pg_constraint "
        "where conrelid = inhrelid and contype in ('c', 'f')) as rules "
        "from pg_inherits where inhparent = to_regclass(:parent)"
    )
    for parent, indexes in {"events": 4, "model_calls": 2}.items():
        found = rows.connection.execute(per_partition, {"parent": parent}).all()
        assert len(found) == 3 + 1 + AHEAD
        rules = rows.connection.scalars(
            text(
                "select array_agg(conname::text order by conname) from pg_constraint "
                "where conrelid = to_regclass(:parent) and contype in ('c', 'f')"
            ),
            {"parent": parent},
        ).one()
        for row in found:
            assert (row.indexes, row.rules) == (indexes, rules), row.place
