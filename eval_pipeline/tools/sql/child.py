"""The program that runs queries and can do nothing else. Runs alone, with nothing of ours loaded.

It is passed to the interpreter as text; :mod:`eval_pipeline.tools.sql.runner` starts it and documents the two sides of
the talk. A JSON object on its standard input says what to do: ``kind``, ``database`` (a URI of SQLite or a DSN of
PostgreSQL), ``path`` (where Python looks for modules), ``mode`` (``rows``, ``check`` or ``schema``), ``queries``, and
the limits ``seconds`` for each query, ``rows`` and ``bytes`` for its result, ``memory`` for the process.

For each query one JSON line comes back: ``columns`` and ``rows``, or ``failed`` (``error``, ``timeout`` or ``capped``)
with ``message``; a line ``unusable`` says that the database cannot be used. Bytes are ``{"hex": …}``, a decimal number
``{"number": …}``.
"""

from __future__ import annotations

import json
import resource
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

# SQLITE_READ, SQLITE_SELECT, SQLITE_FUNCTION, SQLITE_RECURSIVE; not in the module before Python 3.12 by all names
_READ, _SELECT, _FUNCTION, _RECURSIVE = 20, 21, 31, 33
_FORBIDDEN_FUNCTIONS = {"load_extension", "readfile", "writefile", "edit", "fts3_tokenizer"}
_STEPS = 1000
"""Instructions of SQLite's machine between two looks at the clock."""
_MIB = 1024 * 1024
_LENGTH = 1_000_000
"""Bytes of one value in SQLite."""
_FETCHED = 500

_BOOL, _BYTEA, _NUMERIC = 16, 17, 1700
_INTEGERS, _FLOATS = {20, 21, 23, 26}, {700, 701}
_FATAL, _TUPLES = 7, 2  # PGRES_FATAL_ERROR, PGRES_TUPLES_OK
_CANCELED = b"57014"

_SQLITE_SCHEMA = """
select sql from sqlite_master where sql is not null and name not like 'sqlite\\_%' escape '\\'
order by case type when 'table' then 1 when 'view' then 2 else 3 end, name
"""
_POSTGRES_SCHEMA = """
select format('%s %I.%I (%s)',
    case c.relkind when 'v' then 'VIEW' when 'm' then 'MATERIALIZED VIEW' else 'TABLE' end, n.nspname, c.relname,
    concat_ws(', ',
        (select string_agg(format('%I %s%s', a.attname, format_type(a.atttypid, a.atttypmod),
                case when a.attnotnull then ' NOT NULL' else '' end), ', ' order by a.attnum)
            from pg_attribute a where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped),
        (select string_agg(pg_get_constraintdef(k.oid), ', ' order by k.contype desc, k.conname)
            from pg_constraint k where k.conrelid = c.oid and k.contype in ('p', 'u', 'f'))))
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'p', 'v', 'm', 'f') and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
    and has_schema_privilege(n.oid, 'usage') and has_table_privilege(c.oid, 'select')
order by c.relkind, n.nspname, c.relname
"""


class Failed(Exception):  # noqa: N818 - how a query ended
    """A query that has no result: ``failed`` says how, the message why."""

    def __init__(self, failed: str, message: str) -> None:
        super().__init__(message)
        self.failed = failed


class Unusable(Exception):  # noqa: N818 - as above
    """A database that cannot be opened or read."""


def main() -> None:
    task = json.load(sys.stdin.buffer)
    sys.path[:] = task["path"]
    limit(task)
    run = {"sqlite": sqlite, "postgres": postgres}[task["kind"]]
    try:
        for answer in run(task):
            tell(answer)
    except Unusable as error:
        tell({"unusable": str(error)})


def tell(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer, ensure_ascii=True, separators=(",", ":")) + "\n")
    sys.stdout.flush()


def limit(task: dict[str, Any]) -> None:
    seconds = int(task["seconds"] * max(1, len(task["queries"]))) + 5
    limits = {"RLIMIT_AS": task["memory"], "RLIMIT_CPU": seconds, "RLIMIT_FSIZE": 0, "RLIMIT_CORE": 0}
    for name, value in limits.items():
        _, highest = resource.getrlimit(getattr(resource, name))
        most = value if highest == resource.RLIM_INFINITY else min(value, highest)
        resource.setrlimit(getattr(resource, name), (most, most))


class Rows:
    """The rows of one result, up to its limits."""

    def __init__(self, task: dict[str, Any]) -> None:
        self.rows: list[list[Any]] = []
        self._most, self._room = task["rows"], task["bytes"]

    def add(self, row: list[Any]) -> None:
        self._room -= 8 + sum(map(size_of, row))
        if len(self.rows) >= self._most:
            raise Failed("capped", f"the result has more than {self._most:,} rows")
        if self._room < 0:
            raise Failed("capped", "the result is too large")
        self.rows.append(row)


def size_of(cell: Any) -> int:
    """About the bytes of a cell in its JSON."""
    if isinstance(cell, dict):
        cell = next(iter(cell.values()))
    return len(cell) if isinstance(cell, str) else 8


