"""The figures of every ``batch@team`` as one row each, straight from the runs and therefore never stale."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields

from sqlalchemy import Connection, column, select, table

from eval_pipeline.ids import BatchTeam
from eval_pipeline.jsontypes import JsonObject


@dataclass(frozen=True, slots=True)
class Totals:
    """A row of ``v_batch_totals``: runs are counted, tokens summed over all tries, rates are shares from 0 to 1."""

    batch_team: BatchTeam
    suite: str
    scripted: bool
    planned: int
    runs: int
    completed: int
    crashed: int
    running: int
    successes: int
    pass_at_1_completed: float | None
    pass_at_1_planned: float | None
    format_invalid_rate: float | None
    loop_rate: float | None
    all_tokens: int
    tokens_per_success: float | None
    cost: float | None
    p50_latency_ms: float | None
    mean_turns: float | None

    def as_json(self) -> JsonObject:
        """The figures under their names, the condition as ``batch_id`` and ``team_id``."""
        figures = asdict(self)
        del figures["batch_team"]
        return {"batch_id": self.batch_team.batch, "team_id": self.batch_team.team, **figures}


_FIGURES = [field.name for field in fields(Totals) if field.name != "batch_team"]
_WHOLE = frozenset({"planned", "runs", "completed", "crashed", "running", "successes", "all_tokens"})
_TEXTS = frozenset({"suite", "scripted"})


def batch_totals(connection: Connection, batch: str | None = None) -> list[Totals]:
    """The totals of every ``batch@team``, or of one batch's, in the order in which they began."""
    view = table("v_batch_totals", *(column(name) for name in ("batch_id", "team_id", "created_at", *_FIGURES)))
    query = select(view).order_by(view.c.created_at, view.c.team_id)
    if batch is not None:
        query = query.where(view.c.batch_id == batch)
    totals = []
    for row in connection.execute(query).mappings():
        figures = {name: _figure(name, row[name]) for name in _FIGURES}
        totals.append(Totals(BatchTeam(row["batch_id"], row["team_id"]), **figures))  # type: ignore[arg-type]
    return totals


def _figure(name: str, value: object) -> object:
    if name in _TEXTS or value is None:
        return 0 if value is None and name in _WHOLE else value
    return int(value) if name in _WHOLE else float(value)  # type: ignore[call-overload, arg-type]
