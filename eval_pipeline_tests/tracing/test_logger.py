from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import Connection, Engine, NullPool, create_engine, func, select, text

from eval_pipeline.clock import SystemClock
from eval_pipeline.db import embedded, tables
from eval_pipeline.errors import ErrorClass
from eval_pipeline.tracing import writer as writer_module
from eval_pipeline.tracing.items import ModelCall, StreamItem, ToolCall, ToolOutcome, Usage
from eval_pipeline.tracing.logger import TraceLogger
from eval_pipeline.tracing.masking import Masker
from eval_pipeline.tracing.records import RecordBuilder
from eval_pipeline.tracing.writer import Pace, TraceWriter
from eval_pipeline_tests.conftest import Database
from eval_pipeline_tests.tracing.builders import CAFE, START, FakeClock, calls, message, new_run, outcomes

CANARY = "canary-4711"
QUICK = Pace(interval_s=0.05, retry_after_s=0.2)


@pytest.fixture
def run_id(database: Database) -> UUID:
    return new_run(database.engine)


@pytest.fixture
def start(database: Database, run_id: UUID) -> Callable[..., TraceLogger]:
    def starts(pace: Pace = QUICK, to: UUID | None = None) -> TraceLogger:
        return TraceLogger(database.engine, to or run_id, SystemClock(), Masker([CANARY]), pace=pace)

    return starts


@contextmanager
def administrator(server: embedded.Server) -> Iterator[Connection]:
    url = server.url(embedded.SUPERUSER).set(drivername="postgresql+psycopg")
    with create_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT").connect() as connection:
        yield connection


@contextmanager
def gone(server: embedded.Server, engine: Engine) -> Iterator[None]:
    """The database lets nobody in and throws everybody out, as one that is restarted does."""
    name = engine.url.database
    assert name is not None
    quoted = engine.dialect.identifier_preparer.quote(name)
    with administrator(server) as connection:
        connection.exec_driver_sql(f"alter database {quoted} with allow_connections false")
        connection.execute(
            text("select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = :name"), {"name": name}
        )
        try:
            yield
        finally:
            connection.exec_driver_sql(f"alter database {quoted} with allow_connections true")


def stored_seqs(engine: Engine, run_id: UUID) -> list[int]:
    events = tables.events
    with engine.connect() as connection:
        return list(connection.scalars(select(events.c.seq).where(events.c.run_id == run_id).order_by(events.c.seq)))


def dropped_on_the_row(engine: Engine, run_id: UUID) -> int:
    runs = tables.runs
    with engine.connect() as connection:
        return int(connection.execute(select(runs.c.events_dropped).where(runs.c.run_id == run_id)).scalar_one())


async def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 15
    while not true():
        assert time.monotonic() < end, "it never came true"
        await asyncio.sleep(0.02)


async def test_a_run_is_stored_as_it_was_made(database: Database, run_id: UUID) -> None:
    clock, masker = FakeClock(), Masker()
    logger = TraceLogger(database.engine, run_id, clock, masker, pace=QUICK)
    builder = RecordBuilder(clock, masker)
    made = []
    for clock.ms, item in CAFE:
        logger.observe(item)
        made += builder.rows(item)
    await logger.close()
    with database.engine.connect() as connection:
        stored = connection.execute(
            select(tables.events).where(tables.events.c.run_id == run_id).order_by(tables.events.c.seq)
        ).all()
        texts = connection.execute(select(tables.texts.c.sha256, tables.texts.c.body)).all()
        nulls = connection.execute(
            select(func.count()).where(tables.events.c.tool_args.is_(None), tables.events.c.error.is_(None))
        ).scalar_one()
    assert [dict(row._mapping) for row in stored] == [{"run_id": run_id, **row.columns()} for row in made]
    assert dict(map(tuple, texts)) == dict(made[5].texts)
    assert nulls == 16  # SQL's NULL, not JSON's
    assert logger.totals == builder.totals
    assert (logger.events_dropped, logger.calls_dropped) == (0, 0)