def outcome(run: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
    try:
        return run(*arguments)
    except Failed as error:
        return {"failed": error.failed, "message": str(error)}
    except MemoryError:
        return {"failed": "error", "message": "out of memory"}


# --- SQLite
# ---------------------------------------------------------------------------------------------------------------


def sqlite(task: dict[str, Any]) -> Any:
    import sqlite3  # noqa: PLC0415 - only one of the two is needed

    try:
        connection = sqlite3.connect(task["database"], uri=True, isolation_level=None)
        connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
        # nothing may be written, so what is sorted stays in memory, of which there is an end
        connection.execute("pragma temp_store = memory")
        connection.execute(f"pragma hard_heap_limit = {task['memory'] // 2}")
        connection.execute("pragma trusted_schema = off")
        tables = [row[0] for row in connection.execute(_SQLITE_SCHEMA)]
    except sqlite3.Error as error:
        raise Unusable(str(error)) from None
    if task["mode"] == "schema":
        yield {"columns": ["sql"], "rows": [[table] for table in tables]}
        return
    for name, value in (
        ("LENGTH", _LENGTH),
        ("SQL_LENGTH", _LENGTH),
        ("LIKE_PATTERN_LENGTH", 1000),
        ("ATTACHED", 0),
        ("WORKER_THREADS", 0),
    ):
        connection.setlimit(getattr(sqlite3, f"SQLITE_LIMIT_{name}"), value)
    connection.set_authorizer(permitted)
    for query in task["queries"]:
        yield outcome(sqlite_rows, connection, query, task)


def permitted(action: int, first: str | None, second: str | None, *_: str | None) -> int:
    """The authorizer: SQLITE_OK for reading and computing, SQLITE_DENY for everything else."""
    if action in (_READ, _SELECT, _RECURSIVE):
        return 0
    if action == _FUNCTION and (second or "").lower() not in _FORBIDDEN_FUNCTIONS:
        return 0
    return 1


def sqlite_rows(connection: Any, query: str, task: dict[str, Any]) -> dict[str, Any]:
    import sqlite3  # noqa: PLC0415

    deadline = time.monotonic() + task["seconds"]
    connection.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS)
    rows = Rows(task)
    cursor = None
    try:
        cursor = connection.execute(f"EXPLAIN {query}" if task["mode"] == "check" else query)
        columns = [column[0] for column in cursor.description or ()]
        if not columns:
            raise Failed("error", "the statement returns no result")
        while task["mode"] != "check" and (fetched := cursor.fetchmany(_FETCHED)):
            for row in fetched:
                rows.add([{"hex": cell.hex()} if isinstance(cell, bytes) else cell for cell in row])
    except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
        late = time.monotonic() > deadline
        raise Failed("timeout" if late else "error", str(error)) from None
    finally:
        if cursor is not None:
            cursor.close()
    return {"columns": columns, "rows": rows.rows}


# --- PostgreSQL
# -----------------------------------------------------------------------------------------------------------


def postgres(task: dict[str, Any]) -> Any:
    import psycopg  # noqa: PLC0415

    try:
        connection = psycopg.connect(task["database"], connect_timeout=5, client_encoding="utf8")
    except psycopg.Error as error:
        # what is wrong with the text of a DSN would be told by quoting it
        text = str(error).strip().split("\n")[0]
        raise Unusable(text if text.startswith("connection ") else "the DSN cannot be used") from None
    for name, value in (
        ("default_transaction_read_only", "on"),
        ("statement_timeout", str(int(task["seconds"] * 1000))),
        ("lock_timeout", "1000"),
        ("idle_in_transaction_session_timeout", "60000"),
        # what a value looks like as text must not depend on the server
        ("timezone", "UTC"),
        ("datestyle", "ISO"),
        ("intervalstyle", "postgres"),
        ("bytea_output", "hex"),
        ("extra_float_digits", "1"),
    ):
        connection.execute("select pg_catalog.set_config(%s, %s, false)", [name, value])
    connection.commit()
    queries = [_POSTGRES_SCHEMA] if task["mode"] == "schema" else task["queries"]
    for query in queries:
        yield outcome(postgres_rows, connection, query, task)
        connection.rollback()


def postgres_rows(connection: Any, query: str, task: dict[str, Any]) -> dict[str, Any]:
    deadline = time.monotonic() + task["seconds"]
    late = threading.Timer(task["seconds"], connection.cancel)
    late.daemon = True
    late.start()
    rows = Rows(task)
    try:
        send(connection, b"begin transaction read only")
        if "\0" in query:
            raise Failed("error", "the query holds a NUL character")
        # the extended protocol takes one statement, and a cursor takes only one that reads
        send(connection, b"declare q no scroll cursor for " + query.encode())
        columns: list[str] = []
        while True:
            if time.monotonic() > deadline:
                raise Failed("timeout", "the query took too long")
            result = send(connection, b"fetch forward %d from q" % _FETCHED)
            kinds = [result.ftype(place) for place in range(result.nfields)]
            columns = columns or [(result.fname(place) or b"").decode() for place in range(result.nfields)]
            for row in range(result.ntuples):
                rows.add([cell(result.get_value(row, place), kind) for place, kind in enumerate(kinds)])
            if result.ntuples < _FETCHED:
                return {"columns": columns, "rows": rows.rows}
    except UnicodeEncodeError:
        raise Failed("error", "the query holds half of a surrogate pair") from None
    finally:
        late.cancel()


def send(connection: Any, statement: bytes) -> Any:
    result = connection.pgconn.exec_params(statement, None)
    if result.status == _FATAL:
        state, message = result.error_field(ord("C")), result.error_field(ord("M")) or b"the query failed"
        raise Failed("timeout" if state == _CANCELED else "error", message.decode("utf-8", "replace"))
    return result


def cell(data: bytes | None, kind: int) -> Any:
    if data is None:
        return None
    text = data.decode("utf-8", "surrogateescape")
    if kind in _INTEGERS:
        return int(text)
    if kind == _BOOL:
        return int(text == "t")
    if kind in _FLOATS:
        return float(text)
    if kind == _NUMERIC:
        return {"number": text}
    if kind == _BYTEA:
        return {"hex": text.removeprefix("\\x")}
    return text


if __name__ == "__main__":
    main()
