"""``sql_schema`` and ``sql_query``: the task's database as a model sees it, in texts of bounded length."""

from __future__ import annotations

from pathlib import Path

from eval_pipeline.tools.errors import ToolError, ToolTimeoutError
from eval_pipeline.tools.sql.runner import (
    Cell,
    Database,
    Failed,
    QueryLimits,
    Result,
    Server,
    dialect_of,
    run_queries,
    schema,
)
from eval_pipeline.tools.sql.statements import statements

SHOWN_ROWS = 50
MAX_CHARACTERS = 20_000
"""Characters of one answer."""
_CELL = 200
_LIMITS = QueryLimits(seconds=10.0, rows=1000, size=4 * 1024 * 1024)


def database_of(attachment: Path | None, dsn_env: str | None) -> Database:
    """The database of a run.

    Raises:
        ToolError: it has none.
    """
    if dsn_env is not None:
        return Server(dsn_env)
    if attachment is None:
        raise ToolError("this task has no database")
    return attachment


def describe(database: Database) -> str:
    """The tables and views of ``database``, one below the other.

    Raises:
        ToolError: it cannot be opened.
    """
    return _cut("\n\n".join(schema(database)) or "(the database has no tables)")


def query(sql: str, database: Database) -> str:
    """The result of ``sql`` as lines of text: the columns, at most 50 rows, and how many rows there are.

    Raises:
        ToolError: it is not one statement, may not be run, or has too large a result; the message says which.
        ToolTimeoutError: it took longer than ten seconds.
    """
    found = statements(sql, dialect_of(database))
    if len(found) != 1:
        raise ToolError(f"the query has {len(found)} statements; send exactly one")
    (outcome,) = run_queries([found[0].text], database, _LIMITS)
    if isinstance(outcome, Result):
        return _cut(_table(outcome))
    raise _error(outcome)


def _error(failed: Failed) -> ToolError:
    match failed.failure:
        case "timeout":
            return ToolTimeoutError(f"the query took longer than {_LIMITS.seconds:g} s and was stopped")
        case "capped":
            return ToolError(f"{failed.message}; count, group or limit it")
        case "error":
            return ToolError(f"the query failed: {failed.message}")


def _table(result: Result) -> str:
    lines = [" | ".join(map(_shown, result.columns))]
    lines += [" | ".join(map(_shown, row)) for row in result.rows[:SHOWN_ROWS]]
    count = len(result.rows)
    if count > SHOWN_ROWS:
        return "\n".join([*lines, f"({count} rows, the first {SHOWN_ROWS} are shown)"])
    return "\n".join([*lines, f"({count} row{'' if count == 1 else 's'})"])


def _shown(cell: Cell) -> str:
    if cell is None:
        return "NULL"
    if isinstance(cell, bytes):
        cell = f"x'{cell[:_CELL].hex()}'"
    text = str(cell).encode("utf-8", "replace").decode().replace("\n", "\\n").replace("\r", "\\r")
    return text if len(text) <= _CELL else f"{text[:_CELL]}…"


def _cut(text: str) -> str:
    cut = "\n[cut]"
    return text if len(text) <= MAX_CHARACTERS else text[: MAX_CHARACTERS - len(cut)] + cut
