"""Connections to our own tables: one pooled engine per process and address.

Where the database is belongs to :mod:`eval_pipeline.db.dsn`, what is in it to ``sql/``. Dagster's storage has pools of
its own.
"""

from __future__ import annotations

import os
import threading

from sqlalchemy import URL, Engine, create_engine

from eval_pipeline.db.dsn import dsn, with_session_setting
from eval_pipeline.db.revival import reviving
from eval_pipeline.home import pg_data_dir
from eval_pipeline.settings import Settings

_engines: dict[tuple[int, URL], Engine] = {}
_engines_lock = threading.Lock()


def engine(settings: Settings) -> Engine:
    """The process's engine for ``settings``, the same one for the same address.

    Sessions find our tables through their search path and speak UTC. There is no statement timeout: a refresh may
    take long, and a run's own limit ends a run. Connections are made when they are first needed, so that this does
    not fail for a server of one's own that is away; :func:`eval_pipeline.db.dsn.explained` words that error.

    Raises:
        DatabaseError: the embedded server cannot be started.
    """
    url = dsn(settings, database="eval", driver="psycopg")
    # a forked child must not share its parent's sockets
    key = (os.getpid(), url)
    with _engines_lock:
        found = _engines.get(key)
        if found is None:
            found = _engines[key] = _create(url)
            if settings.pg_dsn is None:
                reviving(found, pg_data_dir())
        return found


def _create(url: URL) -> Engine:
    return create_engine(
        with_session_setting(url, "TimeZone", "UTC"),
        # a restarted server costs one reconnect, not an error
        pool_pre_ping=True,
        pool_size=5,
        # connections beyond the pool are closed when they are given back
        max_overflow=40,
        pool_recycle=1800,
        connect_args={
            "application_name": "eval-pipeline",
            # whatever PGCLIENTENCODING says, and for a server that has no encoding of its own
            "client_encoding": "utf8",
            # a host that vanished without a word is noticed in a minute, not in two hours
            "keepalives_idle": 30,
            "keepalives_interval": 10,
            "keepalives_count": 3,
            "tcp_user_timeout": 60_000,
        },
    )
