"""Which batches have runs that are newer than their summaries. The answer is all that belongs here."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Engine

from eval_pipeline.db.sqlfiles import query
from eval_pipeline.ids import BatchTeam


@dataclass(frozen=True, slots=True)
class StaleBatch:
    """A batch with ended tries whose summaries have been overtaken by what was committed since.

    ``newest`` is when its last try ended, ``ended`` how many have in all; ``under_way``: others are running. ``latest``
    grows with whatever makes its summaries stale.
    """

    suite: str
    batch_team: BatchTeam
    newest: datetime
    ended: int
    under_way: bool
    latest: int


def stale_batches(engine: Engine) -> list[StaleBatch]:
    """Batches to refresh, the longest waiting first."""
    with engine.connect() as connection:
        rows = connection.execute(query("stale_batches")).all()
    return [
        StaleBatch(row.suite, BatchTeam(row.batch_id, row.team_id), row.newest, row.ended, row.under_way, row.latest)
        for row in rows
    ]
