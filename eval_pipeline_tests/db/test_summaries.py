"""Summaries that are stored per batch: renewed one by one, stale when they should be, as right as those before them."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import (
    Connection,
    Engine,
    Row,
    Select,
    column,
    create_engine,
    delete,
    func,
    insert,
    literal_column,
    select,
    table,
    text,
    update,
)

from eval_pipeline.db import sqlfiles, tables
from eval_pipeline.db.embedded import Server
from eval_pipeline.db.freshness import stale_batches
from eval_pipeline.db.migrations import migrate
from eval_pipeline.db.views import SUMMARY_VIEWS, batch_summary, passk, refresh, refresh_all, refresh_batches
from eval_pipeline.ids import BatchTeam
from eval_pipeline_tests.bench.filling import batch_teams, plant
from eval_pipeline_tests.conftest import Database, fresh_database, own_tables
from eval_pipeline_tests.db.builders import NOON, Rows

ONE, TWO = BatchTeam("b1", "v1"), BatchTeam("b2", "v1")
STALE = text("select distinct batch_id, summary from stale_summaries order by 1, 2")
WITHOUT = 10
"""The last migration before summaries were stored."""


def rows_of(connection: Connection, view: str) -> list[tuple[Any, ...]]:
    """The rows in one order; a sum of floating-point numbers may end in another digit than the last time."""
    found: Sequence[Row[Any]] = connection.execute(select(literal_column("*")).select_from(table(view))).all()
    return sorted(
        (tuple(float(f"{value:.12g}") if isinstance(value, float) else value for value in row) for row in found),
        key=str,
    )


def summary(database: Database, batch_team: BatchTeam) -> dict[str, Any]:
    with database.engine.connect() as connection:
        (row,) = batch_summary(connection, batch_team)
    return dict(row._mapping)


def change(database: Database, status: str = "crashed", **columns: Any) -> None:
    """Change the live try of every cell of b1."""
    with database.engine.begin() as connection:
        connection.execute(update(tables.runs).where(tables.runs.c.batch_id == "b1").values(status=status, **columns))


def stale(database: Database) -> list[str]:
    return [found.batch_team.key for found in stale_batches(database.engine)]


@pytest.fixture
def two_batches(database: Database) -> Database:
    """A right run of t1 in b1 and in b2, summarised."""
    with database.engine.begin() as connection:
        rows = Rows(connection)
        rows.team()
        rows.task()
        rows.task("t2")
        for batch_team in (ONE, TWO):
            rows.batch(batch_team.batch)
            rows.cell(batch_id=batch_team.batch)
            run_id = rows.completed(batch_id=batch_team.batch, scorer_version="gaia-1")
            rows.event(run_id, 0, "tool_call", tool_name="python_calc", tool_call_id="c1")
    refresh_batches(database.engine, [ONE, TWO])
    return database


def test_a_refresh_renews_one_batch_and_leaves_the_rows_of_others_alone(two_batches: Database) -> None:
    with two_batches.engine.begin() as connection:
        connection.execute(update(tables.runs).values(success=False))
        before: dict[str, str] = dict(
            connection.execute(text("select batch_id, xmin::text from stored_batch_summary")).all()
        )
    refresh_batches(two_batches.engine, [ONE])
    assert (summary(two_batches, ONE)["successes"], summary(two_batches, TWO)["successes"]) == (0, 1)
    with two_batches.engine.connect() as connection:
        after: dict[str, str] = dict(
            connection.execute(text("select batch_id, xmin::text from stored_batch_summary")).all()
        )
        assert [row.pass_at_k for row in passk(connection, ONE)] == [0]
        assert [row.pass_at_k for row in passk(connection, TWO)] == [1]
    assert after["b2"] == before["b2"]
    assert after["b1"] != before["b1"]
    assert stale(two_batches) == ["b2@v1"]


def test_each_summary_is_renewed_and_stale_by_itself(two_batches: Database) -> None:
    change(two_batches, "completed", success=False)
    refresh(two_batches.engine, "mv_batch_summary", [ONE])
    with two_batches.engine.connect() as connection:
        assert connection.execute(STALE).all() == [("b1", "mv_passk"), ("b1", "mv_tool_summary")]
        assert [row.pass_at_k for row in passk(connection, ONE)] == [1]
    for view in ("mv_passk", "mv_tool_summary"):
        assert stale(two_batches) == ["b1@v1"]
        refresh(two_batches.engine, view, [ONE])
    assert stale(two_batches) == []


def test_a_view_that_there_is_not_cannot_be_renewed(two_batches: Database) -> None:
    with pytest.raises(KeyError):
        refresh(two_batches.engine, "mv_batch_summary; drop table runs", [ONE])


def test_a_batch_that_there_is_not_has_no_rows_and_is_no_error(two_batches: Database) -> None:
    refresh_batches(two_batches.engine, [BatchTeam("nowhere", "v1"), BatchTeam("b1", "v9")])
    with two_batches.engine.connect() as connection:
        assert batch_summary(connection, BatchTeam("nowhere", "v1")) == []


def test_a_changed_verdict_makes_all_three_stale_and_is_shown_after_the_refresh(two_batches: Database) -> None:
    change(two_batches, "completed", success=False, scorer_version="gaia-2")
    assert stale(two_batches) == ["b1@v1"]
    refresh_batches(two_batches.engine, [ONE])
    assert summary(two_batches, ONE)["successes"] == 0
    assert stale(two_batches) == []


def test_a_run_that_is_tried_again_is_summarised_at_its_start_and_at_its_end(two_batches: Database) -> None:
    crashed: dict[str, Any] = {"success": None, "format_valid": None, "error_class": "connection"}
    change(two_batches, **crashed)
    refresh_batches(two_batches.engine, [ONE])
    assert (summary(two_batches, ONE)["crashed"], summary(two_batches, ONE)["running"]) == (1, 0)
    change(two_batches, live=False)
    with two_batches.engine.begin() as connection:
        run_id = Rows(connection).run(try_no=2)
    assert stale(two_batches) == ["b1@v1"]
    refresh_batches(two_batches.engine, [ONE])
    assert (summary(two_batches, ONE)["crashed"], summary(two_batches, ONE)["running"]) == (0, 1)
    assert stale(two_batches) == []
    ended = {"status": "completed", "success": True, "format_valid": True, "finished_at": NOON}
    with two_batches.engine.begin() as connection:
        connection.execute(update(tables.runs).where(tables.runs.c.run_id == run_id).values(ended))
    assert stale(two_batches) == ["b1@v1"]
    refresh_batches(two_batches.engine, [ONE])
    assert (summary(two_batches, ONE)["completed"], summary(two_batches, ONE)["tries"]) == (1, 2)


def test_an_extended_plan_makes_a_summary_stale_once_anything_has_ended(two_batches: Database) -> None:
    with two_batches.engine.begin() as connection:
        rows = Rows(connection)
        rows.cell("t2")
        rows.batch("new")
        rows.cell(batch_id="new")
    assert stale(two_batches) == ["b1@v1"]
    refresh_batches(two_batches.engine, [ONE])
    assert (summary(two_batches, ONE)["planned"], summary(two_batches, ONE)["pass_at_1_planned"]) == (2, 0.5)
    with two_batches.engine.begin() as connection:
        connection.execute(delete(tables.plan).where(tables.plan.c.task_id == "t2"))
    assert stale(two_batches) == ["b1@v1"]


@pytest.mark.parametrize(
    "columns",
    [
        {"heartbeat_at": NOON},
        {"failure_stage": "step_repetition"},
        {"score_reason": "equal", "scorer_version": "gaia-2"},
        {"worker": "another"},
    ],
)
def test_what_no_summary_shows_makes_none_stale(two_batches: Database, columns: Mapping[str, Any]) -> None:
    change(two_batches, "completed", **columns)
    assert stale(two_batches) == []


def test_what_is_committed_while_a_summary_is_computed_leaves_it_stale(two_batches: Database) -> None:
    with two_batches.engine.connect() as ending:
        ending.execute(update(tables.runs).where(tables.runs.c.batch_id == "b1").values(success=False))
        refresh_batches(two_batches.engine, [ONE])
        ending.commit()
    assert summary(two_batches, ONE)["successes"] == 1
    assert stale(two_batches) == ["b1@v1"]
    refresh_batches(two_batches.engine, [ONE])
    assert summary(two_batches, ONE)["successes"] == 0
    assert stale(two_batches) == []


def test_two_refreshes_of_a_batch_wait_for_each_other_and_those_of_two_batches_do_not(two_batches: Database) -> None:
    change(two_batches, "completed", success=False)
    second = threading.Thread(target=refresh, args=(two_batches.engine, "mv_batch_summary", [ONE]))
    with two_batches.engine.connect() as first:
        first.execute(select(func.refresh_mv_batch_summary("b1", "v1")))
        second.start()
        refresh(two_batches.engine, "mv_batch_summary", [TWO])
        # a launch, which only refers to the batch, is not kept waiting either
        with two_batches.engine.begin() as connection:
            connection.execute(text("set local lock_timeout = '5s'"))
            Rows(connection).cell("t2")
        second.join(timeout=0.3)
        assert second.is_alive()
        first.commit()
    second.join(timeout=30)
    assert not second.is_alive()
    assert (summary(two_batches, ONE)["planned"], summary(two_batches, ONE)["successes"]) == (2, 0)


def test_many_refreshes_at_once_end_with_the_present_figures(two_batches: Database) -> None:
    change(two_batches, "completed", success=False)
    at_once = [
        threading.Thread(target=refresh_batches, args=(two_batches.engine, order))
        for order in ([ONE, TWO], [TWO, ONE], [ONE], [TWO, ONE])
    ]
    for thread in at_once:
        thread.start()
    for thread in at_once:
        thread.join(timeout=60)
    assert summary(two_batches, ONE)["successes"] == 0
    assert stale(two_batches) == []


def test_the_summaries_of_a_batch_go_with_it(two_batches: Database) -> None:
    with two_batches.engine.begin() as connection:
        for gone in (tables.runs, tables.plan):
            connection.execute(delete(gone).where(gone.c.batch_id == "b1"))
    # its row is still there: what is stored of it is stale, and there is nothing to summarise
    assert stale(two_batches) == []
    with two_batches.engine.begin() as connection:
        connection.execute(delete(tables.batches).where(tables.batches.c.batch_id == "b1"))
    with two_batches.engine.connect() as connection:
        for view in SUMMARY_VIEWS:
            assert set(connection.scalars(select(column("batch_id")).select_from(table(view)))) == {"b2"}
        assert connection.execute(STALE).all() == []


def test_a_run_that_is_taken_away_makes_its_batch_stale(two_batches: Database) -> None:
    with two_batches.engine.begin() as connection:
        rows = Rows(connection)
        rows.cell("t2")
        run_id = rows.completed("t2")
    refresh_batches(two_batches.engine, [ONE])
    with two_batches.engine.begin() as connection:
        connection.execute(delete(tables.runs).where(tables.runs.c.run_id == run_id))
    assert stale(two_batches) == ["b1@v1"]
    refresh_batches(two_batches.engine, [ONE])
    assert (summary(two_batches, ONE)["planned"], summary(two_batches, ONE)["runs"]) == (2, 1)


def test_renewing_all_makes_up_for_rows_that_were_changed_by_hand(two_batches: Database) -> None:
    with two_batches.engine.begin() as connection:
        connection.execute(delete(tables.stored_passk))
        connection.execute(update(tables.stored_batch_summary).values(planned=99))
    refresh_all(two_batches.engine)
    assert {summary(two_batches, one)["planned"] for one in (ONE, TWO)} == {1}
    with two_batches.engine.connect() as connection:
        assert len(rows_of(connection, "mv_passk")) == 2


def test_a_session_with_another_search_path_ends_a_run_all_the_same(two_batches: Database) -> None:
    with two_batches.engine.begin() as connection:
        connection.execute(text("set local search_path = public"))
        connection.execute(text("update eval_ph1.runs set success = false where batch_id = 'b1'"))
        connection.execute(text("select eval_ph1.refresh_mv_passk('b1', 'v1')"))
    assert stale(two_batches) == ["b1@v1"]
    with two_batches.engine.connect() as connection:
        assert [row.pass_at_k for row in passk(connection, ONE)] == [0]


def test_the_longest_waiting_batch_is_the_first_whatever_became_stale_first(two_batches: Database) -> None:
    with two_batches.engine.begin() as connection:
        for hours, batch_id in ((1, "b1"), (2, "b2")):
            ended = {"success": False, "finished_at": NOON - timedelta(hours=hours)}
            connection.execute(update(tables.runs).where(tables.runs.c.batch_id == batch_id).values(ended))
    assert stale(two_batches) == ["b2@v1", "b1@v1"]


SHAPE = text("""
select attribute.attname, format_type(attribute.atttypid, attribute.atttypmod)
from pg_attribute as attribute
where attribute.attrelid = to_regclass(:view) and attribute.attnum > 0
order by attribute.attnum
""")
COMMENT = text("select obj_description(to_regclass(:view), 'pg_class')")
VIEWS = text("""
select class.relname from pg_class as class join pg_namespace as namespace on namespace.oid = class.relnamespace
where namespace.nspname = 'eval_ph1' and class.relkind in ('v', 'm') order by class.relname
""")


@pytest.fixture
def old(empty_database: Database) -> Database:
    """A database as it was left by a version that had materialized views, with batches in it."""
    migrate(empty_database.engine, sqlfiles.migrations()[:WITHOUT])
    plant(empty_database.engine, batch_teams("old", 20), tasks=7, attempts=3)
    with empty_database.engine.begin() as connection:
        Rows(connection).batch("never-run", "bench-a")
        for view in SUMMARY_VIEWS:
            connection.exec_driver_sql(f"refresh materialized view {view}")
    return empty_database


@dataclass(frozen=True)
class View:
    """What a view looks like from outside. ``columns`` are names with types."""

    columns: list[tuple[str, str]]
    comment: str | None
    rows: list[tuple[Any, ...]]


def everything(engine: Engine) -> dict[str, View]:
    found = {}
    with engine.connect() as connection:
        for view in connection.scalars(VIEWS):
            bound = {"view": view}
            columns = [(row.attname, row.format_type) for row in connection.execute(SHAPE, bound)]
            found[view] = View(columns, connection.scalar(COMMENT, bound), rows_of(connection, view))
    return found


def test_an_old_database_keeps_every_view_with_its_columns_types_comment_and_figures(old: Database) -> None:
    before = everything(old.engine)
    migrate(old.engine, sqlfiles.migrations())
    after = everything(old.engine)
    for view, was in before.items():
        assert after[view] == was, view
        assert was.rows, f"nothing is compared of {view}"
    assert stale(old) == []
    with old.engine.connect() as connection:
        assert rows_of(connection, "v_tool_totals") == after["mv_tool_summary"].rows


def test_renewing_an_old_database_changes_no_figure(old: Database) -> None:
    before = everything(old.engine)
    migrate(old.engine, sqlfiles.migrations())
    refresh_all(old.engine)
    after = everything(old.engine)
    for view in SUMMARY_VIEWS:
        assert after[view] == before[view]


def test_who_could_read_a_summary_before_the_migration_can_read_it_after(old: Database) -> None:
    role = f"reader_{old.engine.url.database}"
    with old.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql(f"create role {role}")
        connection.exec_driver_sql(f"grant usage on schema eval_ph1 to {role}")
        connection.exec_driver_sql(f"grant select on mv_batch_summary to {role}")
        connection.exec_driver_sql("grant select on mv_passk to public")
    migrate(old.engine, sqlfiles.migrations())
    may = text("select has_table_privilege(:role, :relation, 'select')")
    with old.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        allowed = {
            relation: connection.scalar(may, {"role": role, "relation": relation})
            for relation in (*SUMMARY_VIEWS, "stored_batch_summary")
        }
        connection.exec_driver_sql(f"drop owned by {role}")
        connection.exec_driver_sql(f"drop role {role}")
    assert allowed == {
        "mv_batch_summary": True,
        "mv_passk": True,
        "mv_tool_summary": False,
        "stored_batch_summary": False,
    }


@pytest.fixture(scope="module")
def planted(postgres: Server, migrated_template: str) -> Iterator[Engine]:
    """A database with a history, of which one batch is asked for."""
    with fresh_database(postgres, migrated_template) as url:
        pool = create_engine(own_tables(url))
        plant(pool, batch_teams("history", 20), tasks=10, attempts=2)
        yield pool
        pool.dispose()


def scans(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if "Relation Name" in node:
        yield node
    for part in node.get("Plans", ()):
        yield from scans(part)


BY_BATCH = (
    "v_summary_per_level_and_total",
    "v_batch_totals",
    "v_passk_totals",
    "v_tool_totals",
    "v_runs",
    "v_failures",
    "v_cell_usage",
    "v_run_metrics",
    "v_analysis_grounded",
    "v_research_grounding",
    "v_cppx_grounding",
)
PER_RUN = {"events", "run_metrics", "research_grounding", "cppx_grounding"}


@pytest.mark.parametrize(
    ("view", "several"),
    [*((view, False) for view in BY_BATCH), *((view, True) for view in BY_BATCH if "total" in view)],
)
def test_a_view_that_is_read_for_a_batch_looks_the_batch_up(planted: Engine, view: str, several: bool) -> None:
    """Whatever is read of runs and traces is found by an index, through a condition on its batch, cell or run."""
    query: Select[Any] = select(literal_column("*")).select_from(table(view))
    if several:
        query = query.where(column("batch_id").in_(["history-00001", "history-00002"]))
    else:
        query = query.where(column("batch_id") == "history-00001", column("team_id") == "bench-b")
    with planted.connect() as connection:
        # so few rows would be read whole, were that not forbidden
        for way in ("enable_seqscan", "enable_hashjoin", "enable_mergejoin"):
            connection.exec_driver_sql(f"set local {way} = off")
        compiled = query.compile(planted, compile_kwargs={"literal_binds": True})
        (plan,) = connection.exec_driver_sql(f"explain (format json) {compiled}").scalar_one()
    found = [
        node for node in scans(plan["Plan"]) if node["Relation Name"].partition("_p")[0] in ("runs", "plan", *PER_RUN)
    ]
    assert found
    for node in found:
        condition = node.get("Index Cond") or node.get("Recheck Cond") or ""
        assert "run_id" in condition if node["Relation Name"] not in ("runs", "plan") else "batch_id" in condition, node


def test_the_same_figures_come_out_of_what_is_stored_and_of_what_is_fresh(planted: Engine) -> None:
    refresh_all(planted)
    with planted.connect() as connection:
        levels = text("select * from v_summary_per_level_and_total where level is not null")
        fresh = sorted(tuple(row) for row in connection.execute(levels))
        stored = sorted(tuple(row) for row in connection.execute(select(tables.stored_batch_summary)))
        assert fresh == stored
        assert rows_of(connection, "v_tool_totals") == rows_of(connection, "mv_tool_summary")
        plan = text("select batch_id, team_id, count(*) from plan group by 1, 2 order by 1, 2")
        planned = text("select batch_id, team_id, sum(planned) from mv_batch_summary group by 1, 2 order by 1, 2")
        assert connection.execute(plan).all() == connection.execute(planned).all()


def test_a_batch_is_not_summarised_by_the_insert_of_something_else(two_batches: Database) -> None:
    with two_batches.engine.begin() as connection:
        rows = Rows(connection)
        rows.batch("b3")
        rows.cell(batch_id="b3")
        run_id = rows.run(batch_id="b3")
        rows.event(run_id, 0)
        connection.execute(insert(tables.run_metrics).values(run_id=run_id, name="n", scorer_version="1", value=1.0))
    assert stale(two_batches) == []
