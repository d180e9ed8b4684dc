"""The checks of ``<suite>/runs``: what must hold of the whole table, and what is unfinished right now.

They run with the summaries, never in the step that runs cells: its outputs are not yielded, so Dagster would skip them.
Each says how many rows it found, shows a few, and says what to do.
"""

# no postponed annotations here: Dagster reads the type of a check's context at import
from collections.abc import Callable, Mapping, Sequence

import dagster as dg
from sqlalchemy import Engine

from eval_pipeline.assets.common import database, one_line_errors
from eval_pipeline.assets.lease import LEASE
from eval_pipeline.assets.mirror import mirror_check
from eval_pipeline.assets.partitions import Family
from eval_pipeline.db.checks import SAMPLE, Check, CheckResult, run_checks
from eval_pipeline.db.unfinished import crashed_cells, unended_cells
from eval_pipeline.markdown import table
from eval_pipeline.settings import load_settings
from eval_pipeline.suites import Suite

_CRASHED = Check(
    "no_run_left_crashed",
    "the live try of these cells crashed, so they have no verdict",
    "launch the batch with 'only failed and missing', or run it with --retry-crashed",
)
_UNENDED = Check(
    "every_planned_run_has_ended",
    "these cells were asked for and have no ended run",
    "if nothing is running, launch the batch again: what is done costs nothing",
)


def _result(findings: Sequence[CheckResult], severity: dg.AssetCheckSeverity) -> dg.AssetCheckResult:
    failed = [finding for finding in findings if not finding.passed]
    metadata: dict[str, dg.MetadataValue | int] = {"found": sum(finding.count for finding in failed)}
    for finding in failed:
        # a check of one query needs no name for it
        where = f"{finding.check.name}: " if len(findings) > 1 else ""
        metadata[f"{where}found"] = finding.count
        metadata[f"{where}what_it_means"] = dg.MetadataValue.text(finding.check.meaning)
        metadata[f"{where}what_to_do"] = dg.MetadataValue.text(finding.check.remedy)
        metadata[f"{where}sample"] = dg.MetadataValue.md(_sample(finding.rows))
    return dg.AssetCheckResult(passed=not failed, severity=severity, metadata=metadata)


def _sample(rows: Sequence[Mapping[str, object]]) -> str:
    if not rows:
        return "–"
    return table(list(rows[0]), [tuple(row.values()) for row in rows[:SAMPLE]])


def _of_database(instance: dg.DagsterInstance, engine: Engine, suite: str) -> list[CheckResult]:
    named = ("completed_without_verdict", "stale_heartbeat", "cell_without_live_try")
    return [*_queries(engine, named), mirror_check(instance, engine)]


def _of_contract(instance: dg.DagsterInstance, engine: Engine, suite: str) -> list[CheckResult]:
    return _queries(engine, ("task_hash_differs",))


def _of_traces(instance: dg.DagsterInstance, engine: Engine, suite: str) -> list[CheckResult]:
    return _queries(engine, ("gap_in_seq", "tool_call_without_outcome"))


def _of_crashes(instance: dg.DagsterInstance, engine: Engine, suite: str) -> list[CheckResult]:
    return [crashed_cells(engine, suite, _CRASHED)]


def _of_plan(instance: dg.DagsterInstance, engine: Engine, suite: str) -> list[CheckResult]:
    return [unended_cells(engine, suite, _UNENDED)]


def _queries(engine: Engine, names: Sequence[str]) -> list[CheckResult]:
    return [result for result in run_checks(engine) if result.check.name in names]


_ERROR, _WARN = dg.AssetCheckSeverity.ERROR, dg.AssetCheckSeverity.WARN
Finder = Callable[[dg.DagsterInstance, Engine, str], list[CheckResult]]
_CHECKS: tuple[tuple[str, str, dg.AssetCheckSeverity, Finder], ...] = (
    (
        "consistency",
        "Verdicts, heartbeats and live tries fit together, and Dagster's cells fit them.",
        _ERROR,
        _of_database,
    ),
    ("contract", "Every run answered the tasks that its batch's contract names.", _ERROR, _of_contract),
    (
        "trace_completeness",
        "No event of an ended try is missing, and every tool call has its outcome.",
        _ERROR,
        _of_traces,
    ),
    (_CRASHED.name, "No cell is left with a crashed live try. A crash stays in the denominator.", _WARN, _of_crashes),
    (_UNENDED.name, "Every cell that a launch ever asked for has an ended run.", _WARN, _of_plan),
)


def suite_checks(suite: Suite) -> list[dg.AssetChecksDefinition]:
    """The checks of one suite's ``runs``."""
    return [_check(suite, *declared) for declared in _CHECKS]


def _check(
    suite: Suite, name: str, description: str, severity: dg.AssetCheckSeverity, find: Finder
) -> dg.AssetChecksDefinition:
    @dg.asset_check(
        asset=Family(suite.name).key("runs"), name=name, description=description, required_resource_keys={LEASE}
    )
    def check(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        with one_line_errors():
            found = find(context.instance, database(load_settings()), suite.name)
        return _result(found, severity)

    return check
