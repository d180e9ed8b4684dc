"""Where the database is: one address for our tables and one for Dagster's, from the same settings.

The embedded server has a database for each. In a user's own server both share the one database of ``EVAL_PG_DSN``, in
two schemas, since Dagster's tables would collide with ours. Opening connections for our own use belongs to
:mod:`eval_pipeline.db.engine`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from sqlalchemy import URL, NullPool, TextClause, create_engine, make_url, text
from sqlalchemy.exc import ArgumentError, InterfaceError, OperationalError, ProgrammingError

from eval_pipeline.addresses import dsn_passwords
from eval_pipeline.db import embedded
from eval_pipeline.db.locks import Lock, exclusively
from eval_pipeline.errors import DatabaseError
from eval_pipeline.home import pg_data_dir
from eval_pipeline.settings import Settings

Database = Literal["eval", "dagster"]
Driver = Literal["psycopg", "psycopg2"]

CONNECT_S = 5
"""Seconds after which an address of a server that does not answer is given up."""
# a database's name cannot be a bound parameter; template1 cannot be copied while anyone is connected to it
_CREATE: dict[Database, TextClause] = {
    "eval": text("create database eval template template0"),
    "dagster": text("create database dagster template template0"),
}
_made: set[tuple[embedded.Server, str]] = set()


def dsn(settings: Settings, *, database: Database, driver: Driver) -> URL:
    """The address of our (``eval``) or Dagster's (``dagster``) tables, with the search path that leads to them.

    Starts or joins the embedded server when ``EVAL_PG_DSN`` is unset. The driver is always named: SQLAlchemy takes
    psycopg 3 for a bare ``postgresql://``, and Dagster's ``NOTIFY`` fails on it.

    Raises:
        DatabaseError: the embedded server cannot be started, or ``EVAL_PG_DSN`` is no address.
    """
    schema: str | None = settings.pg_schema if database == "eval" else settings.pg_dagster_schema
    if settings.pg_dsn is None:
        server = embedded.server(pg_data_dir())
        _make_database(server, database)
        url = server.url(database)
        if database == "dagster":
            schema = None
    else:
        url = _own_server(settings.pg_dsn.get_secret_value())
    url = url.set(drivername=f"postgresql+{driver}")
    if "connect_timeout" not in url.query:
        url = url.update_query_dict({"connect_timeout": str(CONNECT_S)})
    return url if schema is None else with_session_setting(url, "search_path", _quoted(schema))


def with_session_setting(url: URL, name: str, value: str) -> URL:
    """``url`` whose sessions start with a setting of PostgreSQL, in place of any value it had for it.

    Set so, it survives a rolled-back transaction and a pool's reset.
    """
    given = url.query.get("options", "")
    options = given if isinstance(given, str) else " ".join(given)
    escaped = value.replace("\\", "\\\\").replace(" ", "\\ ")
    return url.update_query_dict({"options": f"{options} -c{name}={escaped}".strip()})


@contextmanager
def explained(url: URL) -> Iterator[None]:
    """Turn what a driver raises for a server that cannot be used into one line without the password.

    Raises:
        DatabaseError: in place of SQLAlchemy's operational, interface and programming errors.
    """
    try:
        yield
    except (OperationalError, InterfaceError, ProgrammingError) as exc:
        said = " ".join(str(exc.orig).split())
        for password in dsn_passwords(url.render_as_string(hide_password=False)):
            said = said.replace(password, "***")
        raise DatabaseError(
            f"PostgreSQL at {_place(url)} cannot be used: {said}; check that it runs and that EVAL_PG_DSN is "
            "right (unset, it is the embedded server)"
        ) from None


def _own_server(written: str) -> URL:
    try:
        return make_url(written)
    except (ArgumentError, ValueError):
        pass
    raise DatabaseError(
        "EVAL_PG_DSN: the value (not shown) is no address; set postgresql://user:password@host:5432/database"
    )


def _quoted(identifier: str) -> str:
    return '"' + identifier.replace('"', '""') + '"'


def _make_database(server: embedded.Server, name: Database) -> None:
    if (server, name) in _made:
        return
    url = server.url(embedded.SUPERUSER).set(drivername="postgresql+psycopg")
    engine = create_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
    with explained(url), engine.connect() as connection, exclusively(connection, Lock.CREATE_DATABASE, name):
        there = connection.scalar(text("select true from pg_database where datname = :name"), {"name": name})
        if not there:
            connection.execute(_CREATE[name])
    _made.add((server, name))


def _place(url: URL) -> str:
    query_host = url.query.get("host", "")
    host = url.host or (query_host if isinstance(query_host, str) else ",".join(query_host)) or "localhost"
    return f"{host}{f':{url.port}' if url.port else ''}/{url.database or ''}"
