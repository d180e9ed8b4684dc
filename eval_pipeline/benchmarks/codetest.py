"""codetest: test suites to write, judged by how many pinned mutants of a module they tell from the module itself.

Task files, the verdict and the benchmark as an object belong here; mutants to
:mod:`~eval_pipeline.benchmarks.codetest_mutants`, running tests to :mod:`~eval_pipeline.benchmarks.code_run`.

Keys of a task file beside the shared ones: ``mutants``, as scripts/mutants.py prints them; ``module``, which of the
``materials`` is the module under test, where there are several. The team reads it there; where its tests run it exists
in memory only, so that no test can compare with its text.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from types import MappingProxyType

from eval_pipeline.benchmarks.base import DEFAULTS, Answer, AnswerKind, Material, Score, Task
from eval_pipeline.benchmarks.code_answer import MAX_CODE, has_tests, python_code
from eval_pipeline.benchmarks.code_run import Job, Report, run_tests
from eval_pipeline.benchmarks.codetest_mutants import (
    Fate,
    Mutant,
    as_json,
    from_json,
    mutation_score,
    read_mutants,
    suite_score,
)
from eval_pipeline.benchmarks.rows import Row
from eval_pipeline.benchmarks.tasks_file import load_tasks_file
from eval_pipeline.errors import ScorerError
from eval_pipeline.ids import shown
from eval_pipeline.jsontypes import JsonObject

__all__ = ["Codetest", "mutation_score", "suite_score"]

REFERENCE_RUNS = 3
_REFERENCE_S = 10.0
"""Seconds that the tests may take on the reference."""
_ALL_S = 300.0
"""Seconds for all mutants; those that are left then count as not killed."""
_MAX_SOURCE = 100_000
_KEYS = frozenset({"module", "mutants"})
_FORMAT_BLOCK = """\
Answer format: one Python file with tests in a block that begins with ```python and ends with ```. If there are \
several blocks, the last one counts. Write functions named test_… without parameters that use assert, or classes \
derived from unittest.TestCase; only the standard library can be imported, so neither pytest nor its fixtures. Import \
the module under test by its name. Every test must pass on the module as it is, each time it is run, and all of them \
together take less than ten seconds. The tests are judged by how many small faults, put into the module one at a time, \
make one of them fail. The module's file cannot be opened while they run.
The module can be read with the tools list_source and read_source."""


class Codetest:
    """codetest, its task files and its rule; see :class:`eval_pipeline.benchmarks.base.Benchmark`."""

    name: str = "codetest"
    answers: AnswerKind = "text"
    scorer_version: str = "codetest-1"
    format_block: str = _FORMAT_BLOCK
    thresholds: Mapping[str, float] = MappingProxyType({"mutation_score": 0.8})
    tools: tuple[str, ...] = ("list_source", "read_source")
    needs_evidence: bool = False
    grounding_table: str | None = None

    def load(self, data_dir: Path) -> list[Task]:
        rows: list[Row] = []

        def own(row: Row) -> tuple[str, JsonObject]:
            rows.append(row)
            return "", {}

        tasks = load_tasks_file(data_dir, self.name, _KEYS, own)
        return [replace(task, extra=_extra(task, row)) for task, row in zip(tasks, rows, strict=True)]

    def score(self, task: Task, answer: Answer, thresholds: Mapping[str, float] = DEFAULTS) -> Score:
        """See :meth:`eval_pipeline.benchmarks.base.Benchmark.score`.

        Raises:
            ScorerError: the sandbox cannot be made here.
        """
        needed = {**self.thresholds, **thresholds}["mutation_score"]
        module, source = str(task.extra["module"]), str(task.extra["source"])
        mutants = from_json(task.extra["mutants"])
        code = python_code(answer.full_text)
        if code is None or len(code) > MAX_CODE or not has_tests(code):
            return _nothing(mutants, _no_tests(code), format_valid=False)
        reports = _on_reference(module, source, code)
        problem = next((why for report in reports if (why := _problem(report))), None)
        metrics = _views(source, code, reports)
        if problem is not None:
            times = f" in run {len(reports)} of {REFERENCE_RUNS}" if len(reports) > 1 else ""
            nothing = _nothing(mutants, f"on the module as it is{times}, {problem}")
            return replace(nothing, metrics={**nothing.metrics, **metrics})
        fates = _fates(module, source, code, mutants, max(report.took_s for report in reports))
        score = suite_score([True] * len(reports), fates)
        assert score is not None  # the loader refuses a task without a mutant that counts
        return Score(
            success=score >= needed,
            format_valid=True,
            metrics={**metrics, **_figures(mutants, fates), **_coverage(module, source, code)},
            reason=_summary(mutants, fates, score, needed),
        )


def _extra(task: Task, row: Row) -> JsonObject:
    material = _module(task, row)
    module = PurePosixPath(material.name).stem
    try:
        source = material.path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise row.wrong("module", f"is {shown(material.name)}, which is not UTF-8; save it as UTF-8") from None
    if not module.isidentifier() or not material.name.endswith(".py") or len(source) > _MAX_SOURCE or "\0" in source:
        what = f"a module name.py of at most {_MAX_SOURCE:,} characters"
        raise row.wrong("module", f"is {shown(material.name)}; it must be {what}")
    if module in sys.stdlib_module_names:
        raise row.wrong("module", f"is {shown(material.name)}, as a module of Python's own is called; rename it")
    try:
        mutants = read_mutants(row.values.get("mutants"), source)
    except ValueError as error:
        raise row.wrong("mutants", str(error)) from None
    return {"module": module, "source": source, "mutants": as_json(mutants)}


def _module(task: Task, row: Row) -> Material:
    wanted = row.optional_text("module")
    found = [material for material in task.materials if not wanted or material.name == wanted]
    if len(found) == 1:
        return found[0]
    if wanted:
        raise row.wrong("module", f"is {shown(wanted)}, which is not among the materials; name one of them")
    raise row.wrong("module", f"is missing, and there are {len(found)} materials; name the one under test")


# --- running
# ---------------------------------------------------------------------------------------------------------------


def _on_reference(module: str, source: str, code: str) -> list[Report]:
    """The reports of three runs on the unchanged module, or of fewer where one is not as it must be."""
    reports: list[Report] = []
    while len(reports) < REFERENCE_RUNS and not (reports and _problem(reports[-1])):
        reports.append(run_tests(Job(module, source, code, seconds=_REFERENCE_S)))
    return reports


def _problem(report: Report) -> str | None:
    """Why a run on the unchanged module makes the whole suite worthless, or ``None``."""
    why = f" ({report.error})" if report.error else f": {report.stopped}" if report.stopped else ""
    if report.stage in ("ready", "module"):
        raise ScorerError(f"the module under test cannot be loaded{why}; correct the task")
    if report.timed_out:
        return f"the tests take longer than {_REFERENCE_S:g} s"
    if report.stage == "tests":
        return f"the tests cannot be loaded{why or ': they end the program'}"
    if report.stage != "done":
        return f"the tests end the program{why}"
    if not report.collected:
        return "no test is found"
    failed = [test for test in report.ran if test.outcome not in ("passed", "skipped")]
    if failed:
        return f"{len(failed)} of {len(report.ran)} tests fail, {shown(failed[0].name)} first ({failed[0].error})"
    return None if report.passed else "every test is skipped"


def _fates(module: str, source: str, code: str, mutants: Sequence[Mutant], reference_s: float) -> list[Fate]:
    """What becomes of each mutant under the tests, which have five times as long as on the reference and a second."""
    deadline = time.monotonic() + _ALL_S
    fates: list[Fate] = []
    for mutant in mutants:
        if mutant.equivalent:
            fates.append("equivalent")
        elif time.monotonic() > deadline:
            fates.append("error")
        else:
            job = Job(module, mutant.apply(source), code, seconds=5 * reference_s + 1, until_failure=True)
            fates.append(_fate(job))
    return fates


def _fate(job: Job) -> Fate:
    try:
        report = run_tests(job)
    except ScorerError:
        return "error"
    if report.stage in ("ready", "module"):
        return "error"  # mutants that cannot be loaded are left out when a set is made
    if report.timed_out:
        return "timeout"
    failed = any(test.outcome not in ("passed", "skipped") for test in report.ran)
    return "killed" if failed or report.stage != "done" else "survived"


# --- figures
# ---------------------------------------------------------------------------------------------------------------


def _no_tests(code: str | None) -> str:
    if code is None:
        return "the answer has no Python code"
    if len(code) > MAX_CODE:
        return f"the tests have {len(code):,} characters, at most {MAX_CODE:,} are run"
    return "the answer defines no test"


def _nothing(mutants: Sequence[Mutant], reason: str, *, format_valid: bool = True) -> Score:
    counted = sum(not mutant.equivalent for mutant in mutants)
    return Score(False, format_valid, {"mutation_score": 0.0, "killed": 0.0, "mutants": float(counted)}, reason)


def _views(source: str, code: str, reports: Sequence[Report]) -> dict[str, float]:
    last = reports[-1]
    return {
        "tests": float(len(last.collected)),
        "tests_passed": float(last.passed),
        "copied_lines": _copied(source, code),
    }


def _copied(source: str, code: str) -> float:
    """Which share of the module's lines of any length stands in the tests too: a copy to compare with, perhaps."""
    ours, theirs = ({" ".join(line.split()) for line in text.split("\n")} for text in (source, code))
    long = [line for line in ours if len(line) >= 12 and not line.startswith(("#", "import ", "from "))]
    return sum(line in theirs for line in long) / len(long) if long else 0.0


