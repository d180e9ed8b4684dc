"""``archive``: the traces of old months into files, and back."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Engine

from eval_pipeline import console
from eval_pipeline.commands.context import ready
from eval_pipeline.db.archived import StoredMonth, archived_months
from eval_pipeline.export.archive import ArchivedMonth, archive
from eval_pipeline.export.archive_files import ArchiveError
from eval_pipeline.export.restore import restore
from eval_pipeline.home import archive_dir
from eval_pipeline.run_ids import Month


@dataclass(frozen=True, slots=True)
class ArchiveRequest:
    """What ``archive`` was asked for; with neither ``before`` nor ``restore`` it lists what is archived."""

    before: str | None
    to: Path | None
    restore: Path | None
    keep: bool


def run_archive(request: ArchiveRequest, *, as_json: bool) -> None:
    """Do it and say what became of each month.

    Raises:
        IdError: ``before`` is no month.
        ArchiveError: options that exclude each other; a month cannot be archived or restored.
    """
    if request.restore is not None and (request.before, request.to, request.keep) != (None, None, False):
        raise ArchiveError("--restore stands alone; --before, --to and --keep are for archiving")
    if request.before is None and (request.to is not None or request.keep):
        raise ArchiveError("--before is missing: archive the whole months before which one, such as 2026-11?")
    before = None if request.before is None else Month.parse(request.before, "--before")
    _, database = ready()
    if request.restore is not None:
        back = restore(database, request.restore)
        _tell_json([back]) if as_json else console.say(f"{_words(back)} are back in the database")
    elif before is not None:
        _archive(database, before, request, as_json=as_json)
    else:
        with database.connect() as connection:
            _list(archived_months(connection), as_json=as_json)


def _archive(database: Engine, before: Month, request: ArchiveRequest, *, as_json: bool) -> None:
    def tell(month: ArchivedMonth) -> None:
        if not as_json:
            console.say(f"{_words(month)} are {'now' if month.dropped else 'also'} in {month.folder}")

    done = archive(database, before, request.to or archive_dir(), keep=request.keep, tell=tell)
    if as_json:
        _tell_json(done)
    elif not done:
        console.say(f"no month before {before} has traces in the database")


def _words(month: ArchivedMonth) -> str:
    return f"{month.month}: {month.events:,} events, {month.model_calls:,} model calls and {month.texts:,} texts"


def _tell_json(months: list[ArchivedMonth]) -> None:
    console.print_json(
        [
            {
                "month": str(month.month),
                "folder": str(month.folder),
                "events": month.events,
                "model_calls": month.model_calls,
                "texts": month.texts,
                "dropped": month.dropped,
            }
            for month in months
        ]
    )


def _list(months: list[StoredMonth], *, as_json: bool) -> None:
    if as_json:
        console.print_json([{name: getattr(month, name) for name in StoredMonth.__slots__} for month in months])
    elif not months:
        console.say("no month is archived; --before 2026-11 archives those before November 2026")
    else:
        rows = [
            (
                month.month,
                "in files only" if month.dropped_at else "in files and in the database",
                month.folder,
                console.count(month.events),
                console.count(month.model_calls),
                console.count(month.texts),
            )
            for month in months
        ]
        console.table("Archived months", ("month", "traces", "folder", "events", "model calls", "texts"), rows, left=3)
