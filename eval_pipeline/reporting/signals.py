"""Reads what rules, or a judge beside them, have seen in the traces of a batch. Seeing it belongs elsewhere."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import Connection

from eval_pipeline.db.sqlfiles import query
from eval_pipeline.ids import BatchTeam
from eval_pipeline.reporting.material import Examined, Signal

Signals = dict[UUID, tuple[Signal, ...]]


def signals_of(connection: Connection, batch_team: BatchTeam) -> Signals:
    """The failure signals of every live try that has any, the rules' and the surest first."""
    return _read(connection, "report_signals", batch_team)


def flags_of(connection: Connection, batch_team: BatchTeam) -> Signals:
    """The contamination flags of every live try that has any, the surest first."""
    return _read(connection, "report_flags", batch_team)


def examined(connection: Connection, batch_team: BatchTeam) -> Examined:
    """How many of the ended runs were looked at: a run without a signal may be clean, or not looked at yet."""
    return Examined(*connection.execute(query("report_examined"), _condition(batch_team)).one())


def _read(connection: Connection, name: str, batch_team: BatchTeam) -> Signals:
    found: dict[UUID, list[Signal]] = {}
    for row in connection.execute(query(name), _condition(batch_team)).mappings():
        found.setdefault(row["run_id"], []).append(
            Signal(row["mode"], row["confidence"], row["found_by"], tuple(row["seqs"]), row["detail"])
        )
    return {run_id: tuple(signals) for run_id, signals in found.items()}


def _condition(batch_team: BatchTeam) -> dict[str, str]:
    return {"batch_id": batch_team.batch, "team_id": batch_team.team}
