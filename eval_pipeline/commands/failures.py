"""``failures``: why the runs of a batch failed, by mode, with the events that show it."""

from __future__ import annotations

from sqlalchemy import column, select, table

from eval_pipeline import console
from eval_pipeline.commands.context import ready
from eval_pipeline.comparison.outcomes import outcomes
from eval_pipeline.failures.rules import VERSION
from eval_pipeline.failures.store import classify_batch
from eval_pipeline.ids import BatchTeam

_COLUMNS = ("task_id", "attempt", "run_id", "success", "error_class", "mode", "confidence", "seqs", "detail")


def show_failures(batch_team: BatchTeam, mode: str | None, *, again: bool, as_json: bool) -> None:
    """Compute what is missing (or, with ``again``, everything) and print it.

    Raises:
        IdError: there is no such batch.
    """
    _, database = ready()
    view = table("v_failure_signals", *(column(name) for name in (*_COLUMNS, "batch_id", "team_id", "version")))
    query = (
        select(*(view.c[name] for name in _COLUMNS))
        .where(view.c.batch_id == batch_team.batch, view.c.team_id == batch_team.team, view.c.version == VERSION)
        .order_by(view.c.mode, view.c.task_id, view.c.attempt)
    )
    if mode is not None:
        query = query.where(view.c.mode == mode)
    with database.begin() as connection:
        known = outcomes(connection, batch_team)
        counts = classify_batch(connection, batch_team, again=again)
        rows = connection.execute(query).all()
    if as_json:
        console.print_json(
            {
                "batch": batch_team.key,
                "version": VERSION,
                "modes": dict(counts.most_common()),
                "signals": [dict(zip(_COLUMNS, row, strict=True)) for row in rows],
            }
        )
        return
    scripted = " (scripted model)" if known.scripted else ""
    console.table(
        f"Signals in {batch_team.key}{scripted}",
        ("mode", "runs"),
        [(name, str(count)) for name, count in counts.most_common()],
    )
    for row in rows:
        if not row.success:
            events = ", ".join(map(str, row.seqs[:8]))
            console.say(f"{row.mode} ({row.confidence})  {row.task_id}#{row.attempt}: {row.detail} [events {events}]")
