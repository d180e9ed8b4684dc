"""Which batches have runs that are newer than their summaries. The answer is all that belongs here."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Engine

from eval_pipeline.db.sqlfiles import query
from eval_pipeline.ids import BatchTeam


@dataclass(frozen=True, slots=True)
class StaleBatch:
    """A batch whose newest ended run, at ``newest``, is not in its summary yet."""

    suite: str
    batch_team: BatchTeam
    newest: datetime


def stale_batches(engine: Engine) -> list[StaleBatch]:
    """Batches to refresh, the longest waiting first."""
    with engine.connect() as connection:
        rows = connection.execute(query("stale_batches")).all()
    return [StaleBatch(row.suite, BatchTeam(row.batch_id, row.team_id), row.newest) for row in rows]
