"""Questions to the database whose answer must be "no row", with what a row means and what to do about it.

The SQL of a check is ``sql/checks/<name>.sql``. What only Dagster knows, such as which cells it calls materialized, is
compared where Dagster is at hand.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, Engine, Select, func, literal_column, select, text

from eval_pipeline.db import sqlfiles
from eval_pipeline.db.dsn import explained

SAMPLE = 20
"""Most rows of a finding that are shown; all are counted."""


@dataclass(frozen=True, slots=True)
class Check:
    """One consistency query. ``meaning`` says what a row is, ``remedy`` what to do about it."""

    name: str
    meaning: str
    remedy: str


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What a check found: ``count`` rows, of which ``rows`` are at most :data:`SAMPLE`."""

    check: Check
    rows: tuple[Mapping[str, object], ...]
    count: int

    @property
    def passed(self) -> bool:
        return self.count == 0


CHECKS = (
    Check(
        "completed_without_verdict",
        "a completed run has no verdict",
        "score the batch again with `eval-pipeline rescore`",
    ),
    Check(
        "tool_call_without_outcome",
        "in a try that has ended, a tool was called and neither its result nor an error follows",
        "if the try's process was killed, run the batch again; else report it, a trace must close its calls",
    ),
    Check(
        "gap_in_seq",
        "the events of a try that has ended are not numbered 0, 1, 2 … although it reports none as dropped",
        "do not use the trace of this try; its verdict is not touched",
    ),
    Check(
        "stale_heartbeat",
        "a live try is marked running, but its process has given no sign of life for a minute",
        "run the batch again: such a try counts as crashed and is tried again with --retry-crashed",
    ),
    Check(
        "task_hash_differs",
        "a run answered another content of its task than its batch's contract names",
        "leave the run out of comparisons and start a new batch with the changed tasks",
    ),
    Check(
        "cell_without_live_try",
        "all tries of a cell are superseded and none is the live one, so the cell counts as not run",
        "run the batch again: the cell gets a new try",
    ),
)


def run_checks(engine: Engine) -> list[CheckResult]:
    """Run every check, in the order of :data:`CHECKS`; changes nothing.

    Raises:
        DatabaseError: the database cannot be used, or it has not been migrated.
    """
    with explained(engine.url), engine.connect() as connection:
        return [_run(connection, check) for check in CHECKS]


def _run(connection: Connection, check: Check) -> CheckResult:
    statement = sqlfiles.read(sqlfiles.sql_folder() / "checks" / f"{check.name}.sql").text
    finding = text(statement).columns().subquery("finding")
    count = connection.execute(select(func.count()).select_from(finding)).scalar_one()
    if not count:
        return CheckResult(check, (), 0)
    sample: Select[tuple[object, ...]] = select(literal_column("*")).select_from(finding).limit(SAMPLE)
    rows = connection.execute(sample).mappings()
    return CheckResult(check, tuple(dict(row) for row in rows), count)
