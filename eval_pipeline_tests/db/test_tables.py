"""``tables.py`` says what a migrated database holds."""

from __future__ import annotations

from sqlalchemy import Engine, MetaData, Table, text
from sqlalchemy.dialects import postgresql

from eval_pipeline.db import tables
from eval_pipeline.db.migrations import schema_migrations

DIALECT = postgresql.dialect()  # type: ignore[no-untyped-call]


def columns(table: Table) -> list[tuple[str, str]]:
    return [(column.name, column.type.compile(DIALECT)) for column in table.columns]


def keys(table: Table) -> list[str]:
    return [column.name for column in table.primary_key.columns]


def test_names_types_and_keys_are_those_of_the_database(shared_engine: Engine) -> None:
    there = MetaData()
    with shared_engine.connect() as connection:
        partitions = set(connection.scalars(text("select inhrelid::regclass::text from pg_inherits")))
    there.reflect(shared_engine, only=lambda name, _: name not in partitions)
    here = {**tables.metadata.tables, schema_migrations.name: schema_migrations}
    assert here.keys() == there.tables.keys()
    for name, table in here.items():
        assert columns(table) == columns(there.tables[name]), name
        assert keys(table) == keys(there.tables[name]), name
