"""Which batch another one is held against when nobody has named one. Comparing the two is done elsewhere."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import Connection, select

from eval_pipeline.comparison.compare import TEAM_FIELDS
from eval_pipeline.db import tables
from eval_pipeline.ids import BatchTeam
from eval_pipeline.jsontypes import JsonValue


def default_baseline(connection: Connection, batch_team: BatchTeam) -> BatchTeam | None:
    """The parent team's latest batch whose contract is the same but for the team, and that has a completed run.

    ``None`` where the batch or the parent is not known, or there is no such batch.
    """
    batches, teams, runs = tables.batches, tables.teams, tables.runs
    ours = connection.execute(
        select(batches.c.contract, teams.c.parent_id)
        .join(teams, teams.c.team_id == batches.c.team_id)
        .where(batches.c.batch_id == batch_team.batch, batches.c.team_id == batch_team.team)
    ).one_or_none()
    if ours is None or ours.parent_id is None:
        return None
    has_verdicts = (
        select(runs.c.run_id)
        .where(runs.c.batch_id == batches.c.batch_id, runs.c.team_id == batches.c.team_id)
        .where(runs.c.live, runs.c.status == "completed")
        .exists()
    )
    candidates = connection.execute(
        select(batches.c.batch_id, batches.c.contract)
        .where(batches.c.team_id == ours.parent_id, has_verdicts)
        .order_by(batches.c.created_at.desc(), batches.c.batch_id.desc())
    )
    wanted = _but_for_the_team(ours.contract)
    for batch_id, contract in candidates:
        if _but_for_the_team(contract) == wanted:
            return BatchTeam(batch_id, ours.parent_id)
    return None


def _but_for_the_team(contract: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    return {name: value for name, value in contract.items() if name not in TEAM_FIELDS}
