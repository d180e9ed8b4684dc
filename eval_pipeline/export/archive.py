"""Takes the traces of whole months out of the database, into files that have been read back first.

A month is read and dropped in one transaction that keeps everybody else from changing it, so that what is dropped is
what was read. Verdicts, usage and everything else about its runs stay. What the files look like belongs to
:mod:`eval_pipeline.export.archive_files`, the way back to :mod:`eval_pipeline.export.restore`.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
from sqlalchemy import Connection, Engine, Select, Table, collate, exists, func, select, text, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError

from eval_pipeline.db import tables
from eval_pipeline.db.accounting import keep_accounting
from eval_pipeline.db.event_partitions import LOCK_MS, make_months, months_present
from eval_pipeline.db.locks import Lock
from eval_pipeline.db.sqlfiles import query
from eval_pipeline.export.archive_files import (
    SOURCES,
    ArchiveError,
    Content,
    Manifest,
    Row,
    Source,
    manifest_sha256,
    need_pyarrow,
    read_file,
    read_manifest,
    remove,
    sync_folder,
    verified,
    write_file,
    write_manifest,
)
from eval_pipeline.ids import BatchTeam, shown
from eval_pipeline.run_ids import FIRST_YEAR, Month

GIVE_UP_AFTER_S = 60.0
"""How long a month that is ready to be dropped waits for those who are reading events."""
_PAUSE_S = 0.5
_ROWS_AT_ONCE = 500
_TEXTS_AT_ONCE = 20
"""A text may have megabytes."""
_DELETED_AT_ONCE = 1000
_ATTEMPTS = 3

_TAKE = text("select pg_try_advisory_lock(:kind, hashtext(current_schema()))")
_RELEASE = text("select pg_advisory_unlock(:kind, hashtext(current_schema()))")
_LIMIT = text("select set_config('lock_timeout', :milliseconds, true)")
_FREEZE = text("select lock_trace_month(:first_day)")
_DROP = text("select drop_trace_month(:first_day)")
_SCHEMA_VERSION = text("select max(version) from schema_migrations")
# ids of version 4 are in the rest for ever, whatever month their random bits look like
_NEXT_IN_REST = text(
    "select min(run_id::text) "
    "from (select run_id from events_rest union all select run_id from model_calls_rest) as left_over "
    "where run_id >= :first and run_id < :end and substring(run_id::text from 15 for 1) = '7'"
)


@dataclass(frozen=True, slots=True)
class ArchivedMonth:
    """A month that is in ``folder`` now. ``dropped`` says whether the files are the only place."""

    month: Month
    folder: Path
    events: int
    model_calls: int
    texts: int
    dropped: bool


def archive(
    engine: Engine,
    before: Month,
    to: Path,
    *,
    keep: bool = False,
    now: datetime | None = None,
    tell: Callable[[ArchivedMonth], None] = lambda _: None,
) -> list[ArchivedMonth]:
    """Archive every month before ``before`` that has traces, oldest first, each in a folder of its name below ``to``.

    With ``keep`` the rows stay. ``tell`` hears of each month when it is done; those that are done stay done whatever
    becomes of a later one.

    Raises:
        ArchiveError: ``before`` is in the future; a run of such a month has not ended; the files cannot be written or
            are not what they should be; somebody else is archiving. The month that it is about is as it was.
    """
    need_pyarrow()
    present = Month.of(now or datetime.now(UTC))
    if before > present:
        raise ArchiveError(
            f"--before {before} is in the future; months are archived when they are over, up to {present}"
        )
    place = storable(to.absolute(), "--to")
    with alone(engine):
        months = _months_to_archive(engine, before)
        _make_folder(place)
        done = []
        for month in months:
            archived = _archive_month(engine, month, place, keep=keep)
            if archived.dropped:
                _delete_texts(engine, month, archived.folder)
            tell(archived)
            done.append(archived)
        return done


def storable(folder: Path, where: str) -> Path:
    """``folder``, if the database can remember it.

    Raises:
        ArchiveError: its name is no Unicode.
    """
    try:
        str(folder).encode()
    except UnicodeEncodeError:
        raise ArchiveError(
            f"{where}: the folder {shown(str(folder))} has a name that is not UTF-8; rename it"
        ) from None
    return folder


def _months_to_archive(engine: Engine, before: Month) -> list[Month]:
    try:
        finish_texts(engine)
        months = _months_with_traces(engine, before)
        with engine.connect() as connection:
            for month in months:
                _refuse_running(connection, month)
    except DBAPIError as error:
        raise ArchiveError(f"nothing can be archived now: {said(error)}; nothing was deleted") from None
    return months


@contextmanager
def alone(engine: Engine) -> Iterator[None]:
    """Keep others from archiving or restoring at the same time.

    Raises:
        ArchiveError: somebody is at it.
    """
    key = {"kind": int(Lock.ARCHIVE)}
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        if not connection.execute(_TAKE, key).scalar_one():
            raise ArchiveError("another process is archiving or restoring; wait until it has ended")
        try:
            yield
        finally:
            with suppress(DBAPIError):
                connection.execute(_RELEASE, key)


def _months_with_traces(engine: Engine, before: Month) -> list[Month]:
    with engine.connect() as connection:
        in_rest = list(_months_of_rest(connection, before))
    make_months(engine, in_rest)
    with engine.connect() as connection:
        return [month for month in months_present(connection) if month < before and has_traces(connection, month)]


def _months_of_rest(connection: Connection, before: Month) -> Iterator[Month]:
    """Months that nobody made a partition for in time."""
    first, end = Month(FIRST_YEAR, 1).first_id, before.first_id
    while (found := connection.execute(_NEXT_IN_REST, {"first": first, "end": end}).scalar_one()) is not None:
        month = Month.of_run(UUID(found))
        assert month is not None
        yield month
        first = month.end_id


def has_traces(connection: Connection, month: Month) -> bool:
    """Whether an event or a model call of a run of ``month`` is in the database."""
    return any(
        connection.execute(select(exists().where(_within(table, month)))).scalar_one()
        for table in (tables.events, tables.model_calls)
    )


def _within(table: Table, month: Month) -> Any:
    return (table.c.run_id >= month.first_id) & (table.c.run_id < month.end_id)


def _refuse_running(connection: Connection, month: Month) -> None:
    runs = tables.runs
    under_way = select(func.count()).select_from(runs).where(_within(runs, month), runs.c.status == "running")
    count = connection.execute(under_way).scalar_one()
    if count:
        what = "1 run that has" if count == 1 else f"{count} runs that have"
        raise ArchiveError(
            f"{month} has {what} not ended, so it is not archived; wait, or if nothing is running, "
            "see eval-pipeline check"
        )


def _archive_month(engine: Engine, month: Month, place: Path, *, keep: bool) -> ArchivedMonth:
    part = place / f".{month}.{os.getpid()}-{secrets.token_hex(4)}.part"
    first_day = {"first_day": date(month.year, month.month, 1)}
    try:
        with engine.begin() as connection:
            connection.execute(_LIMIT, {"milliseconds": str(round(1000 * GIVE_UP_AFTER_S))})
            connection.execute(_FREEZE, first_day)
            _refuse_running(connection, month)
            part.mkdir()
            files = {
                source.name: write_file(part, source, stored_rows(connection, source, month)) for source in SOURCES
            }
            version = int(connection.execute(_SCHEMA_VERSION).scalar_one())
            write_manifest(part, Manifest(month, version, files))
            verified(part)
            if not keep:
                _keep_summaries(connection, month)
            folder = _put_in_place(part, place / str(month))
            _remember(connection, month, folder, {name: entry.content.rows for name, entry in files.items()}, keep=keep)
            if not keep:
                _drop(connection, first_day, month, folder)
    except OSError as error:
        raise ArchiveError(
            f"--to: {place} cannot be written ({error.strerror or error}); nothing was deleted"
        ) from error
    except (DBAPIError, psycopg.Error) as error:
        raise ArchiveError(f"{month} cannot be archived: {said(error)}; nothing was deleted") from None
    finally:
        remove(part)
    rows = {name: entry.content.rows for name, entry in files.items()}
    return ArchivedMonth(month, folder, rows["events"], rows["model_calls"], rows["texts"], dropped=not keep)


def said(error: Exception) -> str:
    """What the database said, on one line."""
    cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    return (str(cause).strip() or type(cause).__name__).split("\n", 1)[0]


def stored_rows(connection: Connection, source: Source, month: Month) -> Iterator[Row]:
    """The rows of ``source`` that belong to the traces of ``month``, in the order of their keys, a few at a time."""
    table = source.table
    rows: Select[Any] = select(*source.values())
    if table is tables.texts:
        events = tables.events
        used = select(events.c.content_sha256).where(_within(events, month), events.c.content_sha256.is_not(None))
        rows = rows.where(table.c.sha256.in_(used)).order_by(collate(table.c.sha256, "C"))
    else:
        rows = rows.where(_within(table, month)).order_by(*(table.c[name] for name in source.key))
    at_once = _TEXTS_AT_ONCE if table is tables.texts else _ROWS_AT_ONCE
    for row in connection.execute(rows.execution_options(yield_per=at_once)):
        yield tuple(row)


def _put_in_place(part: Path, folder: Path) -> Path:
    """Give the finished files their name, unless what has it holds the same; where they are."""
    if folder.exists() or folder.is_symlink():
        there, new = verified(folder), read_manifest(part)
        if there.month != new.month or _contents(there) != _contents(new):
            raise ArchiveError(
                f"--to: {folder} is there already and holds something else; move it away, or choose another folder"
            )
        return folder
    part.rename(folder)
    sync_folder(folder.parent)
    return folder


def _contents(manifest: Manifest) -> dict[str, Content]:
    return {name: entry.content for name, entry in manifest.files.items()}


def _keep_summaries(connection: Connection, month: Month) -> None:
    """Let what is summed up from traces be of all of them, before they go."""
    runs = tables.runs
    connection.execute(query("stale_tools_of_runs"), {"first": month.first_id, "end": month.end_id})
    batches = connection.execute(select(runs.c.batch_id, runs.c.team_id).where(_within(runs, month)).distinct())
    for batch, team in batches.all():
        keep_accounting(connection, BatchTeam(batch, team))


def _remember(connection: Connection, month: Month, folder: Path, rows: dict[str, int], *, keep: bool) -> None:
    table = tables.archived_months
    values = {
        "first_id": month.first_id,
        "end_id": month.end_id,
        "folder": str(folder),
        "manifest_sha256": manifest_sha256(folder),
        **rows,
        "archived_at": datetime.now(UTC),
        "dropped_at": None if keep else datetime.now(UTC),
        "texts_dropped_at": None,
    }
    connection.execute(
        insert(table).values(month=str(month), **values).on_conflict_do_update(index_elements=["month"], set_=values)
    )


def _drop(connection: Connection, first_day: dict[str, date], month: Month, folder: Path) -> None:
    # whoever comes after us waits as long as we wait, so we wait briefly and often
    until_s = time.monotonic() + GIVE_UP_AFTER_S
    while True:
        try:
            with connection.begin_nested():
                connection.execute(_LIMIT, {"milliseconds": str(LOCK_MS)})
                connection.execute(_DROP, first_day)
        except OperationalError as error:
            if time.monotonic() > until_s:
                raise ArchiveError(
                    f"{month} is whole in {folder} but could not be dropped, since somebody is reading events "
                    f"({said(error)}); archive it again later, the files will do"
                ) from None
            time.sleep(_PAUSE_S)
        else:
            return


def finish_texts(engine: Engine) -> None:
    """Delete the texts of months that were dropped by a process that did not come to its end."""
    table = tables.archived_months
    unfinished = select(table.c.month, table.c.folder).where(
        table.c.dropped_at.is_not(None), table.c.texts_dropped_at.is_(None)
    )
    with engine.connect() as connection:
        left = connection.execute(unfinished.order_by(table.c.month)).all()
    for month, folder in left:
        # files that have been moved away take no harm from texts that stay
        with suppress(ArchiveError):
            _delete_texts(engine, Month.parse(month, "archived_months"), Path(folder))


def _delete_texts(engine: Engine, month: Month, folder: Path) -> None:
    """Delete the texts in ``folder``, which must be whole, but for those that an event still needs."""
    verified(folder)
    texts, events, archived = tables.texts, tables.events, tables.archived_months
    source = next(source for source in SOURCES if source.table is texts)
    hashes = (row[0] for row in read_file(folder, source, ["sha256"]))
    needed = exists().where(events.c.content_sha256 == texts.c.sha256)
    while some := list(islice(hashes, _DELETED_AT_ONCE)):
        for _ in range(_ATTEMPTS):
            # a run may have come to need one since the statement began; the next look sees that
            with suppress(IntegrityError), engine.begin() as connection:
                connection.execute(texts.delete().where(texts.c.sha256.in_(some), ~needed))
                break
    with engine.begin() as connection:
        values = {"texts_dropped_at": datetime.now(UTC)}
        connection.execute(update(archived).where(archived.c.month == str(month)).values(values))


def _make_folder(place: Path) -> None:
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ArchiveError(f"--to: {place} cannot be made ({error.strerror})") from error
