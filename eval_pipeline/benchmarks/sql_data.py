"""The task files of sql: which keys a row has beside the shared ones, and the check that every gold query reads.

Keys: ``gold_sql`` (one query); ``file_name``, the SQLite database, or else ``dsn_env``, the environment variable with
the DSN of a PostgreSQL server; ``ordered`` (whether the order of rows counts, by default false); ``timeout_s`` (seconds
for each query, 1 to 120, by default 10).
"""

from __future__ import annotations

import os
import re
from functools import lru_cache
from pathlib import Path

from eval_pipeline.benchmarks.base import Task
from eval_pipeline.benchmarks.fences import unfenced
from eval_pipeline.benchmarks.rows import Row
from eval_pipeline.benchmarks.tasks_file import load_tasks_file
from eval_pipeline.ids import shown
from eval_pipeline.jsontypes import JsonObject
from eval_pipeline.tools.sql.runner import Database, Failed, Server, UnusableDatabaseError, dialect_of, run_queries
from eval_pipeline.tools.sql.statements import statements

TIMEOUT_S = 10.0
_KEYS = frozenset({"gold_sql", "ordered", "dsn_env", "timeout_s"})
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,119}")


def load_sql(data_dir: Path) -> list[Task]:
    """Every task of ``data_dir/tasks.jsonl``; each gold query is checked against its SQLite database, but not run.

    Raises:
        TaskDataError: see :func:`~eval_pipeline.benchmarks.tasks_file.load_tasks_file`; also a gold query that does not
            read, a database that cannot be opened, and a DSN variable that is not set.
    """
    rows: list[Row] = []

    def own(row: Row) -> tuple[str, JsonObject]:
        rows.append(row)
        return _own(row)

    tasks = load_tasks_file(data_dir, "sql", _KEYS, own)
    databases: dict[Path, list[int]] = {}
    for index, (task, row) in enumerate(zip(tasks, rows, strict=True)):
        if (task.attachment is None) == (task.dsn_env is None):
            raise row.wrong("file_name", "must name the SQLite database, or dsn_env a server; write one of the two")
        if task.attachment is not None:
            databases.setdefault(task.attachment.path, []).append(index)
    for path, indexes in databases.items():
        _check(path, [tasks[index] for index in indexes], [rows[index] for index in indexes])
    return tasks


def database_of(task: Task) -> Database:
    """Where the queries of ``task`` are run."""
    if task.dsn_env is not None:
        return Server(task.dsn_env)
    assert task.attachment is not None
    return task.attachment.path


def _own(row: Row) -> tuple[str, JsonObject]:
    gold = row.text("gold_sql")
    extra: JsonObject = {"ordered": bool(row.flag("ordered"))}
    variable = row.optional_text("dsn_env")
    if variable:
        if not _VARIABLE.fullmatch(variable):
            raise row.wrong("dsn_env", "is not the name of an environment variable; the DSN itself stays out of files")
        if not os.environ.get(variable):
            raise row.wrong("dsn_env", f"names {variable}, which is not set; set it to the DSN of a reading role")
        extra["dsn_env"] = variable
    timeout = row.values.get("timeout_s")
    if timeout is not None:
        if not isinstance(timeout, int | float) or isinstance(timeout, bool) or not 1 <= timeout <= 120:
            raise row.wrong("timeout_s", f"is {shown(timeout)}; write a number of seconds from 1 to 120")
        extra["timeout_s"] = timeout
    found = statements(unfenced(gold), "postgres" if variable else "sqlite")
    if len(found) != 1:
        raise row.wrong("gold_sql", f"has {len(found)} statements; write one query")
    return gold, extra


def _check(path: Path, tasks: list[Task], rows: list[Row]) -> None:
    attachment = tasks[0].attachment
    assert attachment is not None
    log = path.with_name(f"{path.name}-wal")
    if log.exists() and log.stat().st_size:
        why = f"names a database with changes in {shown(log.name)}; run PRAGMA wal_checkpoint(TRUNCATE) on it"
        raise rows[0].wrong("file_name", why)
    try:
        broken = _first_broken(path, attachment.sha256, tuple(unfenced(task.gold) for task in tasks))
    except UnusableDatabaseError as error:
        raise rows[0].wrong("file_name", f"names {shown(attachment.file_name)}: {error}") from None
    if broken is not None:
        raise rows[broken[0]].wrong("gold_sql", f"does not read: {broken[1]}")


@lru_cache(maxsize=256)
def _first_broken(path: Path, sha256: str, golds: tuple[str, ...]) -> tuple[int, str] | None:
    """Which of the gold queries does not read, and why; the digest makes an edited database another one."""
    del sha256
    queries = [statements(gold, dialect_of(path))[0].text for gold in golds]
    outcomes = run_queries(queries, path, check=True)
    return next(((i, outcome.message) for i, outcome in enumerate(outcomes) if isinstance(outcome, Failed)), None)
