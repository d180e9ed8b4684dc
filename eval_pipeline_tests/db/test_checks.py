"""The consistency queries find what they are for, and nothing in what is right."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text, update

from eval_pipeline.db import sqlfiles, tables
from eval_pipeline.db.checks import CHECKS, SAMPLE, run_checks
from eval_pipeline.errors import DatabaseError
from eval_pipeline.execution.store import HEARTBEAT_DEAD_AFTER_S
from eval_pipeline_tests.conftest import Database
from eval_pipeline_tests.db.builders import Rows

Story = Callable[[Rows], object]


def planned(rows: Rows) -> None:
    rows.team()
    rows.task()
    rows.task("t1", "h2")
    rows.batch()
    rows.cell()


def call(rows: Rows, seq: int, call_id: str, kind: str = "tool_call") -> None:
    run_id = rows.connection.scalars(text("select run_id from runs")).one()
    extra = {"error": {"type": "ValueError"}} if kind == "tool_error" else {}
    rows.event(run_id, seq, kind, tool_name="python_calc", tool_call_id=call_id, **extra)


def whole_trace(rows: Rows) -> None:
    rows.completed()
    call(rows, 0, "call_0")
    call(rows, 1, "call_1")
    call(rows, 2, "call_0", "tool_result")
    call(rows, 3, "call_1", "tool_error")
    # an endpoint that numbers the calls of each answer anew
    call(rows, 4, "call_0")
    call(rows, 5, "call_0", "tool_result")


def open_call(rows: Rows) -> None:
    rows.completed()
    call(rows, 0, "call_0")
    call(rows, 1, "call_0", "tool_result")
    call(rows, 2, "call_0")


def open_call_of_a_running_try(rows: Rows) -> None:
    rows.run()
    call(rows, 0, "call_0")


def open_call_with_a_dropped_event(rows: Rows) -> None:
    rows.completed(events_dropped=1)
    call(rows, 0, "call_0")


def gap(rows: Rows) -> None:
    run_id = rows.crashed()
    rows.event(run_id, 0)
    rows.event(run_id, 2)


def gap_at_the_start(rows: Rows) -> None:
    rows.event(rows.completed(), 1)


def gap_that_is_owned_up_to(rows: Rows) -> None:
    rows.event(rows.completed(events_dropped=1), 1)


def stale(rows: Rows) -> None:
    rows.run(heartbeat_at=datetime.now(UTC) - timedelta(minutes=2))


def alive(rows: Rows) -> None:
    rows.run(heartbeat_at=datetime.now(UTC) - timedelta(seconds=20))


def answered_another_content(rows: Rows) -> None:
    rows.completed(task_hash="h2")


def two_contents_in_one_batch(rows: Rows) -> None:
    rows.cell(attempt=2, task_hash="h2")
    rows.completed(attempt=2, task_hash="h2")


def the_same_content_in_another_batch(rows: Rows) -> None:
    rows.batch("b2")
    rows.cell(batch_id="b2", task_hash="h2")
    rows.completed(batch_id="b2", task_hash="h2")
    rows.completed()


def no_live_try(rows: Rows) -> None:
    rows.crashed(live=False)


def superseded(rows: Rows) -> None:
    rows.crashed(live=False)
    rows.run(try_no=2)


@pytest.mark.parametrize(
    ("story", "expected"),
    [
        (whole_trace, {}),
        (open_call, {"tool_call_without_outcome": {"tool_call_id": "call_0", "calls": 2, "outcomes": 1}}),
        (open_call_of_a_running_try, {}),
        (open_call_with_a_dropped_event, {}),
        (gap, {"gap_in_seq": {"events": 2, "last_seq": 2}}),
        (gap_at_the_start, {"gap_in_seq": {"events": 1, "last_seq": 1}}),
        (gap_that_is_owned_up_to, {}),
        (stale, {"stale_heartbeat": {"batch_id": "b1", "task_id": "t1", "attempt": 1}}),
        (alive, {}),
        (answered_another_content, {"task_hash_differs": {"answered": "h2", "planned": "h1"}}),
        (two_contents_in_one_batch, {"task_hash_differs": {"answered": "h2", "first_planned": "h1"}}),
        (the_same_content_in_another_batch, {}),
        (no_live_try, {"cell_without_live_try": {"task_id": "t1", "attempt": 1, "tries": 1}}),
        (superseded, {}),
    ],
    ids=lambda value: value.__name__.replace("_", " ") if callable(value) else "",
)
def test_the_checks_find(database: Database, story: Story, expected: Mapping[str, Mapping[str, object]]) -> None:
    with database.engine.begin() as connection:
        rows = Rows(connection)
        planned(rows)
        story(rows)
    found = {result.check.name: result for result in run_checks(database.engine) if not result.passed}
    assert found.keys() == expected.keys()
    for name, columns in expected.items():
        assert found[name].count == 1
        assert columns.items() <= found[name].rows[0].items()


def test_a_completed_run_without_a_verdict_is_found_where_the_constraint_is_gone(database: Database) -> None:
    with database.engine.begin() as connection:
        rows = Rows(connection)
        planned(rows)
        run_id = rows.completed()
        connection.execute(text("alter table runs drop constraint runs_completed_needs_verdict"))
        connection.execute(update(tables.runs).values(success=None))
    found = [result for result in run_checks(database.engine) if not result.passed]
    assert [result.check.name for result in found] == ["completed_without_verdict"]
    assert found[0].rows[0]["run_id"] == run_id


def test_all_rows_are_counted_and_some_are_shown(database: Database) -> None:
    with database.engine.begin() as connection:
        rows = Rows(connection)
        planned(rows)
        for attempt in range(2, SAMPLE + 7):
            rows.cell(attempt=attempt)
            rows.crashed(attempt=attempt, live=False)
    result = next(result for result in run_checks(database.engine) if not result.passed)
    assert (result.count, len(result.rows)) == (SAMPLE + 5, SAMPLE)


def test_every_file_is_a_check_and_every_check_has_its_file() -> None:
    files = {path.stem for path in (sqlfiles.sql_folder() / "checks").glob("*.sql")}
    assert {check.name for check in CHECKS} == files
    assert len(files) == len(CHECKS)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_a_check_says_in_one_line_what_is_wrong_and_what_to_do(check: object) -> None:
    for words in (check.meaning, check.remedy):  # type: ignore[attr-defined]
        assert words
        assert "\n" not in words
        assert words[0].islower()


def test_a_database_that_was_never_migrated_is_refused_in_one_line(empty_database: Database) -> None:
    with pytest.raises(DatabaseError, match="does not exist") as caught:
        run_checks(empty_database.engine)
    assert "\n" not in str(caught.value)


def test_a_heartbeat_is_stale_when_a_launch_would_count_the_try_as_dead() -> None:
    statement = (sqlfiles.sql_folder() / "checks" / "stale_heartbeat.sql").read_text()
    assert HEARTBEAT_DEAD_AFTER_S == 60
    assert "interval '1 minute'" in statement
