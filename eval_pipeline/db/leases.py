"""A sign of life that cannot lie: a lock in PostgreSQL that the server drops when its holder's process dies.

Every Dagster run of ours holds one, shared, under its run id; who gets it exclusively knows that the run's process is
gone. What follows from that is decided in :mod:`eval_pipeline.automation.reaper`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import SQLAlchemyError

from eval_pipeline.db.locks import Lock
from eval_pipeline.errors import DatabaseError

_log = logging.getLogger(__name__)

LOOK_EVERY_S = 3.0
"""How often a holder looks whether its connection still stands. A restarted server is noticed within this time."""
_AGAIN_AFTER_S = 0.5

# shared: a Dagster run may initialise its resources twice, on two connections, and must not wait for itself
_TAKE = text("select pg_advisory_lock_shared(:kind, hashtext(:name))")
_TRY = text("select pg_try_advisory_lock(:kind, hashtext(:name))")
_RELEASE = text("select pg_advisory_unlock(:kind, hashtext(:name))")
_LOOK = text("select 1")
# a host that loses its power closes no connection: left alone, the server would keep its lock for two hours
_ASK_AFTER_ME = text(
    "select set_config('tcp_keepalives_idle', '10', false), set_config('tcp_keepalives_interval', '5', false),"
    " set_config('tcp_keepalives_count', '3', false), set_config('tcp_user_timeout', '25000', false)"
)


@contextmanager
def lease(engine: Engine, name: str) -> Iterator[None]:
    """Hold the lease ``name`` while the block runs, and take it again when the connection was lost."""
    over = threading.Event()
    held = threading.Event()
    holder = threading.Thread(target=_hold, args=(engine, name, held, over), name=f"lease {name}", daemon=True)
    holder.start()
    # a database that is away must not keep the block from beginning: its own queries say so better
    held.wait(LOOK_EVERY_S)
    try:
        yield
    finally:
        over.set()
        holder.join(LOOK_EVERY_S)


def _hold(engine: Engine, name: str, held: threading.Event, over: threading.Event) -> None:
    lost = False
    while not over.is_set():
        try:
            with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                connection.execute(_ASK_AFTER_ME)
                connection.execute(_TAKE, {"kind": int(Lock.WORKER), "name": name})
                held.set()
                lost = False
                while not over.wait(LOOK_EVERY_S):
                    connection.execute(_LOOK)
                # the pool keeps the session, so its lock would outlive this block
                connection.execute(text("select pg_advisory_unlock_all()"))
        except (SQLAlchemyError, DatabaseError) as error:
            if not lost:
                _log.warning("lease %s is taken again: %s", name, type(error).__name__)
            lost = True
            over.wait(_AGAIN_AFTER_S)


def is_free(connection: Connection, name: str) -> bool:
    """Whether nobody holds the lease ``name``; ``connection`` must be in autocommit mode."""
    key = {"kind": int(Lock.WORKER), "name": name}
    free = bool(connection.execute(_TRY, key).scalar_one())
    if free:
        connection.execute(_RELEASE, key)
    return free
