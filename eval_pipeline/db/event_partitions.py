"""The months of ``events`` and ``model_calls``: which have partitions, and making those that are needed next.

How a partition is made stands in ``sql/012_partitioned_events.sql``, which month a run belongs to in
:mod:`eval_pipeline.run_ids`, and what becomes of old months in :mod:`eval_pipeline.export.archive`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import UTC, date, datetime

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import SQLAlchemyError

from eval_pipeline.db.locks import Lock
from eval_pipeline.db.sqlfiles import query
from eval_pipeline.run_ids import Month

AHEAD = 2
"""How many months beyond the present one are made, so that a batch may go on over the end of one."""
LOCK_MS = 500
"""How long making a month waits for others: less than PostgreSQL's deadlock_timeout, so that nobody else gives way."""

_log = logging.getLogger(__name__)
_LIMIT = text("select set_config('lock_timeout', :milliseconds, true)")
_ALONE = text("select pg_advisory_xact_lock(:kind, hashtext(current_schema()))")
_MAKE = text("select make_trace_month(:first_day)")
# the planner knows nothing of a partitioned table as a whole unless somebody asks for it; autovacuum never does
_ANALYZE = (text("analyze events"), text("analyze model_calls"))


def months_present(connection: Connection) -> list[Month]:
    """The months that have their partitions, in order. One read of the catalog, and no lock."""
    return [
        Month.parse(str(month).replace("_", "-"), "partition")
        for month in connection.execute(query("trace_months")).scalars()
    ]


def make_months(engine: Engine, months: Iterable[Month]) -> list[Month]:
    """Make the partitions of those ``months`` that have none, each in a transaction of its own; which these were.

    Rows that are in the rest already move. Safe from several processes at once.

    Raises:
        sqlalchemy.exc.SQLAlchemyError: somebody holds a lock for longer than :data:`LOCK_MS`, or we may not do this.
            Rows of such a month go to the rest until it is made.
    """
    with engine.connect() as connection:
        present = set(months_present(connection))
    missing = [month for month in months if month not in present]
    for month in missing:
        with engine.begin() as connection:
            make_month(connection, month)
    return missing


def make_month(connection: Connection, month: Month) -> None:
    """Make the partitions of ``month`` in the transaction of ``connection``, unless they are there by then.

    Raises:
        sqlalchemy.exc.SQLAlchemyError: as :func:`make_months`.
    """
    connection.execute(_LIMIT, {"milliseconds": str(LOCK_MS)})
    connection.execute(_ALONE, {"kind": int(Lock.PARTITIONS)})
    connection.execute(_MAKE, {"first_day": date(month.year, month.month, 1)})


def make_ahead(engine: Engine, now: datetime | None = None) -> list[Month]:
    """Make the present month and the next ones, where they are missing; which these were. Never raises.

    Nothing depends on its success: what has no month goes to the rest, and moves when the month is made.
    """
    try:
        return make_months(engine, Month.of(now or datetime.now(UTC)).and_next(AHEAD))
    except SQLAlchemyError as error:
        said = str(getattr(error, "orig", None) or error).split("\n", 1)[0]
        _log.warning("the coming months have no partitions yet (%s); traces go to the rest until they have", said)
    return []


def analyze(engine: Engine) -> None:
    """Let the planner know how many runs, tools and types the events of all months together have.

    Raises:
        sqlalchemy.exc.SQLAlchemyError: the database cannot be used. Tables of somebody else are left out.
    """
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        for statement in _ANALYZE:
            connection.execute(statement)