async def test_rows_are_in_the_database_within_a_second_without_being_asked_for(
    database: Database, run_id: UUID, start: Callable[..., TraceLogger]
) -> None:
    logger = start(Pace())
    for number in range(3):
        logger.observe(message("planner", str(number)))
        await until(lambda expected=number + 1: len(stored_seqs(database.engine, run_id)) == expected)  # type: ignore[misc]
    await logger.close()


def test_a_killed_process_leaves_what_it_saw_a_second_before(database: Database, run_id: UUID) -> None:
    script = f"""
import asyncio, os, signal, time
from uuid import UUID
from sqlalchemy import create_engine
from eval_pipeline.clock import SystemClock
from eval_pipeline.db.engine import engine
from eval_pipeline.settings import load_settings
from eval_pipeline.tracing.items import StreamItem
from eval_pipeline.tracing.logger import TraceLogger
from eval_pipeline.tracing.masking import Masker
logger = TraceLogger(engine(load_settings()), UUID({str(run_id)!r}), SystemClock(), Masker())
for number in range(20):
    logger.observe(StreamItem("TextMessage", "planner", text=str(number)))
time.sleep(1)  # the event loop is busy: that must not matter
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -9
    assert stored_seqs(database.engine, run_id) == list(range(20))


async def test_a_large_text_is_stored_once(database: Database, run_id: UUID, start: Callable[..., TraceLogger]) -> None:
    logger = start()
    body = "결과\0 " * 2_000_000
    logger.observe(calls(ToolCall("a", "read", "{}")))
    logger.observe(outcomes(ToolOutcome("a", "read", body, False)))
    logger.observe(message("executor", body, type_name="ToolCallSummaryMessage"))
    await logger.close()
    with database.engine.connect() as connection:
        stored = connection.execute(select(tables.texts.c.body, tables.texts.c.length)).one()
        hashes = set(connection.scalars(select(tables.events.c.content_sha256)))
    assert stored.body == body.replace("\0", "\ufffd")
    assert stored.length == 8_000_000
    assert len(hashes - {None}) == 1
    assert logger.totals.text_repairs == 4_000_000
    assert logger.events_dropped == 0


async def test_model_calls_are_stored_clean_and_masked(
    database: Database, run_id: UUID, start: Callable[..., TraceLogger]
) -> None:
    logger = start()
    call = ModelCall("planner", "turn", 1, START, 1200, "ok", "stop", Usage(540, 0), 200, model="gpt\0")
    logger.model_call(call)
    failed = replace(call, outcome="error", usage=None, latency_ms=-5, http_status=429, finish_reason=None, model=None)
    logger.model_call(replace(failed, error_class=ErrorClass.RATE_LIMIT, error_message=f"key {CANARY} " + "x" * 9000))
    logger.model_call(replace(failed, role="selector", kind="selection", http_status=None))
    logger.model_call(replace(failed, outcome="cancelled"))
    await logger.close()
    calls_table = tables.model_calls
    with database.engine.connect() as connection:
        rows = connection.execute(select(calls_table).order_by(calls_table.c.call_no)).all()
    assert [row.call_no for row in rows] == [0, 1, 2, 3]
    assert (rows[0].prompt_tokens, rows[0].completion_tokens, rows[0].model) == (540, None, "gpt\ufffd")
    assert (rows[1].latency_ms, rows[1].http_status, rows[1].error_class) == (0, 429, "rate_limit")
    assert rows[1].error_message == "key *** " + "x" * 2040
    assert (rows[2].role, rows[2].error_class) == ("selector", "unknown")
    assert (rows[3].outcome, rows[3].error_class) == ("cancelled", None)
    assert logger.calls_dropped == 0
    assert logger.totals.text_repairs == 1


async def test_a_run_outlives_its_database_and_its_row_tells_what_was_lost(
    database: Database,
    postgres: embedded.Server,
    run_id: UUID,
    start: Callable[..., TraceLogger],
    caplog: pytest.LogCaptureFixture,
) -> None:
    logger = start()
    logger.observe(message("user", "before"))
    assert await logger.flush()
    with gone(postgres, database.engine):
        for number in range(40):
            logger.observe(message("planner", f"during {number} {CANARY}"))
            await asyncio.sleep(0.05)
        assert logger.events_dropped > 0
    logger.observe(message("critic", "after"))
    assert await logger.flush()
    await until(lambda: dropped_on_the_row(database.engine, run_id) == logger.events_dropped)
    await logger.close()
    seqs = stored_seqs(database.engine, run_id)
    assert seqs[0] == 0
    assert seqs[-1] == 41
    assert len(seqs) + logger.events_dropped == 42
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warnings) == 2  # one a minute, and one at the end
    assert f"{logger.events_dropped} events" in warnings[1]
    assert "during" not in caplog.text
    assert CANARY not in caplog.text


async def test_a_restart_of_the_database_costs_nothing(
    database: Database, postgres: embedded.Server, run_id: UUID, start: Callable[..., TraceLogger]
) -> None:
    logger = start(Pace(interval_s=0.05, retry_after_s=3))
    logger.observe(message("user", "before"))
    assert await logger.flush()
    with gone(postgres, database.engine):
        logger.observe(message("planner", "during"))
        await asyncio.sleep(0.5)
    logger.observe(message("critic", "after"))
    await logger.close()
    assert stored_seqs(database.engine, run_id) == [0, 1, 2]
    assert logger.events_dropped == 0


async def test_a_table_that_is_away_loses_rows_and_not_the_run(
    database: Database, run_id: UUID, start: Callable[..., TraceLogger], caplog: pytest.LogCaptureFixture
) -> None:
    logger = start()
    with database.engine.begin() as connection:
        connection.execute(text("alter table events rename to events_away"))
    for number in range(30):
        logger.observe(message("planner", str(number)))
    assert await logger.flush()
    with database.engine.begin() as connection:
        connection.execute(text("alter table events_away rename to events"))
    logger.observe(message("planner", "again"))
    await logger.close()
    assert logger.events_dropped == 30
    assert stored_seqs(database.engine, run_id) == [30]
    assert dropped_on_the_row(database.engine, run_id) == 30
    assert sum("could not be stored" in record.getMessage() for record in caplog.records) == 2


async def test_only_the_poisonous_row_of_a_batch_is_lost(
    database: Database, run_id: UUID, start: Callable[..., TraceLogger], caplog: pytest.LogCaptureFixture
) -> None:
    with database.engine.begin() as connection:
        connection.execute(text("alter table events add constraint no_poison check (content not like 'poison%')"))
    logger = start()
    for number in range(20):
        logger.observe(message("planner", f"poison {CANARY}" if number in (3, 11) else "food"))
    logger.model_call(ModelCall("planner", "turn", 1, START, 1, "ok"))
    logger.model_call(ModelCall("nobody", "turn", 1, START, 1, "ok"))
    await logger.close()
    assert stored_seqs(database.engine, run_id) == [number for number in range(20) if number not in (3, 11)]
    assert (logger.events_dropped, logger.calls_dropped) == (2, 1)
    assert dropped_on_the_row(database.engine, run_id) == 2
    assert "no_poison" in caplog.text
    assert "poison canary" not in caplog.text
    assert CANARY not in caplog.text


async def test_a_run_that_has_no_row_goes_on_without_a_trace(
    database: Database, start: Callable[..., TraceLogger]
) -> None:
    logger = start(to=uuid4())
    logger.observe(message("user", "hello"))
    await logger.close()
    assert logger.events_dropped == 1


async def test_a_database_that_hangs_stops_neither_the_loop_nor_the_memory(
    database: Database, run_id: UUID, start: Callable[..., TraceLogger]
) -> None:
    logger = start(replace(QUICK, rows_held=100, statement_timeout_s=60))
    with database.engine.begin() as connection:
        connection.execute(text("lock table events in access exclusive mode"))
        begun = time.monotonic()
        for number in range(1000):
            logger.observe(message("planner", str(number)))
            await asyncio.sleep(0)
        assert time.monotonic() - begun < 5
        assert logger.events_dropped == 900
        assert not await logger.flush(timeout_s=0.2)
    assert await logger.flush()
    logger.observe(message("planner", "the database is back"))
    await logger.close()
    assert stored_seqs(database.engine, run_id) == [*range(100), 1000]
    assert dropped_on_the_row(database.engine, run_id) == 900


async def test_large_texts_cannot_fill_the_memory_either(
    database: Database, run_id: UUID, start: Callable[..., TraceLogger]
) -> None:
    logger = start(replace(QUICK, characters_held=1_000_000))
    with database.engine.begin() as connection:
        connection.execute(text("lock table events in access exclusive mode"))
        for number in range(20):
            logger.observe(message("planner", str(number) + "x" * 200_000))
    await logger.close()
    assert logger.events_dropped == 16
    assert stored_seqs(database.engine, run_id) == [0, 1, 2, 3]


async def test_a_statement_that_takes_too_long_is_given_up(
    database: Database, run_id: UUID, start: Callable[..., TraceLogger]
) -> None:
    logger = start(replace(QUICK, statement_timeout_s=0.2))
    with database.engine.begin() as connection:
        connection.execute(text("lock table events in access exclusive mode"))
        logger.observe(message("planner", "lost"))
        assert await logger.flush()
        assert logger.events_dropped == 1
    logger.observe(message("planner", "stored"))
    await logger.close()
    assert stored_seqs(database.engine, run_id) == [1]


async def test_closing_waits_only_so_long_and_counts_what_is_left(
    database: Database, run_id: UUID, start: Callable[..., TraceLogger]
) -> None:
    logger = start(replace(QUICK, rows_at_once=3, statement_timeout_s=60))
    with database.engine.begin() as connection:
        connection.execute(text("lock table events in access exclusive mode"))
        for number in range(10):
            logger.observe(message("planner", str(number)))
        begun = time.monotonic()
        await logger.close(timeout_s=0.3)
        assert time.monotonic() - begun < 5
        assert logger.events_dropped == 10
        logger.observe(message("planner", "too late"))
        assert logger.events_dropped == 11
    # the database was busy with the first rows, which it stores when it can; no more come after them
    await until(lambda: stored_seqs(database.engine, run_id) != [])
    assert stored_seqs(database.engine, run_id) in ([0], [0, 1], [0, 1, 2])
    assert logger.events_dropped == 11


async def test_open_calls_are_closed_in_the_trace(
    database: Database, run_id: UUID, start: Callable[..., TraceLogger]
) -> None:
    logger = start()
    logger.observe(calls(ToolCall("a", "read", "{}")))
    logger.close_open_calls(f"time was over for {CANARY}")
    await logger.close()
    with database.engine.connect() as connection:
        row = connection.execute(select(tables.events).where(tables.events.c.seq == 1)).one()
    assert (row.message_type, row.tool_call_id) == ("tool_error", "a")
    assert row.error == {"class": "interrupted", "type": "interrupted", "message": "time was over for ***"}


async def test_an_item_that_is_not_one_is_counted_and_nothing_more(
    database: Database, start: Callable[..., TraceLogger]
) -> None:
    logger = start()
    logger.observe(None)  # type: ignore[arg-type]
    logger.observe(StreamItem("TextMessage", "planner", text=None))  # type: ignore[arg-type]
    logger.model_call(None)  # type: ignore[arg-type]
    logger.observe(message("planner", "fine"))
    await logger.close()
    assert (logger.events_dropped, logger.calls_dropped) == (2, 1)


async def test_closing_an_empty_trace_twice_is_no_work(start: Callable[..., TraceLogger]) -> None:
    logger = start()
    assert await logger.flush()
    await logger.close()
    await logger.close()
    assert logger.events_dropped == 0


async def test_many_runs_store_the_same_texts_at_once(database: Database) -> None:
    bodies = [str(number) * 9000 for number in range(8)]
    runs = [new_run(database.engine) for _ in range(8)]
    loggers = [TraceLogger(database.engine, run, SystemClock(), Masker(), pace=QUICK) for run in runs]
    for turn in range(8):
        for shift, logger in enumerate(loggers):
            logger.observe(message("planner", bodies[(turn + shift) % 8]))
    await asyncio.gather(*(logger.close() for logger in loggers))
    assert [logger.events_dropped for logger in loggers] == [0] * 8
    assert all(stored_seqs(database.engine, run) == list(range(8)) for run in runs)


async def test_a_row_that_is_stored_already_is_no_loss(database: Database, run_id: UUID) -> None:
    for _ in range(2):
        logger = TraceLogger(database.engine, run_id, SystemClock(), Masker(), pace=QUICK)
        logger.observe(message("planner", "x" * 9000))
        await logger.close()
        assert logger.events_dropped == 0
    assert stored_seqs(database.engine, run_id) == [0]


async def test_hangul_arguments_are_stored_as_themselves(database: Database, start: Callable[..., TraceLogger]) -> None:
    logger = start()
    logger.observe(calls(ToolCall("a", "read", json.dumps({"path": "/자료/매출.xlsx"}))))
    await logger.close()
    with database.engine.connect() as connection:
        assert connection.scalar(text("select tool_args ->> 'path' from events")) == "/자료/매출.xlsx"
        assert connection.scalar(text("select tool_args::text from events")) == '{"path": "/자료/매출.xlsx"}'


async def test_runs_that_share_a_writer_share_its_transactions_and_not_their_poison(database: Database) -> None:
    with database.engine.begin() as connection:
        connection.execute(text("alter table events add constraint no_poison check (content not like 'poison%')"))
    runs = [new_run(database.engine) for _ in range(3)]
    writer = TraceWriter(database.engine, QUICK)
    loggers = [TraceLogger(database.engine, run, SystemClock(), Masker(), writer=writer) for run in runs]
    for number in range(5):
        for which, logger in enumerate(loggers):
            logger.observe(message("planner", "poison" if (which, number) == (1, 2) else "food"))
    await asyncio.gather(*(logger.close() for logger in loggers))
    assert [logger.events_dropped for logger in loggers] == [0, 1, 0]
    assert [stored_seqs(database.engine, run) for run in runs] == [[0, 1, 2, 3, 4], [0, 1, 3, 4], [0, 1, 2, 3, 4]]
    assert [dropped_on_the_row(database.engine, run) for run in runs] == [0, 1, 0]


async def test_a_run_that_floods_the_writer_does_not_keep_another_from_its_end(database: Database) -> None:
    flooding, short = new_run(database.engine), new_run(database.engine)
    writer = TraceWriter(database.engine, replace(QUICK, rows_at_once=50))
    flood = TraceLogger(database.engine, flooding, SystemClock(), Masker(), writer=writer)
    other = TraceLogger(database.engine, short, SystemClock(), Masker(), writer=writer)
    for number in range(5000):
        flood.observe(message("planner", str(number)))
    other.observe(message("planner", "short"))
    await other.close()
    assert stored_seqs(database.engine, short) == [0]
    assert len(stored_seqs(database.engine, flooding)) < 5000
    await flood.close()
    assert stored_seqs(database.engine, flooding) == list(range(5000))


async def test_a_writer_that_is_stuck_is_replaced_and_nothing_is_lost(
    database: Database, run_id: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_module, "_STUCK_AFTER_S", 0.0)
    stuck, usual = threading.Event(), writer_module.insert_traces

    def hanging(engine: Engine, traces: Any, *, timeout_s: float) -> None:
        if not stuck.is_set():
            stuck.set()
            time.sleep(3)
        usual(engine, traces, timeout_s=timeout_s)

    monkeypatch.setattr(writer_module, "insert_traces", hanging)
    logger = TraceLogger(database.engine, run_id, SystemClock(), Masker(), pace=replace(QUICK, statement_timeout_s=0.2))
    logger.observe(message("planner", "first"))
    assert not await logger.flush(timeout_s=0.5)
    logger.observe(message("planner", "second"))
    assert await logger.flush(timeout_s=2)
    assert stored_seqs(database.engine, run_id) == [0, 1]
    await logger.close()
    assert logger.events_dropped == 0
