"""``gate``: a batch's figures against stated bounds, for CI. Exit code 1 when one is missed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from eval_pipeline import console
from eval_pipeline.commands.context import ready
from eval_pipeline.comparison.compare import Comparison, compare
from eval_pipeline.comparison.outcomes import CellOutcome, Outcomes, outcomes
from eval_pipeline.errors import EvalPipelineError
from eval_pipeline.ids import BatchTeam


class GateError(EvalPipelineError):
    """The gate cannot be asked as it was asked."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One bound: what was asked, what is, and whether it holds."""

    name: str
    holds: bool
    said: str


@dataclass(frozen=True, slots=True)
class GateRequest:
    """The bounds; a rate is a share from 0 to 1 over the planned runs, crashes included."""

    batch_team: BatchTeam
    min_pass: float | None
    max_crashed: float
    against: BatchTeam | None
    junit: Path | None


def pass_gate(request: GateRequest, *, as_json: bool) -> int:
    """Judge the batch; 0 if every condition holds.

    Raises:
        IdError: there is no such batch.
        ComparisonError: the baseline ran over other tasks.
        GateError: the JUnit file cannot be written.
    """
    _, database = ready()
    with database.connect() as connection:
        after = outcomes(connection, request.batch_team)
        comparison = compare(outcomes(connection, request.against), after) if request.against else None
    conditions = _conditions(request, after, comparison)
    if request.junit is not None:
        _write_junit(request.junit, after, conditions)
    if as_json:
        console.print_json(
            {
                "batch": request.batch_team.key,
                "passed": all(condition.holds for condition in conditions),
                "planned": after.planned,
                "completed": after.completed,
                "crashed": after.crashed,
                "successes": after.successes,
                "conditions": [{"name": one.name, "holds": one.holds, "said": one.said} for one in conditions],
            }
        )
    else:
        for condition in conditions:
            console.say(f"{'pass' if condition.holds else 'FAIL'}  {condition.name}: {condition.said}")
    return 0 if all(condition.holds for condition in conditions) else 1


def _conditions(request: GateRequest, after: Outcomes, comparison: Comparison | None) -> list[Condition]:
    open_cells = sum(cell.status not in ("completed", "crashed") for cell in after.cells)
    conditions = [
        Condition(
            "every planned run has ended",
            # a batch that was only registered has nothing to show
            after.planned > 0 and open_cells == 0,
            f"{open_cells} of {after.planned} have not" if after.planned else "none was planned",
        ),
        Condition(
            f"at most {request.max_crashed:.0%} crashed",
            after.crashed_share <= request.max_crashed,
            f"{after.crashed} of {after.planned} ({after.crashed_share:.1%})",
        ),
    ]
    if request.min_pass is not None:
        rate = after.successes / after.planned if after.planned else 0.0
        conditions.append(
            Condition(
                f"pass@1 of planned is at least {request.min_pass:.1%}",
                rate >= request.min_pass,
                f"{after.successes} of {after.planned} ({rate:.1%})",
            )
        )
    if comparison is not None:
        holds = comparison.verdict in ("better", "no difference shown")
        name = f"not worse than {comparison.before.batch_team.key}"
        conditions.append(Condition(name, holds, comparison.words()))
    return conditions


def _write_junit(path: Path, after: Outcomes, conditions: list[Condition]) -> None:
    """JUnit's XML: a test case per condition and per cell, so that a CI page lists what failed."""
    failed = [condition for condition in conditions if not condition.holds]
    wrong = [cell for cell in after.cells if cell.completed and not cell.success]
    suite = ElementTree.Element(
        "testsuite",
        name=after.batch_team.key,
        tests=str(len(conditions) + after.planned),
        failures=str(len(failed) + len(wrong)),
        errors=str(after.planned - after.completed),
    )
    for condition in conditions:
        case = ElementTree.SubElement(suite, "testcase", classname="gate", name=condition.name)
        if not condition.holds:
            ElementTree.SubElement(case, "failure", message=condition.said)
    for cell in after.cells:
        case = ElementTree.SubElement(
            suite,
            "testcase",
            classname=after.batch_team.key,
            name=cell.cell.key,
            time=f"{(cell.latency_ms or 0) / 1000:.3f}",
        )
        kind, message = _problem(cell)
        if kind is not None:
            ElementTree.SubElement(case, kind, message=message)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        ElementTree.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)
    except OSError as error:
        raise GateError(f"--junit: {path} cannot be written ({error.strerror})") from error


def _problem(cell: CellOutcome) -> tuple[str | None, str]:
    if cell.completed:
        return (None, "") if cell.success else ("failure", "wrong answer" if cell.format_valid else "no valid answer")
    return "error", f"{cell.status or 'not started'} {cell.error_class or ''}".strip()
