"""Makes a report and puts it in its place: read, guard, render, check once more, write whole or not at all."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Engine

from eval_pipeline.errors import EvalPipelineError
from eval_pipeline.ids import BatchTeam
from eval_pipeline.reporting.attachments import read_attachments
from eval_pipeline.reporting.leak_guard import Kind, LeakGuard
from eval_pipeline.reporting.markdown import report_markdown
from eval_pipeline.reporting.material import Material
from eval_pipeline.reporting.page import GuardNote, render
from eval_pipeline.reporting.protected import Attachments, own_words, protected_strings, without_golds
from eval_pipeline.reporting.rates import Rate, pass_rate, planned_rate
from eval_pipeline.reporting.reading import read_material
from eval_pipeline.settings import Settings, secrets
from eval_pipeline.suites import Protected, load_suites, load_tasks


class ReportError(EvalPipelineError):
    """A report that was made cannot be written."""


@dataclass(frozen=True, slots=True)
class Report:
    """A published report: where it is, what it says in short, and how much was kept out of it."""

    path: Path
    size_bytes: int
    material: Material
    rate: Rate | None
    planned: Rate | None
    markdown: str
    replaced: Counter[Kind]


def file_name(batch_team: BatchTeam) -> str:
    """What the report of ``batch_team`` is called in its folder."""
    return f"{batch_team.key}.html"


def publish(
    engine: Engine,
    settings: Settings,
    batch_team: BatchTeam,
    folder: Path,
    *,
    against: BatchTeam | None = None,
    protect: Collection[Protected] = (),
) -> Report:
    """Make the report of ``batch_team`` and write it to ``folder``; an older one there is replaced in one step.

    ``protect`` comes on top of what the suite asks for. Of a batch whose suite is declared no more, nobody can say what
    is to be kept out, so its gold answers are.

    Raises:
        IdError: there is no such batch.
        ComparisonError: it cannot be compared with ``against``.
        AttachmentError: attachments are to be kept out, and cannot be read.
        LeakError: the finished report holds a protected string; nothing is written.
        ReportError: the file cannot be written.
    """
    material = read_material(engine, batch_team, against)
    suite = load_suites(settings).get(material.suite)
    asked = {*protect, *(suite.protect if suite else ("golds",))}
    attachments = Attachments()
    if suite is not None and "attachments" in asked:
        attachments = read_attachments(load_tasks(suite, settings), material.runs)
    guard = LeakGuard(protected_strings(secrets(settings), material, asked, attachments))
    shown = guard.replace(without_golds(material) if "golds" in asked else material)
    note = guard.replace(GuardNote(tuple(sorted(asked, reverse=True)), dict(guard.replaced), attachments.unread))
    page = render(shown, note, _page_of_baseline(shown, folder))
    markdown = report_markdown(shown)
    target = folder / file_name(batch_team)
    for finished in (page, markdown.encode("utf-8", "replace")):
        guard.refuse(finished, f"report {target.name}", lambda: own_words(shown))
    _write(target, page)
    return Report(
        target, len(page), shown, pass_rate(shown.runs), planned_rate(shown.runs), markdown, Counter(guard.replaced)
    )


def _page_of_baseline(material: Material, folder: Path) -> str | None:
    """The baseline's report, if it lies in the same folder: only then does a link to it lead anywhere."""
    if material.contrast is None:
        return None
    name = file_name(material.contrast.before)
    return name if (folder / name).is_file() else None


def _write(target: Path, page: bytes) -> None:
    """The whole file or none: readers may open it at any moment."""
    half = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        half.write_bytes(page)
        half.replace(target)
    except OSError as error:
        with suppress(OSError):
            half.unlink(missing_ok=True)
        raise ReportError(
            f"{target}: the report cannot be written ({error.strerror}); check EVAL_REPORT_DIR, the results are kept"
        ) from error
