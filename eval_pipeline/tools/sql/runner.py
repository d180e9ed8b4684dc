"""Starts the process that runs queries, and ends it in bounded time whatever a query does.

What happens inside belongs to :mod:`eval_pipeline.tools.sql.child`; which statement is meant to
:mod:`eval_pipeline.tools.sql.statements`.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Literal, TypeAlias

from eval_pipeline.tools.errors import ToolError
from eval_pipeline.tools.sql.statements import Dialect

Cell: TypeAlias = "int | float | str | bytes | None"
Row: TypeAlias = tuple[Cell, ...]
Failure = Literal["error", "timeout", "capped"]

MAX_QUERY = 100_000
"""Characters of a query."""
_MIB = 1024 * 1024
_MEMORY = 1024 * _MIB
_START_S = 10.0
"""How long the process may take to start and to write a result, beside the time of its queries."""
_WAL = b"\x02"
_WAL_MARK = 18
"""Byte 18 of a file of SQLite is 2 where the database has a write-ahead log."""


@dataclass(frozen=True, slots=True)
class Server:
    """A PostgreSQL server, by the environment variable that holds its DSN; the DSN itself is never stored."""

    dsn_env: str


Database: TypeAlias = "Path | Server"


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """What one query may use: ``seconds``, and rows and about the ``size`` in bytes of its result."""

    seconds: float = 10.0
    rows: int = 100_000
    size: int = 32 * _MIB


@dataclass(frozen=True, slots=True)
class Result:
    """What a query returned. Texts are as they are stored; a text that is not UTF-8 holds surrogates."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Failed:
    """A query without a result: how it ended, and in words why."""

    failure: Failure
    message: str


class UnusableDatabaseError(ToolError):
    """The database itself cannot be opened; never the fault of a query."""


def run_queries(
    queries: Sequence[str], database: Database, limits: QueryLimits | None = None, *, check: bool = False
) -> list[Result | Failed]:
    """Run each of ``queries``, every one a single statement, in one process; one outcome for each, in their order.

    A query that takes the process with it leaves those behind it without a result too. With ``check`` nothing is run:
    a result without rows means that the statement reads, and that its tables and columns are there (SQLite only).

    Raises:
        UnusableDatabaseError: see :class:`UnusableDatabaseError`.
    """
    limits = limits or QueryLimits()
    outcomes: list[Result | Failed | None] = [_refused(query) for query in queries]
    asked = [index for index, outcome in enumerate(outcomes) if outcome is None]
    if asked:
        answers = _asked([queries[index] for index in asked], database, limits, "check" if check else "rows")
        for index, answer in zip(asked, answers, strict=True):
            outcomes[index] = answer
    return [outcome for outcome in outcomes if outcome is not None]


def schema(database: Database) -> list[str]:
    """The tables and views of ``database``, each as the text that describes it.

    Raises:
        UnusableDatabaseError: see :class:`UnusableDatabaseError`.
    """
    (answer,) = _asked([""], database, QueryLimits(), "schema")
    if isinstance(answer, Failed):
        raise UnusableDatabaseError(f"the schema cannot be read: {answer.message}")
    return [str(row[0]) for row in answer.rows]


def dialect_of(database: Database) -> Dialect:
    """In which dialect a query for ``database`` is written."""
    return "postgres" if isinstance(database, Server) else "sqlite"


def _refused(query: str) -> Failed | None:
    if len(query) > MAX_QUERY:
        return Failed("error", f"the query has {len(query):,} characters, at most {MAX_QUERY:,} are allowed")
    return None


def _asked(queries: list[str], database: Database, limits: QueryLimits, mode: str) -> list[Result | Failed]:
    request = {
        "kind": dialect_of(database),
        "database": _dsn(database) if isinstance(database, Server) else _uri(database),
        # an empty or relative entry means this process's folder, which is not the child's
        "path": [str(Path(entry).absolute()) for entry in sys.path],
        "mode": mode,
        "queries": queries,
        "seconds": limits.seconds,
        "rows": limits.rows,
        "bytes": limits.size,
        "memory": _MEMORY,
    }
    ended_in_time, lines = _talk(json.dumps(request).encode(), limits.seconds * len(queries) + _START_S)
    answers = [_outcome(line) for line in lines[: len(queries)]]
    missing = len(queries) - len(answers)
    lost = (
        Failed("error", "the query ended the process that ran it, at its limit of memory or time")
        if ended_in_time
        else Failed("timeout", "the query took too long and was stopped")
    )
    return [*answers, *[lost] * missing]


def _talk(request: bytes, seconds: float) -> tuple[bool, list[bytes]]:
    """Start the process and take in its whole lines; whether it ended by itself."""
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-B", "-X", "utf8", "-c", _child()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        # nothing of this process's environment: its secrets are no business of a query
        env={"PATH": os.defpath},
        cwd="/",
        start_new_session=True,
    )
    in_time = True
    try:
        output, _ = process.communicate(request, timeout=seconds)
    except subprocess.TimeoutExpired:
        in_time = False
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    if not in_time:
        output, _ = process.communicate()
    return in_time, output.split(b"\n")[:-1]


def _outcome(line: bytes) -> Result | Failed:
    answer = json.loads(line)
    if "unusable" in answer:
        raise UnusableDatabaseError(f"the database cannot be used: {answer['unusable']}")
    if "failed" in answer:
        return Failed(answer["failed"], answer["message"])
    rows = tuple(tuple(map(_cell, row)) for row in answer["rows"])
    return Result(tuple(answer["columns"]), rows)


def _cell(value: int | float | str | dict[str, str] | None) -> Cell:
    if not isinstance(value, dict):
        return value
    if "hex" in value:
        return bytes.fromhex(value["hex"])
    number = Decimal(value["number"])
    if number.is_finite() and -20 < number.adjusted() < 40 and number == number.to_integral_value():
        return int(number)
    return float(number)


def _uri(database: Path) -> str:
    path = database.absolute()
    try:
        with path.open("rb") as file:
            head = file.read(_WAL_MARK + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is no path"
        raise UnusableDatabaseError(f"the database {path.name} cannot be read: {reason}") from error
    # A log of its own cannot be made beside a file that is only read. Without one, nobody is writing either.
    unwritten = head[_WAL_MARK:] == _WAL and not path.with_name(f"{path.name}-wal").exists()
    return f"{path.as_uri()}?mode=ro{'&immutable=1' if unwritten else ''}"


def _dsn(server: Server) -> str:
    dsn = os.environ.get(server.dsn_env, "")
    if not dsn:
        raise UnusableDatabaseError(f"the environment variable {server.dsn_env} is not set; it must hold the DSN")
    return dsn


@cache
def _child() -> str:
    return files(__package__).joinpath("child.py").read_text(encoding="utf-8")
