"""What storing traces costs: rows a second through the product, its share of a run's CPU, and the bytes of a run.

Every run has 20 events and 12 model calls. All figures of one measurement come from one server, one after the other, so
that their ratios can be compared; CPU is that of this process and of the server's together.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from uuid import UUID

import psutil
from sqlalchemy import Engine, text

from eval_pipeline.clock import SystemClock
from eval_pipeline.db.engine import engine
from eval_pipeline.execution.launch import open_launch
from eval_pipeline.execution.run_many import run_cells
from eval_pipeline.home import pg_data_dir
from eval_pipeline.ids import BatchTeam, TaskAttempt
from eval_pipeline.settings import load_settings
from eval_pipeline.suites import load_suites, load_tasks
from eval_pipeline.teams.registry import load_teams
from eval_pipeline.tracing.calls import call_row
from eval_pipeline.tracing.hygiene import TextHygiene
from eval_pipeline.tracing.inserts import insert_traces
from eval_pipeline.tracing.items import ModelCall, StreamItem, ToolCall, ToolOutcome, Usage
from eval_pipeline.tracing.logger import TraceLogger
from eval_pipeline.tracing.masking import Masker
from eval_pipeline.tracing.records import RecordBuilder
from eval_pipeline.tracing.rows import CallRow, EventRow
from eval_pipeline_tests.bench.figures import Figure, Size
from eval_pipeline_tests.bench.places import TASKS, bench_home, grid, migrated

TITLE = "(c) storing traces"
EVENTS, CALLS = 20, 12
"""Rows of one run."""
_ROUNDS = 10
_TEAM = "v4-prompt-fix"
_WORDS = ("the sum of", "sales", "rows", "column", "file", "answer", "critic", "plan", "table", "매출", "합계", "17.50")


@dataclass(frozen=True, slots=True)
class _Extent:
    """How much is done: runs per measurement, scripted runs, and rows that are there already for the last one."""

    runs: int
    scripted: int
    history: int


_EXTENTS: dict[Size, _Extent] = {"full": _Extent(2_000, 40, 1_000_000), "small": _Extent(60, 4, 2_000)}


@dataclass(frozen=True, slots=True)
class _Spent:
    """Seconds of the wall clock, and of CPU in this process and in the server."""

    wall_s: float
    cpu_s: float


class _Meter:
    """Measures work. The backends of a pool live on, so that what they spend is still there to be read afterwards."""

    def __init__(self) -> None:
        pid = int((pg_data_dir() / "postmaster.pid").read_text().split("\n", 1)[0])
        self._server = psutil.Process(pid)

    def spent(self, work: Callable[[], object]) -> _Spent:
        cpu_s, begun_s = self._cpu_s(), time.perf_counter()
        work()
        return _Spent(time.perf_counter() - begun_s, self._cpu_s() - cpu_s)

    def per_run(self, runs: Sequence[UUID], work: Callable[[Sequence[UUID]], object]) -> _Spent:
        """What ``work`` costs for one of ``runs``: of several rounds the fastest, since others use the machine too."""
        at_once = len(runs) // _ROUNDS
        work(runs[: at_once // 2])
        rounds = [
            self.spent(partial(work, runs[begin : begin + at_once])) for begin in range(at_once, len(runs), at_once)
        ]
        wall_s, cpu_s = (min(getattr(one, name) for one in rounds) for name in ("wall_s", "cpu_s"))
        return _Spent(wall_s / at_once, cpu_s / at_once)

    def _cpu_s(self) -> float:
        backends = [
            process for process in self._server.children() if "postgres: postgres" in " ".join(process.cmdline())
        ]
        times = [psutil.Process().cpu_times(), *(process.cpu_times() for process in backends)]
        return sum(one.user + one.system for one in times)


def measure(size: Size) -> Iterator[Figure]:
    """Insert rates, shares and bytes; see :data:`TITLE`."""
    extent = _EXTENTS[size]
    with bench_home(suites=grid(len(TASKS), extent.scripted)) as home:
        database = migrated()
        meter = _Meter()
        small = _rows(40)
        copied = meter.per_run(_plant_runs(database, "copies", extent.runs), lambda runs: _copy(database, runs, small))
        inserted = meter.per_run(
            _plant_runs(database, "inserts", extent.runs), lambda runs: _insert(database, runs, small)
        )
        rate = (EVENTS + CALLS) / inserted.wall_s
        yield Figure("insert_traces, empty tables", rate, "rows/s", "COPY", copied.wall_s / inserted.wall_s)
        yield Figure("insert_traces per run", 1000 * inserted.wall_s, "ms")
        cpu_ms = 1000 * inserted.cpu_s
        yield Figure("insert_traces per run, CPU", cpu_ms, "ms")
        logged = _plant_runs(database, "logged", extent.runs // 10)
        spent = meter.spent(lambda: asyncio.run(_log(database, logged)))
        yield Figure("TraceLogger per run, masking and waiting included, CPU", 1000 * spent.cpu_s / len(logged), "ms")
        scripted, rows = _scripted(meter, extent.scripted, home)
        share = cpu_ms / (EVENTS + CALLS) * rows / (1000 * scripted.cpu_s)
        yield Figure(
            "insert_traces for the rows of a scripted run, CPU",
            cpu_ms / (EVENTS + CALLS) * rows,
            "ms",
            "the whole run",
            share,
            "at most 0.1",
            share <= 0.1,
        )
        yield from _bytes(database, extent)
        _fill(database, extent.history)
        later = meter.per_run(_plant_runs(database, "later", extent.runs), lambda runs: _insert(database, runs, small))
        rate_after = (EVENTS + CALLS) / later.wall_s
        yield Figure(
            f"insert_traces beside {extent.history:,} events", rate_after, "rows/s", "empty", rate_after / rate
        )
        database.dispose()


def _words(count: int, seed: int) -> str:
    choice = random.Random(seed)
    return " ".join(choice.choice(_WORDS) + str(choice.randrange(1000)) for _ in range(count))


def _stream(words: int, seed: int) -> Iterator[StreamItem]:
    """What a team's stream is in a run of 20 events; every text has about so many words."""
    usage = Usage(900, 80)
    yield StreamItem("TextMessage", "user", text=_words(words, seed))
    for turn in range(3):
        at = seed + 100 * turn
        yield _chosen("planner", "NEEDS_PLANNING")
        yield StreamItem("TextMessage", "planner", text=_words(words, at + 1), usage=usage)
        yield _chosen("executor", "NEEDS_EXECUTION")
        call = ToolCall(f"call_{turn}", "python_exec", '{"code": "print(89706)"}')
        yield StreamItem("ToolCallRequestEvent", "executor", calls=(call,), usage=usage)
        result = ToolOutcome(call.call_id, call.name, _words(words, at + 2), False, latency_ms=40)
        yield StreamItem("ToolCallExecutionEvent", "executor", outcomes=(result,))
    yield _chosen("critic", "NEEDS_VERIFICATION")
    yield StreamItem("TextMessage", "critic", text=f"{_words(words, seed + 3)}\nAPPROVE", usage=usage)
    yield _chosen("planner", "NEEDS_PLANNING")
    yield StreamItem("TaskResult", stop_reason="the critic approved", terminated_by="approve")


