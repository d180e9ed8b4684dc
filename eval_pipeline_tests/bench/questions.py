"""How long the everyday questions take, over a whole history and for one batch, beside reading a log of Inspect.

An Inspect log is read whole before anything can be asked of it, so one such reading, with one pass over its events, is
what each question is held against.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import Connection

from eval_pipeline.db.questions import About, Question, answer, questions
from eval_pipeline_tests.bench.figures import Figure, Size
from eval_pipeline_tests.bench.filling import batch_teams, plant_history
from eval_pipeline_tests.bench.measuring import inspect_python, last_json
from eval_pipeline_tests.bench.places import bench_home, migrated

TITLE = "(i) everyday questions about events"
_HISTORIES: dict[Size, tuple[int, int]] = {"full": (30_000, 1_000_000), "small": (8_000, 16_000)}
_REPEATS: dict[Size, int] = {"full": 5, "small": 2}
_MOST_MS = 100
_SIDE = Path(__file__).parent / "inspect_side"
_INSPECT_EVENTS = 25
"""Events that a sample leaves in Inspect's log."""


def measure(size: Size) -> Iterator[Figure]:
    """Each question at both sizes of the history; see :data:`TITLE`."""
    few, many = _HISTORIES[size]
    # the first look at the environment: a home for a benchmark clears it
    read_ms = _inspect_ms(inspect_python() if size == "full" else None, few)
    if read_ms is not None:
        yield Figure(f"Inspect: reading a log of {few:,} events and one pass over them", read_ms, "ms")
    (batch_team, *_) = batch_teams("history", 1)
    one_batch = About(batch_team.batch, batch_team.team)
    with bench_home():
        database = migrated()
        there = plant_history(database, few)
        with database.connect() as connection:
            for one in questions():
                took_ms = _median_ms(connection, one, About(), _REPEATS[size])
                ratio = took_ms / read_ms if read_ms else None
                what = f"{one.name}, all of {few:,} events"
                beside = "Inspect" if read_ms else ""
                most = f"at most {_MOST_MS} ms"
                yield Figure(what, took_ms, "ms", beside, ratio, most, took_ms <= _MOST_MS)
        plant_history(database, many, there=there)
        with database.connect() as connection:
            for one in questions():
                narrow_ms = _median_ms(connection, one, one_batch, _REPEATS[size])
                yield Figure(f"{one.name}, one batch of {many:,} events", narrow_ms, "ms")
                yield Figure(f"{one.name}, all of {many:,} events", _median_ms(connection, one, About(), 3), "ms")
        database.dispose()


def _median_ms(connection: Connection, one: Question, about: About, repeats: int) -> float:
    answer(connection, one, about)
    seconds = []
    for _ in range(repeats):
        begun_s = time.perf_counter()
        answer(connection, one, about)
        seconds.append(time.perf_counter() - begun_s)
    connection.rollback()
    return 1000 * statistics.median(seconds)


def _inspect_ms(python: str | None, events: int) -> float | None:
    if python is None:
        return None
    with tempfile.TemporaryDirectory() as logs:
        last_json([python, str(_SIDE / "overhead.py"), str(events // _INSPECT_EVENTS), "0", "10", logs])
        read = last_json([python, str(_SIDE / "reading.py"), logs])
    if abs(read["events"] - events) > events / 10:
        raise RuntimeError(f"Inspect's log has {read['events']} events, not {events}")
    return 1000 * (read["read_s"] + read["pass_s"])
