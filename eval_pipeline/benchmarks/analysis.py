"""Analysis: free texts whose format the task declares, check by check. There is no gold answer.

The task file and the benchmark as an object belong here; the checks are in
:mod:`~eval_pipeline.benchmarks.analysis_checks`, the view of what is grounded in
:mod:`~eval_pipeline.benchmarks.analysis_grounding`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from eval_pipeline.benchmarks.analysis_checks import Answered, Check, CheckError, check_of
from eval_pipeline.benchmarks.analysis_grounding import entity_grounding, number_grounding
from eval_pipeline.benchmarks.base import DEFAULTS, Answer, AnswerKind, Score, Task
from eval_pipeline.benchmarks.rows import Row
from eval_pipeline.benchmarks.tasks_file import load_tasks_file
from eval_pipeline.ids import shown
from eval_pipeline.jsontypes import JsonObject, JsonValue

LONGEST_ANSWER = 200_000
"""Characters of an answer that is judged; a longer one is refused."""

_CHECKS = "checks"
_MOST_CHECKS = 50
_REASONS = 3

_FORMAT = """\
The task lists what its format must be below "Format:". A program checks each line of that list, and the answer is
right only if it meets every one. The answer is that text alone: nothing stands before or after it, and no code fence
around it. Numbers and quoted names should be those that the tools returned."""


def failures(answer: str, checks: Mapping[str, Check]) -> dict[str, str]:
    """Why ``answer`` fails each of ``checks`` that it fails, by the check's name. An empty answer fails all."""
    answered = Answered(answer)
    if not answered.text:
        return dict.fromkeys(checks, "no answer")
    return {name: why for name, check in checks.items() if (why := check.failure(answered))}


class Analysis:
    """Analysis, its task file and its rule; see :class:`eval_pipeline.benchmarks.base.Benchmark`."""

    name: str = "analysis"
    answers: AnswerKind = "text"
    scorer_version: str = "analysis-1"
    format_block: str = _FORMAT
    thresholds: Mapping[str, float] = DEFAULTS
    tools: tuple[str, ...] = ()
    needs_evidence: bool = True
    grounding_table: str | None = None

    def load(self, data_dir: Path) -> list[Task]:
        tasks = load_tasks_file(data_dir, self.name, frozenset({_CHECKS}), _own)
        return [_told(task) for task in tasks]

    def score(self, task: Task, answer: Answer, thresholds: Mapping[str, float] = DEFAULTS) -> Score:
        checks = _checks(task)
        if len(answer.full_text) > LONGEST_ANSWER:
            reason = f"the answer has more than {LONGEST_ANSWER:,} characters"
            return Score(success=False, format_valid=False, metrics={"format": 0.0}, reason=reason)
        failed = failures(answer.full_text, checks)
        results = [result.result for result in answer.evidence]
        numbers = number_grounding(answer.full_text, task.question, results)
        entities = entity_grounding(answer.full_text, task.question, results)
        figures = {
            "format": 1 - len(failed) / len(checks),
            "checks": len(checks),
            "checks_passed": len(checks) - len(failed),
            "number_grounding": numbers.share,
            "numbers": numbers.total,
            "numbers_given": numbers.given,
            "entity_grounding": entities.share,
            "entities": entities.total,
            "entities_given": entities.given,
        }
        return Score(
            success=not failed,
            format_valid=not failed,
            metrics={name: float(value) for name, value in figures.items() if value is not None},
            reason=_reason(answer.full_text, failed, len(checks)),
        )


def _own(row: Row) -> tuple[str, JsonObject]:
    value = row.values.get(_CHECKS)
    if not isinstance(value, list) or not 1 <= len(value) <= _MOST_CHECKS:
        raise row.wrong(_CHECKS, f"is {shown(value)}; write a list of 1 to {_MOST_CHECKS} checks")
    for number, values in enumerate(value, 1):
        if not isinstance(values, dict):
            raise row.wrong(_CHECKS, f"has check {number} {shown(values)}; write an object with its kind")
        try:
            check_of(values)
        except CheckError as error:
            raise row.wrong(_CHECKS, f": check {number} {error}") from None
    return "", {_CHECKS: value}


def _told(task: Task) -> Task:
    """``task`` with its checks in the question: a team is measured by what it was told, unless a check wants it so."""
    values = _declared(task)
    lines = [
        f"- {check.told()}"
        for check, declared in zip(_checks(task).values(), values, strict=True)
        if declared.get("told", True)
    ]
    return replace(task, question="\n".join([task.question.rstrip(), "", "Format:", *lines])) if lines else task


def _declared(task: Task) -> list[JsonObject]:
    value: JsonValue = task.extra.get(_CHECKS)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _checks(task: Task) -> dict[str, Check]:
    """The task's checks by a name each, such as ``2 headings``.

    Raises:
        ValueError: the task has none, or one that cannot be used; both are refused when a task is loaded.
    """
    checks = {
        f"{number} {values.get('kind')}": _check(json.dumps(values)) for number, values in enumerate(_declared(task), 1)
    }
    if not checks:
        raise ValueError(f"task {task.task_id} declares no format check")
    return checks


@lru_cache(maxsize=512)
def _check(declared: str) -> Check:
    """The check that a JSON text declares; kept, since a schema takes long to be read."""
    return check_of(json.loads(declared))


def _reason(text: str, failed: Mapping[str, str], total: int) -> str:
    if not text.strip():
        return "no answer"
    if not failed:
        return f"{total} of {total} format checks passed"
    reasons = [f"{name.split(maxsplit=1)[1]}: {why}" for name, why in list(failed.items())[:_REASONS]]
    more = [f"and {len(failed) - _REASONS} more"] if len(failed) > _REASONS else []
    return f"{len(failed)} of {total} format checks failed: {'; '.join([*reasons, *more])}"
