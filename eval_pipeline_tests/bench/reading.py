"""What a summary and a report of one batch cost beside a growing history, and with the size of the batch.

The batch is the first of the history and never changes. What was before, each summary renewed whole whenever one batch
had changed, is measured in the same database: a materialized view over the same definition.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from sqlalchemy import Engine, text

from eval_pipeline.db.freshness import stale_batches
from eval_pipeline.db.views import SUMMARY_VIEWS, refresh, refresh_all
from eval_pipeline.ids import BatchTeam
from eval_pipeline.reporting.publish import publish
from eval_pipeline.reporting.reading import read_material
from eval_pipeline.settings import load_settings
from eval_pipeline_tests.bench.figures import Figure, Size
from eval_pipeline_tests.bench.filling import ATTEMPTS, RUNS, TASKS, TEAMS, batch_teams, plant, plant_history
from eval_pipeline_tests.bench.places import bench_home, migrated

TITLE = "(d) summaries and reports beside a history"
# of a team that has a parent: its report has a comparison, and so reads two batches
BATCH = BatchTeam(batch_teams("history", 1)[0].batch, TEAMS[1])
_HISTORIES: dict[Size, tuple[int, ...]] = {"full": (10_000, 100_000, 1_000_000), "small": (8_000, 16_000)}
_LARGER: dict[Size, tuple[int, ...]] = {"full": (5, 25), "small": (2,)}
"""How many times the cells of the batch a larger one has."""
_REPEATS: dict[Size, int] = {"full": 9, "small": 2}
_MOST = 2.0

# the names cannot be bound parameters, so each statement is written out
_WHOLE = {
    "mv_batch_summary": (
        "create materialized view whole as select * from v_summary_per_level_and_total where level is not null",
        "create unique index on whole (batch_id, team_id, level)",
    ),
    "mv_passk": (
        "create materialized view whole as select * from v_passk_per_level_and_total where level is not null",
        "create unique index on whole (batch_id, team_id, level, k)",
    ),
    "mv_tool_summary": (
        "create materialized view whole as select * from v_tool_totals",
        "create unique index on whole (batch_id, team_id, tool_name)",
    ),
}


def measure(size: Size) -> Iterator[Figure]:
    """Each reader at each size of the history; see :data:`TITLE`."""
    repeats = _REPEATS[size]
    with bench_home(), tempfile.TemporaryDirectory() as reports:
        database = migrated()
        least, there = _HISTORIES[size][0], 0
        at_least: dict[str, float] = {}
        for events in _HISTORIES[size]:
            there = plant_history(database, events, there=there)
            refresh_all(database)
            with database.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                # what autovacuum does of itself within a minute, of a history that did not come at once even sooner
                connection.execute(text("vacuum"))
            for what, work in _readers(database, Path(reports)).items():
                took_ms = _least_ms(work, repeats)
                if events == least:
                    at_least[what] = took_ms
                    yield Figure(f"{what}, {events:,} events", took_ms, "ms")
                    continue
                ratio = took_ms / at_least[what]
                beside = f"at {least:,}"
                most = f"at most {_MOST:g}"
                yield Figure(f"{what}, {events:,} events", took_ms, "ms", beside, ratio, most, ratio <= _MOST)
            yield from _whole(database, events)
        yield from _larger(database, size, repeats)
        database.dispose()


def _readers(database: Engine, reports: Path) -> dict[str, Callable[[], object]]:
    settings = load_settings()
    refreshes = {f"{view} of one batch": partial(refresh, database, view, [BATCH]) for view in SUMMARY_VIEWS}
    return {
        **refreshes,
        "which batches are stale": partial(_stale, database),
        "material of a report": partial(read_material, database, BATCH),
        "report": partial(publish, database, settings, BATCH, reports),
    }


def _stale(database: Engine) -> None:
    stale_batches(database)


def _least_ms(work: Callable[[], object], repeats: int) -> float:
    """The least of several times: what else the machine does only ever adds to it."""
    work()
    seconds = []
    for _ in range(repeats):
        begun_s = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - begun_s)
    return 1000 * min(seconds)


def _whole(database: Engine, events: int) -> Iterator[Figure]:
    with database.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        for view, (made, indexed) in _WHOLE.items():
            connection.execute(text(made))
            connection.execute(text(indexed))
            again = partial(connection.execute, text("refresh materialized view concurrently whole"))
            yield Figure(f"as it was: {view} renewed whole, {events:,} events", _least_ms(again, 3), "ms")
            connection.execute(text("drop materialized view whole"))


def _larger(database: Engine, size: Size, repeats: int) -> Iterator[Figure]:
    """All three summaries of one batch, with the cells of the batch."""
    usual_ms = _least_ms(partial(_all_three, database, BATCH), repeats)
    yield Figure(f"all summaries of a batch of {RUNS} runs", usual_ms, "ms")
    for times in _LARGER[size]:
        larger = BatchTeam(f"larger-{times}", TEAMS[0])
        plant(database, [larger], tasks=TASKS * times, attempts=ATTEMPTS)
        took_ms = _least_ms(partial(_all_three, database, larger), max(3, repeats // 3))
        ratio = took_ms / usual_ms / times
        what = f"all summaries of a batch of {RUNS * times:,} runs"
        yield Figure(what, took_ms, "ms", f"{times} batches of {RUNS}", ratio, f"at most {_MOST:g}", ratio <= _MOST)


def _all_three(database: Engine, batch_team: BatchTeam) -> None:
    for view in SUMMARY_VIEWS:
        refresh(database, view, [batch_team])
