"""``export``: a batch's rows as files for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from eval_pipeline import console
from eval_pipeline.commands.context import ready
from eval_pipeline.comparison.outcomes import outcomes
from eval_pipeline.db.archived import archived_traces
from eval_pipeline.export.batch import export_batch, export_traces
from eval_pipeline.export.writers import Format
from eval_pipeline.ids import BatchTeam


def export(batch_team: BatchTeam, form: Format | Literal["otlp"], folder: Path, *, as_json: bool) -> None:
    """Write the files and say which; ``otlp`` is one file of traces, the others are rows.

    Raises:
        IdError: there is no such batch.
        ExportError: they cannot be written.
    """
    _, database = ready()
    with database.connect() as connection:
        outcomes(connection, batch_team)
        for away in archived_traces(connection, batch_team):
            console.note(f"{batch_team.key}: {away.line()}")
        if form == "otlp":
            written = export_traces(connection, batch_team, folder)
        else:
            written = export_batch(connection, batch_team, form, folder)
    if as_json:
        console.print_json([{"file": str(path), "rows": rows} for path, rows in written.items()])
        return
    for path, rows in written.items():
        console.say(f"{path}: {rows:,} rows")
