"""The advisory locks that processes of this product take in PostgreSQL, with their numbers in one place.

A lock is named by a :class:`Lock` and a text; taking and releasing it belongs to whoever needs it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

from sqlalchemy import Connection, text

_TAKE = text("select pg_advisory_lock(:kind, hashtext(:name))")
_RELEASE = text("select pg_advisory_unlock(:kind, hashtext(:name))")
_WAIT = text("select set_config('lock_timeout', :milliseconds, false)")
WAIT_MS = 120_000
"""How long to wait for another process's migration or table creation, each a matter of seconds."""


class Lock(IntEnum):
    """First key of ``pg_advisory_lock(int, int)``; the second is ``hashtext`` of a name."""

    CREATE_DATABASE = 4711
    """Creating a database of the embedded server; named by the database."""
    DAGSTER_TABLES = 4712
    """Creating Dagster's schema and tables; named by the schema."""
    MIGRATIONS = 4713
    """Applying ``sql/``; named by the schema."""
    WORKER = 4714
    """Held, shared, while a Dagster run's process lives; named by the Dagster run id."""
    PARTITIONS = 4715
    """Making partitions of events and model calls; named by the schema."""
    ARCHIVE = 4716
    """Archiving or restoring months; named by the schema."""


@contextmanager
def exclusively(connection: Connection, lock: Lock, name: str) -> Iterator[None]:
    """Hold a lock on this connection's session; the server drops it when the process dies.

    ``connection`` must be in autocommit mode, since a transaction held open beside a lock keeps others from dropping
    and creating what they lock.

    Raises:
        sqlalchemy.exc.OperationalError: not obtained within two minutes.
    """
    key = {"kind": int(lock), "name": name}
    connection.execute(_WAIT, {"milliseconds": str(WAIT_MS)})
    connection.execute(_TAKE, key)
    connection.execute(_WAIT, {"milliseconds": "0"})
    try:
        yield
    finally:
        connection.execute(_RELEASE, key)
