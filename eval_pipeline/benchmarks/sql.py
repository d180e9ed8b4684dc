"""sql: questions to a database, answered by a query whose result is compared with that of the gold query.

The query in an answer and the benchmark as an object belong here; the verdict to
:mod:`~eval_pipeline.benchmarks.sql_compare`, task files to :mod:`~eval_pipeline.benchmarks.sql_data`, running a query
to :mod:`eval_pipeline.tools.sql`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from eval_pipeline.benchmarks.base import DEFAULTS, Answer, AnswerKind, Score, Task
from eval_pipeline.benchmarks.fences import fenced_blocks, unfenced
from eval_pipeline.benchmarks.sql_compare import Verdict, compare, predicted_statement
from eval_pipeline.benchmarks.sql_data import TIMEOUT_S, database_of, load_sql
from eval_pipeline.tools.sql.runner import QueryLimits, Server

__all__ = ["Server", "Sql", "Verdict", "compare", "extract_sql"]

_LABELS = frozenset({"sql", "sqlite", "sqlite3", "postgresql", "postgres", "psql", "pgsql"})
_BEGINS_A_STATEMENT = re.compile(
    r"(?:\s++|--[^\n]*+\n|/\*(?:[^*]++|\*(?!/))*+\*/|\()*+"
    r"(?:select|with|values|insert|update|delete|replace|create|drop|alter|explain|pragma|attach|vacuum)\b",
    re.IGNORECASE,
)
_FORMAT_BLOCK = """\
Answer format: one SQL query in a block that begins with ```sql and ends with ```. It is exactly one SELECT statement; \
if there are several blocks, the last one counts. Its result is compared with the right one: the columns in the order \
in which the question names them and no others, every row as often as it occurs, and the order of the rows only where \
the question asks for one. Do not round unless the question says so.
The task's database can be looked at with two tools: sql_schema() returns its tables, sql_query(query) runs one query \
that reads and shows the first rows of its result."""


def extract_sql(text: str) -> str | None:
    """The query of an answer, as it stands there; ``None`` for none.

    It is the last block that is labelled as SQL, else the last one without a label, else the whole text where it begins
    like a statement.
    """
    blocks = [block for block in fenced_blocks(text) if block.body.strip()]
    for labels in (_LABELS, frozenset({""})):
        bodies = [block.body for block in blocks if block.label in labels]
        if bodies:
            return bodies[-1].strip()
    text = unfenced(text)
    return text if _BEGINS_A_STATEMENT.match(text) else None


class Sql:
    """sql, its task files and its rule; see :class:`eval_pipeline.benchmarks.base.Benchmark`."""

    name: str = "sql"
    answers: AnswerKind = "text"
    scorer_version: str = "sql-1"
    format_block: str = _FORMAT_BLOCK
    thresholds: Mapping[str, float] = DEFAULTS
    tools: tuple[str, ...] = ("sql_schema", "sql_query")
    needs_evidence: bool = False
    grounding_table: str | None = None

    def load(self, data_dir: Path) -> list[Task]:
        return load_sql(data_dir)

    def score(self, task: Task, answer: Answer, thresholds: Mapping[str, float] = DEFAULTS) -> Score:
        """See :meth:`eval_pipeline.benchmarks.base.Benchmark.score`.

        Raises:
            ScorerError: the database or the gold query cannot be used, so that no answer could be judged.
        """
        query, database = extract_sql(answer.full_text), database_of(task)
        timeout = task.extra.get("timeout_s", TIMEOUT_S)
        limits = QueryLimits(seconds=float(timeout) if isinstance(timeout, int | float) else TIMEOUT_S)
        verdict = compare(query, task.gold, database, ordered=bool(task.extra.get("ordered")), limits=limits)
        one_statement = not isinstance(predicted_statement(query, database), Verdict)
        weak = "; the gold result has no rows, which proves little" if verdict.match and verdict.weak else ""
        return Score(
            success=verdict.match,
            format_valid=one_statement,
            metrics=_metrics(verdict),
            reason=f"{verdict.reason}: {verdict.detail}{weak}",
        )


def _metrics(verdict: Verdict) -> dict[str, float]:
    figures = {
        "executed": verdict.rows is not None,
        "columns_permuted": verdict.diagnosis == "columns_permuted",
        "extra_columns": verdict.diagnosis == "extra_columns",
        "weak_gold": verdict.weak,
    }
    rows = {"rows": verdict.rows, "gold_rows": verdict.gold_rows}
    return {name: float(value) for name, value in {**figures, **rows}.items() if value is not None}
