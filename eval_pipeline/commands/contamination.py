"""``contamination``: which runs of a batch touched an answer key, a foreign file or a public copy."""

from __future__ import annotations

from sqlalchemy import column, select, table

from eval_pipeline import console
from eval_pipeline.commands.context import ready
from eval_pipeline.comparison.outcomes import outcomes
from eval_pipeline.contamination.rules import VERSION
from eval_pipeline.contamination.store import flag_batch, flagged_runs, places
from eval_pipeline.ids import BatchTeam

_COLUMNS = ("task_id", "attempt", "run_id", "success", "rule", "confidence", "seqs", "detail")
_SHOWN_EVENTS = 8


def show_contamination(batch_team: BatchTeam, *, again: bool, as_json: bool) -> None:
    """Look at what has not been looked at (or, with ``again``, at everything) and print the flags.

    Raises:
        IdError: there is no such batch.
    """
    settings, database = ready()
    view = table("v_contamination", *(column(name) for name in (*_COLUMNS, "batch_id", "team_id")))
    query = (
        select(*(view.c[name] for name in _COLUMNS))
        .where(view.c.batch_id == batch_team.batch, view.c.team_id == batch_team.team)
        .order_by(view.c.confidence, view.c.rule, view.c.task_id, view.c.attempt)
    )
    with database.begin() as connection:
        known = outcomes(connection, batch_team)
        counts = flag_batch(connection, batch_team, places(settings), again=again)
        decided = flagged_runs(connection, batch_team)
        rows = connection.execute(query).all()
    if as_json:
        console.print_json(
            {
                "batch": batch_team.key,
                "version": VERSION,
                "runs_decided": len(decided),
                "rules": {rule: dict(found) for rule, found in sorted(counts.items())},
                "flags": [dict(zip(_COLUMNS, row, strict=True)) for row in rows],
            }
        )
        return
    note = " (scripted model)" if known.scripted else ""
    console.table(
        f"Contamination in {batch_team.key}{note}",
        ("rule", "decided", "signal"),
        [(rule, str(found["decided"]), str(found["signal"])) for rule, found in sorted(counts.items())],
    )
    for row in rows:
        events = ", ".join(map(str, row.seqs[:_SHOWN_EVENTS]))
        console.say(f"{row.rule} ({row.confidence})  {row.task_id}#{row.attempt}: {row.detail} [events {events}]")
    ended = known.completed + known.crashed
    console.say(
        f"{len(decided)} of {ended} ended runs are flagged for certain; compare --without-flagged leaves them out"
    )