def _figures(mutants: Sequence[Mutant], fates: Sequence[Fate]) -> dict[str, float]:
    counts = Counter(fates)
    score = mutation_score(fates)
    figures = {
        "mutation_score": score if score is not None else 0.0,
        "mutants": len(fates) - counts["equivalent"],
        "killed": counts["killed"] + counts["timeout"],
        "timeouts": counts["timeout"],
        "survived": counts["survived"],
        "equivalent": counts["equivalent"],
        "harness_errors": counts["error"],
    }
    survivors = {f"survived_{operator}": count for operator, count in _survivors(mutants, fates).items()}
    return {name: float(value) for name, value in {**figures, **survivors}.items()}


def _survivors(mutants: Sequence[Mutant], fates: Sequence[Fate]) -> Counter[str]:
    return Counter(mutant.operator for mutant, fate in zip(mutants, fates, strict=True) if fate == "survived")


def _coverage(module: str, source: str, code: str) -> dict[str, float]:
    """Line coverage by a run of its own: being watched makes tests slow, and nothing depends on it."""
    report = run_tests(Job(module, source, code, seconds=_REFERENCE_S, cover=True))
    return {"line_coverage": len(report.covered) / len(report.lines)} if report.lines else {}


def _summary(mutants: Sequence[Mutant], fates: Sequence[Fate], score: float, needed: float) -> str:
    counts = Counter(fates)
    total = len(fates) - counts["equivalent"]
    parts = [f"{counts['killed'] + counts['timeout']} of {total} mutants killed ({score:.3f}, {needed:g} is needed)"]
    survivors = sorted(_survivors(mutants, fates).items())
    if survivors:
        parts.append("survivors: " + ", ".join(f"{operator} {count}" for operator, count in survivors))
    if counts["error"]:
        parts.append(f"{counts['error']} could not be tried")
    return "; ".join(parts)
