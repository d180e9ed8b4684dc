"""sql: questions to a database, answered by a query whose result is compared with that of the gold query.

The verdict, the query in an answer and the benchmark as an object belong here; when two results are the same to
:mod:`~eval_pipeline.benchmarks.sql_rows`, running a query to :mod:`eval_pipeline.tools.sql`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from eval_pipeline.benchmarks.base import DEFAULTS, Answer, AnswerKind, Score, Task
from eval_pipeline.benchmarks.fences import fenced_blocks, unfenced
from eval_pipeline.benchmarks.sql_data import load_sql, server_of, timeout_of
from eval_pipeline.benchmarks.sql_rows import (
    Row,
    canonical,
    column_arrangement,
    lists_equal,
    multisets_equal,
    ordered_equal,
)
from eval_pipeline.errors import ScorerError
from eval_pipeline.ids import shown
from eval_pipeline.tools.sql.runner import (
    MAX_QUERY,
    Database,
    Failed,
    QueryLimits,
    Result,
    Server,
    UnusableDatabaseError,
    dialect_of,
    run_queries,
)
from eval_pipeline.tools.sql.statements import Statement, statements, with_sort_keys

__all__ = ["Server", "Sql", "Verdict", "compare", "extract_sql"]

Reason = Literal["match", "row_count", "values", "columns", "order", "error", "timeout", "capped", "no_sql"]
Diagnosis = Literal["", "columns_permuted", "extra_columns"]

_LABELS = frozenset({"sql", "sqlite", "sqlite3", "postgresql", "postgres", "psql", "pgsql"})
_BEGINS_A_STATEMENT = re.compile(
    r"(?:\s++|--[^\n]*+\n|/\*(?:[^*]++|\*(?!/))*+\*/|\()*+"
    r"(?:select|with|values|insert|update|delete|replace|create|drop|alter|explain|pragma|attach|vacuum)\b",
    re.IGNORECASE,
)
_FORMAT_BLOCK = """\
Answer format: one SQL query (SELECT) in a block that begins with ```sql and ends with ```. Exactly one statement; if \
there are several blocks, the last one counts. Its result is compared with the right one: the columns in the order in \
which the question names them and no others, every row as often as it occurs, and the order of rows only where the \
question asks for one. Do not round unless the question says so.
The database can be looked at with the tools sql_schema, which returns its tables, and sql_query, which runs one \
reading query and shows the first rows of its result."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether two queries have the same result, and why not.

    ``detail`` says in words what ``reason`` means here, without quoting any value. ``diagnosis`` tells where only the
    columns are arranged otherwise, which is wrong all the same. ``weak`` is a gold result without rows, which too many
    wrong queries share. Counts of rows are ``None`` where there is no result.
    """

    match: bool
    reason: Reason
    detail: str
    diagnosis: Diagnosis = ""
    weak: bool = False
    rows: int | None = None
    gold_rows: int | None = None


def extract_sql(text: str) -> str | None:
    """The query of an answer, as it stands there: the last block that is labelled as SQL, else the last one without a
    label, else the whole text where it begins like a statement. ``None`` for none.
    """
    blocks = fenced_blocks(text)
    for labels in (_LABELS, frozenset({""})):
        bodies = [block.body.strip() for block in blocks if block.label in labels and block.body.strip()]
        if bodies:
            return bodies[-1]
    text = unfenced(text)
    return text if _BEGINS_A_STATEMENT.match(text) else None


def compare(
    predicted_sql: str | None,
    gold_sql: str,
    database: Path | str | Server,
    *,
    ordered: bool = False,
    limits: QueryLimits | None = None,
) -> Verdict:
    """Run both queries and compare their results.

    They match if they have as many columns, as many rows, and the same rows as multisets; with ``ordered`` also in the
    same order, but for rows between which the gold query's ``ORDER BY`` makes no difference. One fence around a query
    and a semicolon behind it are not part of it. ``database`` is a file of SQLite, or a :class:`Server`.

    Raises:
        ScorerError: the database cannot be used, or the gold query has no result that could be compared.
    """
    place: Database = database if isinstance(database, Server) else Path(database)
    gold = statements(unfenced(gold_sql), dialect_of(place))
    if len(gold) != 1:
        raise ScorerError(f"the gold query {shown(gold_sql)} is not one statement; correct the task")
    predicted = _one_statement(predicted_sql, place)
    if isinstance(predicted, Verdict):
        return predicted
    limits = limits or QueryLimits()
    try:
        wanted, given = run_queries([gold[0].text, predicted.text], place, limits)
        if isinstance(wanted, Failed):
            raise ScorerError(f"the gold query {shown(gold_sql)} has no result: {wanted.message}; correct the task")
        if isinstance(given, Failed):
            return _without_result(given, wanted, limits)
        return _compared(given, wanted, lambda: _order_keys(gold[0], wanted, place, limits) if ordered else None)
    except UnusableDatabaseError as error:
        raise ScorerError(str(error)) from error
