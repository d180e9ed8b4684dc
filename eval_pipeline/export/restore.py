"""Brings the traces of an archived month back into the database: the same rows as before, or none."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import psycopg
from psycopg import sql
from sqlalchemy import Connection, Engine, select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import SQLAlchemyError

from eval_pipeline.db import tables
from eval_pipeline.db.event_partitions import analyze, make_months
from eval_pipeline.export.archive import ArchivedMonth, alone, has_traces, said, storable, stored_rows
from eval_pipeline.export.archive_files import (
    SOURCES,
    ArchiveError,
    Manifest,
    Source,
    content_of,
    manifest_sha256,
    need_pyarrow,
    read_file,
    verified,
)
from eval_pipeline.run_ids import Month

# a text may be there already, which copy cannot pass over
_BESIDE = text("create temporary table restored_texts (like texts) on commit drop")
_TEXTS = text("insert into texts select * from restored_texts on conflict do nothing")
_FORGET_ACCOUNTING = text(
    "delete from archived_accounting as kept where not exists ("
    "select from runs join archived_months as away on run_id >= away.first_id and run_id < away.end_id "
    "where runs.batch_id = kept.batch_id and runs.team_id = kept.team_id and away.dropped_at is not null)"
)


def restore(engine: Engine, folder: Path) -> ArchivedMonth:
    """Bring back the month that is in ``folder``; the files stay, and serve when it is archived again.

    Raises:
        ArchiveError: the files are not those that were archived; traces of that month are in the database; a run that
            they belong to is not; somebody else is archiving or restoring. Nothing was changed.
    """
    need_pyarrow()
    place = storable(folder.absolute(), "--restore")
    manifest = verified(place)
    month = manifest.month
    with alone(engine):
        with engine.connect() as connection:
            _refuse(connection, month, place)
        try:
            # in a transaction of its own: its locks are not for the time that rows take
            make_months(engine, [month])
            with engine.begin() as connection:
                _refuse(connection, month, place)
                for source in SOURCES:
                    _copy(connection, source, place)
                _compare(connection, manifest, place)
                _remember(connection, manifest, place)
        except (SQLAlchemyError, psycopg.Error) as error:
            raise ArchiveError(f"{month} cannot be restored: {said(error)}; nothing was restored") from None
        analyze(engine)
    rows = {name: entry.content.rows for name, entry in manifest.files.items()}
    return ArchivedMonth(month, place, rows["events"], rows["model_calls"], rows["texts"], dropped=False)


def _refuse(connection: Connection, month: Month, place: Path) -> None:
    table = tables.archived_months
    row = connection.execute(
        select(table.c.manifest_sha256, table.c.dropped_at).where(table.c.month == str(month))
    ).one_or_none()
    if row is not None and row.manifest_sha256 != manifest_sha256(place):
        raise ArchiveError(f"{place} is not the archive of {month} that this database remembers; nothing was restored")
    if has_traces(connection, month):
        raise ArchiveError(f"{month} has traces in the database, so there is nothing to restore from {place}")


def _copy(connection: Connection, source: Source, place: Path) -> None:
    target = source.name
    if source.table is tables.texts:
        connection.execute(_BESIDE)
        target = "restored_texts"
    driver = connection.connection.driver_connection
    assert isinstance(driver, psycopg.Connection)
    statement = sql.SQL("copy {} ({}) from stdin").format(
        sql.Identifier(target), sql.SQL(", ").join(map(sql.Identifier, source.columns))
    )
    with driver.cursor() as cursor, cursor.copy(statement) as copy:
        for row in read_file(place, source):
            copy.write_row(row)
    if source.table is tables.texts:
        connection.execute(_TEXTS)


def _compare(connection: Connection, manifest: Manifest, place: Path) -> None:
    for source in SOURCES:
        if content_of(source, stored_rows(connection, source, manifest.month)) != manifest.files[source.name].content:
            raise ArchiveError(f"{source.name} of {place} are not the same in this database; nothing was restored")


def _remember(connection: Connection, manifest: Manifest, place: Path) -> None:
    table, month = tables.archived_months, manifest.month
    back = {"folder": str(place), "dropped_at": None, "texts_dropped_at": None}
    connection.execute(
        insert(table)
        .values(
            month=str(month),
            first_id=month.first_id,
            end_id=month.end_id,
            manifest_sha256=manifest_sha256(place),
            archived_at=datetime.now(UTC),
            **{name: entry.content.rows for name, entry in manifest.files.items()},
            **back,
        )
        .on_conflict_do_update(index_elements=["month"], set_=back)
    )
    connection.execute(_FORGET_ACCOUNTING)
