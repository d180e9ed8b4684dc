"""Plants batches of many runs, events and model calls in a database, fast: the history that reading is measured on.

A batch under a team has :data:`RUNS` cells. A run that completes leaves :data:`EVENTS` events and 12 model calls, as a
small run of a real team does; some crash on the way, one in twenty was started again, and what tools are asked, return
and complain about differs. Every constraint holds and every trigger fires. What looks random is a hash of the cell, so
that the same names give the same rows. The statements are in ``filling_sql/``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import Connection, Engine, text

from eval_pipeline.ids import BatchTeam

TEAMS = ("bench-a", "bench-b", "bench-c", "bench-d")
"""Each but the first is a child of the one before."""
SUITE = "bench"
TASKS, ATTEMPTS = 100, 2
RUNS = TASKS * ATTEMPTS
EVENTS = 20
_AT_ONCE = 40
"""Batches that one transaction plants."""
_BENCHMARKS = ("gaia", "gaia", "analysis", "research", "cppx")
_SQL = Path(__file__).parent / "filling_sql"
_ROWS = (
    "runs",
    "events",
    "tool_errors",
    "model_calls",
    "run_metrics",
    "research_grounding",
    "cppx_grounding",
    "failure_signals",
    "examinations",
    "contamination_flags",
)


def batch_teams(prefix: str, count: int) -> list[BatchTeam]:
    """``count`` names, under the teams in turn: four of them share a batch id."""
    return [BatchTeam(f"{prefix}-{number // len(TEAMS):05}", TEAMS[number % len(TEAMS)]) for number in range(count)]


def plant(
    engine: Engine, wanted: Sequence[BatchTeam], *, tasks: int = TASKS, attempts: int = ATTEMPTS, begun: int = 0
) -> None:
    """Plant these batches, each with ``tasks`` × ``attempts`` cells, and let PostgreSQL's planner know them.

    ``begun`` counts the batches that were planted before: each begins a day after the one before it.
    """
    with engine.begin() as connection:
        if connection.scalar(text("select to_regprocedure('make_trace_month(date)')")) is not None:
            _run(connection, "months", begun=begun, count=len(wanted))
        for position, team_id in enumerate(TEAMS):
            _run(connection, "teams", team_id=team_id, parent_id=TEAMS[position - 1] if position else None)
        _run(connection, "tasks", tasks=tasks)
        _run(connection, "texts")
    for first in range(0, len(wanted), _AT_ONCE):
        chunk = wanted[first : first + _AT_ONCE]
        with engine.begin() as connection:
            for number, one in enumerate(chunk, start=begun + first):
                benchmark = _BENCHMARKS[number // len(TEAMS) % len(_BENCHMARKS)]
                named = {"batch_id": one.batch, "team_id": one.team, "suite": SUITE, "benchmark": benchmark}
                _run(connection, "batches", number=number, **named)
            _run(connection, "planting", batch_ids=[one.batch for one in chunk], team_ids=[one.team for one in chunk])
            _run(connection, "plan", tasks=tasks, attempts=attempts)
            for name in _ROWS:
                _run(connection, name)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("vacuum analyze"))


def plant_history(engine: Engine, events: int, *, there: int = 0) -> int:
    """Plant batches until there are about so many events, where ``there`` batches of the history are planted already.

    Returns how many there are then.
    """
    enough = math.ceil(events / (RUNS * EVENTS))
    plant(engine, batch_teams("history", enough)[there:], begun=there)
    return max(enough, there)


def _run(connection: Connection, name: str, **bound: object) -> None:
    connection.execute(text((_SQL / f"{name}.sql").read_text(encoding="utf-8")), bound)
