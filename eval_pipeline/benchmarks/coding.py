"""coding: programs to write, judged by hidden tests that run in the sandbox.

Task files, the verdict and the benchmark as an object belong here; running the tests to
:mod:`~eval_pipeline.benchmarks.code_run`, finding the code in an answer to
:mod:`~eval_pipeline.benchmarks.code_answer`.

Keys of a task file beside the shared ones: ``tests``, Python with one function ``test_…`` for each test, which import
what they test from the module ``solution``; ``gold``, a reference solution; ``test_timeout_s``, seconds for each test
(1 to 60, by default 5). Tests stay in the task's ``extra`` and reach no tool.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path

from eval_pipeline.benchmarks.base import DEFAULTS, Answer, AnswerKind, Score, Task
from eval_pipeline.benchmarks.code_answer import MAX_CODE, python_code
from eval_pipeline.benchmarks.code_run import Job, Report, run_tests
from eval_pipeline.benchmarks.rows import Row
from eval_pipeline.benchmarks.tasks_file import load_tasks_file
from eval_pipeline.ids import shown
from eval_pipeline.jsontypes import JsonObject

MODULE = "solution"
TEST_TIMEOUT_S = 5.0
_ALL_TESTS_S = 60.0
_MOST_TESTS = 200
_KEYS = frozenset({"tests", "gold", "test_timeout_s"})
_FORMAT_BLOCK = """\
Answer format: one Python file in a block that begins with ```python and ends with ```. If there are several blocks, \
the last one counts. The file is imported as a module and defines what the task names; hidden tests call it. It uses \
only the standard library of Python, reads no input, and does nothing else when it is imported: no examples, no \
prints, no exit."""


class Coding:
    """coding, its task files and its rule; see :class:`eval_pipeline.benchmarks.base.Benchmark`."""

    name: str = "coding"
    answers: AnswerKind = "text"
    scorer_version: str = "coding-1"
    format_block: str = _FORMAT_BLOCK
    thresholds: Mapping[str, float] = DEFAULTS
    tools: tuple[str, ...] = ()
    needs_evidence: bool = False
    grounding_table: str | None = None

    def load(self, data_dir: Path) -> list[Task]:
        return load_tasks_file(data_dir, self.name, _KEYS, _own)

    def score(self, task: Task, answer: Answer, thresholds: Mapping[str, float] = DEFAULTS) -> Score:
        """See :meth:`eval_pipeline.benchmarks.base.Benchmark.score`.

        Raises:
            ScorerError: the sandbox cannot be made here.
        """
        tests = str(task.extra["tests"])
        names = test_names(tests)
        code = python_code(answer.full_text)
        if code is None:
            return _score(0, names, "the answer has no Python code", format_valid=False)
        if len(code) > MAX_CODE:
            return _score(0, names, f"the code has {len(code):,} characters, at most {MAX_CODE:,} are run")
        timeout = task.extra.get("test_timeout_s", TEST_TIMEOUT_S)
        test_s = float(timeout) if isinstance(timeout, int | float) else TEST_TIMEOUT_S
        seconds = min(_ALL_TESTS_S, test_s * len(names))
        report = run_tests(Job(MODULE, code, tests, seconds=seconds, test_s=test_s, apart=True))
        passed = report.passed if [test.name for test in report.ran] == names else 0
        timeouts = sum(test.outcome == "timeout" for test in report.ran)
        return _score(passed, names, _reason(report, names), timeouts=timeouts)


def test_names(tests: str) -> list[str]:
    """The names of the test functions that ``tests`` define, in their order.

    Raises:
        ValueError: it is no Python, or a test is missing, stands twice, is not a plain function without parameters, or
            there are more than 200; the message continues "field 'tests' …".
    """
    try:
        body = ast.parse(tests).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ValueError(f"is no Python: {getattr(error, 'msg', None) or type(error).__name__}") from None
    names: list[str] = []
    for statement in body:
        if isinstance(statement, ast.FunctionDef) and statement.name.startswith("test"):
            arguments = statement.args
            if arguments.args or arguments.posonlyargs or arguments.kwonlyargs or statement.decorator_list:
                raise ValueError(f"has {shown(statement.name)} with parameters or decorators; write plain functions")
            names.append(statement.name)
        elif isinstance(statement, ast.ClassDef | ast.AsyncFunctionDef) and statement.name.lower().startswith("test"):
            raise ValueError(f"has {shown(statement.name)}, which is no plain function; write def test_…()")
    doubled = next((name for name in names if names.count(name) > 1), None)
    if doubled is not None:
        raise ValueError(f"has two functions {shown(doubled)}; only the second would run")
    if not 1 <= len(names) <= _MOST_TESTS:
        raise ValueError(f"has {len(names)} functions test_…; write 1 to {_MOST_TESTS}")
    return names


def _own(row: Row) -> tuple[str, JsonObject]:
    extra: JsonObject = {"tests": row.text("tests")}
    try:
        test_names(str(extra["tests"]))
    except ValueError as error:
        raise row.wrong("tests", str(error)) from None
    timeout = row.values.get("test_timeout_s")
    if timeout is not None:
        if not isinstance(timeout, int | float) or isinstance(timeout, bool) or not 1 <= timeout <= 60:
            raise row.wrong("test_timeout_s", f"is {shown(timeout)}; write a number of seconds from 1 to 60")
        extra["test_timeout_s"] = timeout
    return row.optional_text("gold"), extra


def _score(passed: int, names: list[str], reason: str, *, format_valid: bool = True, timeouts: int = 0) -> Score:
    metrics = {
        "tests_passed": float(passed),
        "tests_total": float(len(names)),
        "tests_passed_share": passed / len(names),
        "tests_timed_out": float(timeouts),
    }
    return Score(success=passed == len(names), format_valid=format_valid, metrics=metrics, reason=reason)


def _reason(report: Report, names: list[str]) -> str:
    why = f" ({report.error})" if report.error else f": {report.stopped}" if report.stopped else ""
    match report.stage:
        case "done" if [test.name for test in report.ran] != names:
            return "the tests that ran are not the task's"
        case "done":
            broken = [(place, test) for place, test in enumerate(report.ran, 1) if test.outcome != "passed"]
            if not broken:
                return f"all {len(names)} tests pass"
            place, test = broken[0]
            how = {"timeout": "took too long", "ended": "ended its process", "skipped": "was skipped"}
            what = how.get(test.outcome, f"failed ({test.error or 'no reason given'})")
            return f"{len(names) - len(broken)} of {len(names)} tests pass; test {place} {what}"
        case "tests":
            return f"the tests cannot be loaded with this code{why or ': it ended the program'}"
        case "run":
            return f"the program ended before the last test{why}"
        case _:
            late = "it took too long" if report.timed_out else "it ended the program"
            return f"the code cannot be loaded{why or f': {late}'}"
