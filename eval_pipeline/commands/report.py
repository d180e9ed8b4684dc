"""``report``: the page of one ``batch@team``, written where one wants it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from eval_pipeline import console
from eval_pipeline.commands.context import ready
from eval_pipeline.db.views import refresh_batches
from eval_pipeline.home import report_dir
from eval_pipeline.ids import BatchTeam
from eval_pipeline.reporting.publish import publish
from eval_pipeline.suites import Protected


@dataclass(frozen=True, slots=True)
class ReportRequest:
    """What ``report`` was asked for; ``folder`` is ``None`` for the usual one."""

    batch_team: BatchTeam
    against: BatchTeam | None
    folder: Path | None
    protect_golds: bool


def write_report(request: ReportRequest, *, as_json: bool) -> None:
    """Make the page and say where it is.

    Raises:
        IdError: there is no such batch.
        ComparisonError: it cannot be compared with ``against``.
        LeakError: the finished page holds a protected string; nothing is written.
    """
    settings, database = ready()
    refresh_batches(database, [request.batch_team])
    protect: tuple[Protected, ...] = ("golds",) if request.protect_golds else ()
    report = publish(
        database,
        settings,
        request.batch_team,
        (request.folder or report_dir(settings)).absolute(),
        against=request.against,
        protect=protect,
    )
    contrast = report.material.contrast
    if as_json:
        console.print_json(
            {
                "batch": request.batch_team.key,
                "path": str(report.path),
                "size_bytes": report.size_bytes,
                "replaced": dict(report.replaced),
                "baseline": contrast.before.key if contrast else None,
                "verdict": contrast.verdict if contrast else None,
            }
        )
        return
    console.say(str(report.path))
    if contrast is not None:
        console.say(contrast.words)
    for kind, count in sorted(report.replaced.items()):
        console.note(f"protected strings replaced, {kind}: {count}")