def _chosen(name: str, reason: str) -> StreamItem:
    said = f'{{"next": "{name}", "reason_code": "{reason}", "summary": "it is its turn"}}'
    return StreamItem("SelectorEvent", "SelectorGroupChatManager", text=said, chosen=name)


def _call() -> ModelCall:
    return ModelCall("planner", "turn", 1, datetime.now(UTC), 850, "ok", "stop", Usage(900, 80), 200, model="made-up")


def _rows(words: int, seed: int = 0) -> list[EventRow | CallRow]:
    """The rows of one run, made once: making them is no part of storing them."""
    masker = Masker(frozenset())
    builder = RecordBuilder(SystemClock(), masker)
    rows: list[EventRow | CallRow] = [row for item in _stream(words, seed) for row in builder.rows(item)]
    assert len(rows) == EVENTS, len(rows)
    return rows + [call_row(_call(), number, TextHygiene(masker)) for number in range(CALLS)]


def _plant_runs(database: Engine, batch: str, count: int) -> list[UUID]:
    """New runs that are under way, of a batch of their own."""
    with database.begin() as connection:
        for statement in _PLANT:
            connection.execute(statement, {"batch": batch, "count": count})
        found = connection.scalars(text("select run_id from runs where batch_id = :batch"), {"batch": batch})
        return list(found)


_PLANT = tuple(
    text(statement)
    for statement in (
        """insert into teams (team_id, answers, prompt_bundle_hash, contract_hash, spec)
        values ('bench', 'line', repeat('p', 64), repeat('c', 64), '{}') on conflict do nothing""",
        """insert into tasks (task_id, content_hash, benchmark, level, question)
        values ('bench', 'h1', 'gaia', 1, 'How many?') on conflict do nothing""",
        """insert into batches (batch_id, team_id, suite, benchmark, suite_hash, contract, contract_hash, provider,
        model, scripted)
        values (:batch, 'bench', 'bench', 'gaia', repeat('s', 64), '{}', repeat('k', 64), 'scripted', 'none', true)""",
        """insert into plan (batch_id, team_id, task_id, attempt, task_hash)
        select :batch, 'bench', 'bench', 1 + (number - 1) / 200, 'h1' from generate_series(1, :count) as number
        on conflict do nothing""",
        # superseded tries, of which a cell may have any number
        """insert into runs (batch_id, team_id, task_id, attempt, try_no, live, task_hash, level, status, error_class,
        finished_at)
        select :batch, 'bench', 'bench', 1 + (number - 1) / 200, 1 + (number - 1) % 200, false, 'h1', 1, 'crashed',
        'connection', now() from generate_series(1, :count) as number""",
    )
)


