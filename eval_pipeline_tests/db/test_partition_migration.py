"""The migration to partitions loses no row and changes no answer, whatever hangs on the tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import Connection, Engine, insert, text

from eval_pipeline.db import sqlfiles, tables
from eval_pipeline.db.migrations import migrate
from eval_pipeline.errors import DatabaseError
from eval_pipeline.run_ids import Month, new_run_id
from eval_pipeline_tests.conftest import Database
from eval_pipeline_tests.db.builders import Rows

STEPS = sqlfiles.migrations()
BEFORE = next(step.version for step in STEPS if step.name == "partitioned_events") - 1
LONG = "매출 " * 3000
VIEWS = (
    "v_trace",
    "v_model_calls",
    "v_role_accounting",
    "v_handovers",
    "v_endings",
    "v_tool_totals",
    "mv_tool_summary",
)


def now_as(version: int) -> UUID:
    """An id of the present month that says it is of that version."""
    return UUID(int=new_run_id().int & ~(0xF << 76) | version << 76)


IDS = {
    **{f"version 4, number {number}": uuid4() for number in range(30)},
    "the lowest": UUID(int=0),
    "the highest": UUID(int=2**128 - 1),
    "version 4 in the present month": now_as(4),
    "version 7": new_run_id(),
    "version 4 in a month that nobody has made": UUID(int=Month(2031, 4).first_id.int + (4 << 76)),
    "the first beyond the months": Month(2099, 12).end_id,
    "the last of the months": UUID(int=Month(2099, 12).end_id.int - 1),
}


@pytest.fixture
def old(empty_database: Database) -> Engine:
    """A database before the migration, with a run for each of the ids and everything in its trace."""
    pool = empty_database.engine
    migrate(pool, STEPS[:BEFORE])
    with pool.begin() as connection:
        rows = Rows(connection)
        rows.team()
        rows.task()
        rows.batch()
        digest = sha256(LONG.encode()).hexdigest()
        connection.execute(insert(tables.texts).values(sha256=digest, body=LONG, length=len(LONG)))
        for attempt, run_id in enumerate(IDS.values(), start=1):
            rows.cell(attempt=attempt)
            rows.completed(attempt=attempt, run_id=run_id)
            _trace(rows, run_id, digest)
    return pool


def _trace(rows: Rows, run_id: UUID, digest: str) -> None:
    rows.event(run_id, 0, source="user", content="한글")
    rows.event(run_id, 1, "selector_decision", source="selector", target="executor", reason_code="NEEDS_EXECUTION")
    rows.event(run_id, 2, "tool_call", source="executor", tool_name="t", tool_call_id="c", tool_args={"a": [1, None]})
    kept = {"content": LONG[:2048], "content_sha256": digest, "content_length": len(LONG), "latency_ms": 7}
    rows.event(run_id, 3, "tool_result", source="executor", tool_call_id="c", **kept)
    rows.event(run_id, 4, source="critic", content="APPROVE", tokens_in=3)
    call = {"run_id": run_id, "call_no": 0, "role": "critic", "kind": "turn", "latency_ms": 5, "outcome": "ok"}
    rows.connection.execute(insert(tables.model_calls).values(call))


def answers(connection: Connection, names: Sequence[str]) -> Mapping[str, list[Any]]:
    return {
        name: sorted(map(repr, connection.execute(text(f"select * from {name}"))))  # noqa: S608
        for name in names
    }


def test_no_row_is_lost_and_every_view_answers_as_before(old: Engine) -> None:
    names = ("events", "model_calls", "texts", "runs", *VIEWS)
    with old.connect() as connection:
        before = answers(connection, names)
    assert all(before[name] for name in names if name != "mv_tool_summary")
    assert migrate(old) == list(STEPS[BEFORE:])
    with old.connect() as connection:
        assert answers(connection, names) == before
        counts = dict(
            connection.execute(
                text("select tableoid::regclass::text, count(distinct run_id) from events group by 1")
            ).all()
        )
    present = f"events_{datetime.now(UTC):%Y_%m}"
    assert counts["events_above"] >= 25
    assert counts["events_below"] >= 1
    assert counts[present] >= 2
    assert counts["events_rest"] >= 2
    assert sum(counts.values()) == len(IDS)


def test_what_people_have_made_on_the_tables_goes_on_working(old: Engine) -> None:
    role = f"reader_{old.url.database}"
    with old.begin() as connection:
        connection.exec_driver_sql(f"create role {role}")
        connection.exec_driver_sql(f"grant usage on schema eval_ph1 to {role}")
        for statement in (
            "create view mine as select run_id, seq from events where message_type = 'tool_call'",
            "create view mine_on_mine with (security_barrier = true) as select count(*) as n from mine, model_calls",
            "create view mine_on_trace as select count(*) as n from v_trace",
            "create materialized view stored as select tool_name, count(*) as n from events group by tool_name",
            "create unique index stored_by_tool on stored (tool_name)",
            "comment on materialized view stored is 'how often; it''s mine'",
            "create index mine_by_source on events (source)",
            f"grant select, insert on events to {role} with grant option",
            f"grant select on v_trace, mine, mine_on_mine, stored to {role}",
            "grant select on model_calls to public",
        ):
            connection.exec_driver_sql(statement)
        mine = ("mine", "mine_on_mine", "mine_on_trace", "stored")
        before, comments, rights = answers(connection, mine), _comments(connection), _rights(connection)
    migrate(old)
    with old.begin() as connection:
        assert answers(connection, mine) == before
        assert _comments(connection) >= comments
        assert _rights(connection) == rights
        assert connection.scalar(text("select reloptions from pg_class where oid = 'mine_on_mine'::regclass"))
        connection.execute(text("refresh materialized view concurrently stored"))
        assert connection.scalar(text("select count(*) from pg_inherits where inhparent = 'mine_by_source'::regclass"))
        run_id = new_run_id()
        rows = Rows(connection)
        rows.cell(attempt=999)
        rows.completed(attempt=999, run_id=run_id)
        rows.event(run_id, 0, "tool_call", tool_name="t", tool_call_id="c")
        assert run_id in connection.scalars(text("select run_id from mine")).all()
        connection.exec_driver_sql(f"set local role {role}")
        assert connection.scalar(text("select count(*) from events where run_id = :run"), {"run": run_id}) == 1


def _comments(connection: Connection) -> set[tuple[str, str]]:
    found = connection.execute(
        text(
            "select class.relname, coalesce(col_description(class.oid, objsubid), description) from pg_description "
            "join pg_class as class on class.oid = objoid and classoid = 'pg_class'::regclass "
            "where class.relnamespace = current_schema()::regnamespace and class.relname !~ '_(above|below|rest)$'"
        )
    )
    return {(row[0], row[1]) for row in found}


def _rights(connection: Connection) -> list[tuple[str, str]]:
    found = connection.execute(
        text(
            "select class.relname, array(select unnest(class.relacl)::text order by 1)::text from pg_class as class "
            "where class.relnamespace = current_schema()::regnamespace and class.relacl is not null "
            "and class.relname !~ '_(above|below|rest|[0-9]{4}_[0-9]{2})$' and class.relkind in ('r', 'p', 'v', 'm') "
            "order by class.relname"
        )
    )
    return [(row[0], row[1]) for row in found]


def test_a_function_that_is_bound_to_a_table_is_told_of_and_nothing_changes(old: Engine) -> None:
    with old.begin() as connection:
        connection.exec_driver_sql(
            "create function mine() returns bigint language sql begin atomic select count(*) from events; end"
        )
    with pytest.raises(DatabaseError, match="a function of your own is bound to table events") as caught:
        migrate(old)
    assert "\n" not in str(caught.value)
    with old.connect() as connection:
        assert connection.scalar(text("select relkind from pg_class where oid = 'events'::regclass")) == "r"
        assert connection.scalar(text("select mine()")) == 5 * len(IDS)


def test_a_statement_that_a_worker_has_prepared_before_works_after(old: Engine) -> None:
    run_id = IDS["version 7"]
    with old.connect() as worker:
        statement = insert(tables.events).values(run_id=run_id, message_type="agent_message")
        for seq in range(10, 20):
            worker.execute(statement.values(seq=seq))
            worker.commit()
        migrate(old)
        for seq in range(20, 30):
            worker.execute(statement.values(seq=seq))
            worker.commit()
        counted = text("select count(*) from events where run_id = :run")
        assert worker.scalar(counted, {"run": run_id}) == 25


def test_planner_statistics_of_the_whole_are_there_at_once(old: Engine) -> None:
    migrate(old)
    with old.connect() as connection:
        known = text(
            "select count(*) from pg_stats where tablename in ('events', 'model_calls') and attname = 'run_id'"
        )
        assert connection.scalar(known) == 2
