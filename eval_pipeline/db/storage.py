"""Dagster's own state: its storage in our PostgreSQL, its files below ``.eval_pipeline``.

``dagster.yaml`` names these classes, so that every ``dagster`` command finds the same state with nothing but a home
folder. Our own tables are not here.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from dagster._core.storage.local_compute_log_manager import LocalComputeLogManager
from dagster._core.storage.root import LocalArtifactStorage
from dagster._serdes import ConfigurableClassData
from dagster_postgres import (
    DagsterPostgresStorage,
    PostgresRunStorage,
    PostgresScheduleStorage,
)
from sqlalchemy import Engine, NullPool, create_engine, func, select
from sqlalchemy.schema import CreateSchema

from eval_pipeline.db.dsn import dsn, explained, with_session_setting
from eval_pipeline.db.event_log import EventLog
from eval_pipeline.db.locks import Lock, exclusively
from eval_pipeline.db.revival import reviving
from eval_pipeline.home import home, pg_data_dir
from eval_pipeline.settings import load_settings

_STATEMENT_TIMEOUT_MS = 60_000
_POOL_RECYCLE_S = 3600
_MAX_OVERFLOW = 20
_EVENTS_AT_ONCE = 1000


class PooledPostgresStorage(DagsterPostgresStorage):
    """Dagster's storage at the address that :mod:`eval_pipeline.db.dsn` gives; it takes no configuration.

    The stock storage opens a connection for every event, about 10 ms each; this one keeps one per part open.
    """

    @classmethod
    def config_type(cls) -> dict[str, Any]:
        return {}

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData | None, config_value: object) -> PooledPostgresStorage:
        """Connect, making database, schema and tables where they are missing, one process at a time.

        Raises:
            DatabaseError: the server cannot be started or used.
        """
        del config_value
        # Dagster writes what it plans for a step in batches only where this is set, whatever the storage can do
        os.environ.setdefault("DAGSTER_EVENT_BATCH_SIZE", str(_EVENTS_AT_ONCE))
        settings = load_settings()
        # Dagster takes what a session calls its time for UTC
        url = with_session_setting(dsn(settings, database="dagster", driver="psycopg2"), "TimeZone", "UTC")
        guard = create_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
        schema = settings.pg_dagster_schema
        with (
            explained(url),
            guard.connect() as connection,
            # several processes that create the tables at once break each other
            exclusively(connection, Lock.DAGSTER_TABLES, schema),
        ):
            if connection.scalar(select(func.current_schema())) is None:
                connection.execute(CreateSchema(schema, if_not_exists=True))
            written = url.render_as_string(hide_password=False)
            storage = cls(written, inst_data=inst_data)
        storage._run_storage = _Runs(written, should_autocreate_tables=False)
        storage._event_log_storage = _EventLog(written, should_autocreate_tables=False)
        storage._schedule_storage = _Schedules(written, should_autocreate_tables=False)
        for part in (storage.run_storage, storage.event_log_storage, storage.schedule_storage):
            part.optimize_for_webserver(_STATEMENT_TIMEOUT_MS, _POOL_RECYCLE_S, _MAX_OVERFLOW)
        return storage


def _outlive_restarts(pooled: Engine) -> None:
    """Let a connection that a restart has cut be replaced, instead of failing whoever uses it next."""
    # the option of create_engine that the stock storage does not set; it makes its engine in the one method
    pooled.pool._pre_ping = True
    if load_settings().pg_dsn is None:
        reviving(pooled, pg_data_dir())


# the webserver asks for its own pools once more, hence no change from outside
class _Runs(PostgresRunStorage):
    def optimize_for_webserver(self, statement_timeout: int, pool_recycle: int, max_overflow: int) -> None:
        super().optimize_for_webserver(statement_timeout, pool_recycle, max_overflow)
        _outlive_restarts(self._engine)


class _EventLog(EventLog):
    def optimize_for_webserver(self, statement_timeout: int, pool_recycle: int, max_overflow: int) -> None:
        super().optimize_for_webserver(statement_timeout, pool_recycle, max_overflow)
        _outlive_restarts(self._engine)


class _Schedules(PostgresScheduleStorage):
    def optimize_for_webserver(self, statement_timeout: int, pool_recycle: int, max_overflow: int) -> None:
        super().optimize_for_webserver(statement_timeout, pool_recycle, max_overflow)
        _outlive_restarts(self._engine)


class HomeArtifactStorage(LocalArtifactStorage):
    """Dagster's files, kept out of the project's root; takes no configuration."""

    @classmethod
    def config_type(cls) -> dict[str, Any]:
        return {}

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData | None, config_value: object) -> HomeArtifactStorage:
        del config_value
        return cls(base_dir=str(_state()), inst_data=inst_data)


class HomeComputeLogs(LocalComputeLogManager):
    """What steps print, kept beside Dagster's other files; takes no configuration."""

    @classmethod
    def config_type(cls) -> dict[str, Any]:
        return {}

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData | None, config_value: object) -> HomeComputeLogs:
        del config_value
        return cls(base_dir=str(_state() / "storage"), inst_data=inst_data)


def _state() -> Path:
    return home() / ".eval_pipeline" / "dagster"
