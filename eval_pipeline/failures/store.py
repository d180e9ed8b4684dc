"""Computes the signals of stored runs and keeps them, under the rules' version. No model is called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import Connection, delete, insert, select, update

from eval_pipeline.db import tables
from eval_pipeline.db.examinations import examined, unexamined
from eval_pipeline.failures.rules import VERSION, signals, stage
from eval_pipeline.failures.trace import traces
from eval_pipeline.ids import BatchTeam

_AT_ONCE = 200
_BY_RULES = "rules"


def classify_batch(connection: Connection, batch_team: BatchTeam, *, again: bool = False) -> Counter[str]:
    """Compute the signals of every ended live try of ``batch_team`` that this version has not looked at.

    ``again`` computes all of them anew; so does a changed verdict for its run. Returns how often each mode was found,
    now or before.
    """
    runs, stored = tables.runs, tables.failure_signals
    run_ids = unexamined(connection, batch_team, _BY_RULES, VERSION, again=again)
    for begin in range(0, len(run_ids), _AT_ONCE):
        _classify(connection, run_ids[begin : begin + _AT_ONCE])
    examined(connection, run_ids, _BY_RULES, VERSION)
    modes = connection.execute(
        select(stored.c.mode)
        .join(runs, runs.c.run_id == stored.c.run_id)
        .where(runs.c.batch_id == batch_team.batch, runs.c.team_id == batch_team.team, runs.c.live)
        .where(stored.c.found_by == _BY_RULES, stored.c.version == VERSION)
    ).scalars()
    return Counter(modes)


def _classify(connection: Connection, run_ids: Sequence[UUID]) -> None:
    stored, runs = tables.failure_signals, tables.runs
    connection.execute(
        delete(stored).where(stored.c.run_id.in_(run_ids), stored.c.found_by == _BY_RULES, stored.c.version == VERSION)
    )
    rows = []
    for trace in traces(connection, run_ids):
        found = signals(trace)
        rows += [
            {
                "run_id": trace.run_id,
                "mode": one.mode,
                "found_by": _BY_RULES,
                "version": VERSION,
                "confidence": one.confidence,
                "seqs": list(one.seqs),
                "detail": one.detail[:500],
            }
            for one in found
        ]
        connection.execute(
            update(runs).where(runs.c.run_id == trace.run_id).values(failure_stage=stage(found) or NO_SIGNAL)
        )
    if rows:
        connection.execute(insert(stored), rows)


NO_SIGNAL = "none"
"""The stage of a run that the rules have looked at and in which they saw nothing."""
