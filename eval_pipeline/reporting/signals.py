"""Reads the failure signals of a batch, where rules or a judge have stored some. Finding them belongs elsewhere."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import Connection

from eval_pipeline.db.sqlfiles import query
from eval_pipeline.ids import BatchTeam
from eval_pipeline.reporting.material import Signal


def signals_of(connection: Connection, batch_team: BatchTeam) -> dict[UUID, tuple[Signal, ...]]:
    """The signals of every live try of ``batch_team`` that has any, the surest first."""
    rows = connection.execute(
        query("report_signals"), {"batch_id": batch_team.batch, "team_id": batch_team.team}
    ).mappings()
    found: dict[UUID, list[Signal]] = {}
    for row in rows:
        found.setdefault(row["run_id"], []).append(
            Signal(row["mode"], row["confidence"], row["found_by"], tuple(row["seqs"]), row["detail"])
        )
    return {run_id: tuple(signals) for run_id, signals in found.items()}
