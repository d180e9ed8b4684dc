"""Runs two queries and says whether their results match, and if not, why.

When two results are the same belongs to :mod:`~eval_pipeline.benchmarks.sql_rows`, how a query is run to
:mod:`eval_pipeline.tools.sql`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from eval_pipeline.benchmarks.fences import unfenced
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

Reason = Literal["match", "row_count", "values", "columns", "order", "error", "timeout", "capped", "no_sql"]
Diagnosis = Literal["", "columns_permuted", "extra_columns"]
_SHOWN_ERROR = 200


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether two queries have the same result, and why not.

    ``detail`` says in words what ``reason`` means here, without quoting a value of the gold result. ``diagnosis`` tells
    where only the columns are arranged otherwise, which is wrong all the same. ``weak`` is a gold result without rows,
    which too many wrong queries share. Counts of rows are ``None`` where the predicted query has no result.
    """

    match: bool
    reason: Reason
    detail: str
    diagnosis: Diagnosis = ""
    weak: bool = False
    rows: int | None = None
    gold_rows: int | None = None


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
    and a semicolon behind it are not part of it. ``database`` is a file of SQLite, or a :class:`Server`; ``limits`` are
    those of each query.

    Raises:
        ScorerError: the database cannot be used, or the gold query has no result that could be compared.
    """
    place: Database = database if isinstance(database, Server) else Path(database)
    limits = limits or QueryLimits()
    gold = statements(unfenced(gold_sql), dialect_of(place))
    if len(gold) != 1:
        raise ScorerError(f"the gold query {shown(gold_sql)} is not one statement; correct the task")
    predicted = predicted_statement(predicted_sql, place)
    if isinstance(predicted, Verdict):
        return predicted
    try:
        wanted, given = run_queries([gold[0].text, predicted.text], place, limits)
        if isinstance(wanted, Failed):
            raise ScorerError(f"the gold query {shown(gold_sql)} has no result: {wanted.message}; correct the task")
        if isinstance(given, Failed):
            verdict = _without_result(given, limits)
        else:
            verdict = _compared(given, wanted)
            if verdict.match and ordered and not _in_order(given, wanted, gold[0], place, limits):
                detail = "the rows match, but do not stand in the order that the task asks for"
                verdict = replace(verdict, match=False, reason="order", detail=detail)
    except UnusableDatabaseError as error:
        raise ScorerError(f"{error}; correct the task or its database") from error
    return replace(verdict, weak=not wanted.rows, gold_rows=len(wanted.rows))


def predicted_statement(predicted_sql: str | None, database: Database) -> Statement | Verdict:
    """The one statement of ``predicted_sql``, or the verdict on what is none."""
    if predicted_sql is None:
        return Verdict(False, "no_sql", "the answer has no query")
    if len(predicted_sql) > MAX_QUERY:
        return Verdict(False, "error", f"the query is longer than {MAX_QUERY:,} characters")
    found = statements(unfenced(predicted_sql), dialect_of(database))
    if len(found) > 1:
        return Verdict(False, "error", f"there are {len(found)} statements where one is asked for")
    return found[0] if found else Verdict(False, "no_sql", "the query is empty")


def _without_result(failed: Failed, limits: QueryLimits) -> Verdict:
    match failed.failure:
        case "timeout":
            return Verdict(False, "timeout", f"the query took longer than {limits.seconds:g} s")
        case "capped":
            return Verdict(False, "capped", f"{failed.message}, too many to be compared")
        case "error":
            line = " ".join(failed.message.split())
            text = line if line.isprintable() and len(line) <= _SHOWN_ERROR else shown(line)
            return Verdict(False, "error", f"the query cannot be run: {text}")


def _compared(given: Result, wanted: Result) -> Verdict:
    """The verdict on results as multisets of rows."""
    width = len(given.columns), len(wanted.columns)
    rows, gold_rows = len(given.rows), len(wanted.rows)
    ours, theirs = canonical(given.rows), canonical(wanted.rows)
    verdict = Verdict(False, "values", "the result has other values than the gold query's", rows=rows)
    if width[0] == width[1] and rows == gold_rows and multisets_equal(ours, theirs):
        return replace(verdict, match=True, reason="match", detail=f"the results match ({_count(rows, 'row')})")
    if width[0] != width[1]:
        detail = f"the result has {_count(width[0], 'column')} where the gold query's has {width[1]}"
        verdict = replace(verdict, reason="columns", detail=detail)
    elif rows != gold_rows:
        detail = f"the result has {_count(rows, 'row')} where the gold query's has {gold_rows}"
        return replace(verdict, reason="row_count", detail=detail)
    if column_arrangement(ours, theirs, width):
        if width[0] == width[1]:
            return replace(verdict, diagnosis="columns_permuted", detail="the right columns stand in another order")
        return replace(verdict, diagnosis="extra_columns", detail=f"{verdict.detail}; the right ones are among them")
    return verdict


def _in_order(given: Result, wanted: Result, gold: Statement, database: Database, limits: QueryLimits) -> bool:
    """Whether rows that match as multisets also stand in the right order."""
    ours, theirs = canonical(given.rows), canonical(wanted.rows)
    if lists_equal(ours, theirs):
        return True
    keyed = with_sort_keys(gold, list(wanted.columns))
    if keyed is None:
        return False
    sql, numbers = keyed
    rows: Sequence[Row] = theirs
    if sql != gold.text:
        (result,) = run_queries([sql], database, limits)
        if isinstance(result, Failed):
            return False
        rows = canonical(result.rows)
    right = [row[: len(wanted.columns)] for row in rows]
    keys = [tuple(row[number] for number in numbers) for row in rows]
    # further columns can change which of equal rows a LIMIT cuts off; then there is no telling
    return multisets_equal(right, theirs) and ordered_equal(ours, right, keys)


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