def _insert(database: Engine, runs: Sequence[UUID], rows: Sequence[EventRow | CallRow]) -> None:
    for run_id in runs:
        insert_traces(database, [(run_id, rows)], timeout_s=60)


def _copy(database: Engine, runs: Sequence[UUID], rows: Sequence[EventRow | CallRow]) -> None:
    """The same rows by COPY, a transaction per run: what the server can take, whoever writes."""
    raw = database.raw_connection()
    try:
        cursor = raw.cursor()
        for run_id in runs:
            with cursor.copy("copy events (run_id, seq, message_type, source, target, content, reason_code, tool_name, "
                             "tool_call_id) from stdin") as copy:  # fmt: skip
                for row in rows:
                    if isinstance(row, EventRow):
                        named = (row.reason_code, row.tool_name, row.tool_call_id)
                        copy.write_row((run_id, row.seq, row.message_type, row.source, row.target, row.content, *named))
            with cursor.copy("copy model_calls (run_id, call_no, role, kind, latency_ms, outcome) from stdin") as copy:
                for row in rows:
                    if isinstance(row, CallRow):
                        copy.write_row((run_id, row.call_no, row.role, row.kind, row.latency_ms, row.outcome))
            raw.commit()
    finally:
        raw.close()


async def _log(database: Engine, runs: Sequence[UUID]) -> None:
    masker = Masker(frozenset())
    for run_id in runs:
        logger = TraceLogger(database, run_id, SystemClock(), masker)
        for item in _stream(40, 0):
            logger.observe(item)
        for _ in range(CALLS):
            logger.model_call(_call())
        await logger.close()
        assert logger.events_dropped == 0


def _scripted(meter: _Meter, attempts: int, home: Path) -> tuple[_Spent, float]:
    """What a scripted run of the product costs, without Dagster, and how many rows it leaves on average."""
    settings = load_settings()
    database = engine(settings)
    loaded = load_tasks(load_suites(settings)["grid"], settings)
    teams = load_teams(settings.teams_dir)
    batch_team = BatchTeam("scripted", _TEAM)
    launch = open_launch(settings, database, batch_team, loaded, teams)

    def run(cells: list[TaskAttempt]) -> None:
        result = asyncio.run(run_cells(launch, cells, lambda _: None, lambda _: None))
        assert not result.unfinished, result.line()

    first, *others = [TaskAttempt(task, attempt) for attempt in range(1, attempts + 1) for task in TASKS]
    run([first])
    spent = meter.spent(lambda: run(others))
    with database.connect() as connection:
        rows = connection.execute(_ROWS_OF_SCRIPTED).scalar_one()
    return _Spent(spent.wall_s / len(others), spent.cpu_s / len(others)), float(rows) / (1 + len(others))


_ROWS_OF_SCRIPTED = text(
    "select (select count(*) from events join runs using (run_id) where batch_id = 'scripted') "
    "+ (select count(*) from model_calls join runs using (run_id) where batch_id = 'scripted')"
)


def _bytes(database: Engine, extent: _Extent) -> Iterator[Figure]:
    """What one run adds to the tables, their TOAST and their indexes; the texts of every run are its own."""
    count = min(500, extent.runs)
    for name, words in (("short texts", 40), ("texts cut at 2,048 and 8,192", 1_200)):
        runs = _plant_runs(database, f"bytes {words}", count)
        before = _sizes(database)
        for number, run_id in enumerate(runs):
            insert_traces(database, [(run_id, _rows(words, 1_000 * number))], timeout_s=60)
        after = _sizes(database)
        for table, size in after.items():
            yield Figure(f"{table} per run, {name}", (size - before[table]) / count / 1024, "kB")


def _sizes(database: Engine) -> dict[str, int]:
    with database.connect() as connection:
        return {str(name): int(size) for name, size in connection.execute(_SIZES)}


_SIZES = text(
    "select name, coalesce("
    "(select sum(pg_total_relation_size(relid)) from pg_partition_tree(to_regclass(name)) where isleaf), "
    "pg_total_relation_size(to_regclass(name))) "
    "from unnest(array['events', 'model_calls', 'texts']) as name"
)


def _fill(database: Engine, events: int) -> None:
    """As many events of earlier runs as asked for, all of the present month."""
    runs = _plant_runs(database, "history", max(1, events // EVENTS))
    with database.begin() as connection:
        connection.execute(
            text(
                "insert into events (run_id, seq, message_type, source, content, tool_name, tool_call_id) "
                "select run_id, seq, 'tool_call', 'executor', :content, 'python_exec', 'call_' || seq "
                "from unnest(cast(:runs as uuid[])) as run_id, generate_series(0, :last) as seq"
            ),
            {"content": _words(60, 1), "runs": runs, "last": EVENTS - 1},
        )
