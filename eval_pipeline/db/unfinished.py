"""What is unfinished right now in the batches of a suite. Not an inconsistency: something that a launch mends."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import Engine

from eval_pipeline.db.checks import SAMPLE, Check, CheckResult
from eval_pipeline.db.sqlfiles import query


def crashed_cells(engine: Engine, suite: str, check: Check) -> CheckResult:
    """Cells whose live try crashed."""
    return _found(engine, "crashed_cells", suite, check)


def unended_cells(engine: Engine, suite: str, check: Check) -> CheckResult:
    """Planned cells without an ended live try."""
    return _found(engine, "unended_cells", suite, check)


def _found(engine: Engine, name: str, suite: str, check: Check) -> CheckResult:
    with engine.connect() as connection:
        rows: list[Mapping[str, object]] = [
            {str(column): value for column, value in row.items()}
            for row in connection.execute(query(name), {"suite": suite}).mappings()
        ]
    return CheckResult(check, tuple(rows[:SAMPLE]), len(rows))
