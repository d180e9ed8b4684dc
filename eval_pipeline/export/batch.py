"""Which rows of a ``batch@team`` are exported: its runs, and events, model calls and metrics under their run ids.

Everything comes from the views. Runs and metrics are those of live tries; events and model calls are of all tries, with
``try_no`` and ``live`` beside them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, Select, column, literal_column, select, table

from eval_pipeline.export.otlp import traces
from eval_pipeline.export.writers import ExportError, Format, check_format, write
from eval_pipeline.ids import BatchTeam

_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class _Source:
    view: str
    order: tuple[str, ...]
    json_columns: tuple[str, ...] = ()


_SOURCES: Mapping[str, _Source] = {
    "runs": _Source("v_runs", ("task_id", "attempt")),
    "events": _Source("v_trace", ("task_id", "attempt", "try_no", "seq"), ("tool_args", "payload", "error")),
    "model_calls": _Source("v_model_calls", ("task_id", "attempt", "try_no", "call_no")),
    "metrics": _Source("v_run_metrics", ("task_id", "attempt", "name")),
}


def export_batch(connection: Connection, batch_team: BatchTeam, form: Format, folder: Path) -> dict[Path, int]:
    """Write the rows of ``batch_team`` below ``folder/<batch>@<team>/``; each file with how many rows it has.

    Files of an earlier export of the same batch are replaced.

    Raises:
        ExportError: the folder cannot be written, or the format needs a package that is not installed.
    """
    check_format(form)
    place = _folder(folder, batch_team)
    written = {}
    for name, source in _SOURCES.items():
        query: Select[tuple[object, ...]] = (
            select(literal_column("*"))
            .select_from(table(source.view))
            .where(column("batch_id") == batch_team.batch, column("team_id") == batch_team.team)
            .order_by(*(column(by) for by in source.order))
        )
        # a batch has more events than should be in memory at once
        result = connection.execute(query.execution_options(yield_per=_AT_ONCE))
        path = place / f"{name}.{form}"
        rows = ({str(key): value for key, value in row.items()} for row in result.mappings())
        written[path] = write(path, form, list(result.keys()), source.json_columns, rows)
    return written


def export_traces(connection: Connection, batch_team: BatchTeam, folder: Path) -> dict[Path, int]:
    """Write ``traces.jsonl`` beside the rows: every ended run as an OpenTelemetry trace.

    Raises:
        ExportError: the folder cannot be written.
    """
    path = _folder(folder, batch_team) / "traces.jsonl"
    return {path: write(path, "jsonl", ["resourceSpans"], (), traces(connection, batch_team))}


def _folder(folder: Path, batch_team: BatchTeam) -> Path:
    place = folder / batch_team.key
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ExportError(f"--output: {place} cannot be made ({error.strerror})") from error
    return place
