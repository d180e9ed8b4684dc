"""Bring a database to the newest state of ``sql/``, whoever else is doing the same.

What the schema is stands in ``sql/``. Every file is applied once, whole or not at all, and recorded with the hash of
what was applied.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Column, Connection, DateTime, Engine, Integer, MetaData, Table, Text, func, select, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.schema import CreateSchema

from eval_pipeline.db import sqlfiles
from eval_pipeline.db.dsn import explained
from eval_pipeline.db.locks import Lock, exclusively
from eval_pipeline.db.sqlfiles import Migration
from eval_pipeline.errors import DatabaseError

schema_migrations = Table(
    "schema_migrations",
    MetaData(),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("name", Text, nullable=False),
    Column("checksum", Text, nullable=False),
    Column("applied_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
)

MINIMUM_VERSION = 15
_SERVER = text("select current_setting('server_version_num'), current_setting('server_encoding')")
_SEARCH_PATH = text("select (parse_ident(current_setting('search_path')))[1]")


@dataclass(frozen=True, slots=True)
class _Applied:
    version: int
    name: str
    checksum: str


def checksum(migration: Migration) -> str:
    """SHA-256, hex, of the file's text; line ends and a byte order mark do not count."""
    return hashlib.sha256(migration.file.text.encode()).hexdigest()


def migrate(engine: Engine, steps: Sequence[Migration] | None = None) -> list[Migration]:
    """Apply what is missing of ``steps`` (default: ``sql/``) and return it; the schema is made where it is missing.

    Safe to call again and from several processes at once: one works, the others wait and find nothing to do. The
    schema is the first of the engine's search path.

    Raises:
        DatabaseError: the server cannot be used; an applied migration has changed; the database is newer than this
            version of the code, or lacks an earlier step; a statement fails, in which case its file left no trace.
    """
    wanted = sqlfiles.migrations() if steps is None else tuple(steps)
    with explained(engine.url), engine.connect() as plain:
        connection = plain.execution_options(isolation_level="AUTOCOMMIT")
        _check_server(connection)
        schema = str(connection.scalar(_SEARCH_PATH))
        with exclusively(connection, Lock.MIGRATIONS, schema):
            if connection.scalar(select(func.current_schema())) is None:
                connection.execute(CreateSchema(schema, if_not_exists=True))
            schema_migrations.create(connection, checkfirst=True)
            missing = _missing(_applied(connection), wanted, engine.url.database or "")
            for step in missing:
                with engine.begin() as transaction:
                    _apply(transaction, step)
    return missing


def pending(engine: Engine) -> list[Migration]:
    """What :func:`migrate` would apply, without changing anything.

    Raises:
        DatabaseError: as :func:`migrate`.
    """
    with explained(engine.url), engine.connect() as connection:
        there = connection.scalar(select(func.to_regclass(schema_migrations.name)))
        applied = [] if there is None else _applied(connection)
        return _missing(applied, sqlfiles.migrations(), engine.url.database or "")


def _check_server(connection: Connection) -> None:
    version, encoding = connection.execute(_SERVER).one()
    if int(version) < MINIMUM_VERSION * 10_000:
        raise DatabaseError(
            f"the server is PostgreSQL {int(version) // 10_000}, which is too old; use {MINIMUM_VERSION} or newer"
        )
    if encoding != "UTF8":
        raise DatabaseError(
            f"the database has the encoding {encoding}, which cannot hold all texts; create one with encoding UTF8"
        )


def _applied(connection: Connection) -> list[_Applied]:
    table = schema_migrations.c
    rows = connection.execute(select(table.version, table.name, table.checksum).order_by(table.version))
    return [_Applied(*row) for row in rows]


def _missing(applied: Sequence[_Applied], steps: Sequence[Migration], database: str) -> list[Migration]:
    for expected, found in enumerate(applied, start=1):
        if found.version > len(steps):
            raise DatabaseError(
                f"database {database!r} is at migration {applied[-1].version:03}, newer than this version of "
                f"eval-pipeline, which knows {len(steps):03}; update eval-pipeline"
            )
        if found.version != expected:
            raise DatabaseError(
                f"database {database!r} has migration {found.version:03} but not {expected:03}; restore it from a "
                "backup, or set EVAL_PG_SCHEMA to a new schema"
            )
        step = steps[found.version - 1]
        if checksum(step) != found.checksum:
            raise DatabaseError(
                f"{step.file.path.name}: has changed since it was applied to database {database!r} (then "
                f"{found.checksum[:12]}, now {checksum(step)[:12]}); restore the file and put the change into a new "
                "migration, or set EVAL_PG_SCHEMA to a new schema"
            )
    return list(steps[len(applied) :])


def _apply(connection: Connection, step: Migration) -> None:
    try:
        # without parameters the driver sends the text as it is, with all its statements and percent signs
        connection.execution_options(no_parameters=True).exec_driver_sql(step.file.text)
    except DBAPIError as exc:
        said = " ".join(str(exc.orig).split())
        raise DatabaseError(f"{step.file.path.name}: cannot be applied: {said}; nothing of it was kept") from exc.orig
    connection.execute(schema_migrations.insert().values(version=step.version, name=step.name, checksum=checksum(step)))
