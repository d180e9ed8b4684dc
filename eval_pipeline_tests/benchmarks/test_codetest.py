"""codetest: the worked cases, pinned mutants, the loader, the mutator, and the sample suite from end to end."""

from __future__ import annotations

import ast
import importlib.util
import itertools
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_pipeline.benchmarks import codetest
from eval_pipeline.benchmarks.base import Answer, Score, Task
from eval_pipeline.benchmarks.code_run import Job, Report, run_tests
from eval_pipeline.benchmarks.codetest import Codetest, mutation_score, suite_score
from eval_pipeline.benchmarks.codetest_mutants import Fate, Mutant, as_json, from_json, read_mutants
from eval_pipeline.errors import ScorerError, TaskDataError
from eval_pipeline.jsontypes import JsonObject
from eval_pipeline_tests.benchmarks.suite_runs import metrics, played, tools_called
from eval_pipeline_tests.conftest import Database

ROOT = Path(__file__).parents[2]
MUTATOR = ROOT / "scripts" / "mutants.py"
DOCS = ROOT / "docs" / "benchmarks" / "codetest.md"
SAMPLES = ROOT / "eval_pipeline" / "sample_data" / "codetest"
fates = st.lists(st.sampled_from(["killed", "timeout", "survived", "error", "equivalent"]), max_size=12)

SOURCE = """LIMIT = 10


def clamp(x):
    while x < 0:
        x += LIMIT
    if x > LIMIT:
        return LIMIT
    return x
"""
MUTANTS: list[dict[str, object]] = [
    {"id": "m1", "operator": "constant", "line": 1, "old": "LIMIT = 10", "new": "LIMIT = 11"},
    {"id": "m2", "operator": "comparison", "line": 7, "old": "    if x > LIMIT:", "new": "    if x >= LIMIT:",
     "equivalent": True},
    {"id": "m3", "operator": "comparison", "line": 7, "old": "    if x > LIMIT:", "new": "    if x < LIMIT:"},
    {"id": "m4", "operator": "statement", "line": 6, "old": "        x += LIMIT", "new": "        pass"},
    {"id": "m5", "operator": "return", "line": 9, "old": "    return x", "new": "    return None"},
]  # fmt: skip
GOOD = """
from clamp import LIMIT, clamp

def test_inside():
    assert clamp(5) == 5
    assert clamp(LIMIT) == 10

def test_above():
    assert clamp(11) == 10

def test_below():
    assert clamp(-3) == 7
"""
WEAK = "from clamp import clamp\ndef test_above():\n    assert clamp(11) == 10\n"


@pytest.fixture(autouse=True)
def _settings(clean_environment: Path) -> None:
    """What the sandbox may be comes from the settings, and those are the defaults here."""


# --- the rule
# ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reference", "found", "score"),
    [
        ([True] * 3, ["killed"] * 5, 1.0),
        ([True] * 3, ["survived"] * 5, 0.0),
        ([True] * 3, ["killed"] * 3 + ["survived"] * 2, 0.6),
        ([False], ["killed"] * 5, 0.0),
        ([True] * 3, ["killed", "timeout", "survived"], 2 / 3),
        ([True] * 3, ["killed", "killed", "equivalent"], 1.0),
        ([True] * 3, ["killed", "error"], 0.5),
        ([True] * 3, [], None),
        ([True] * 3, ["equivalent"], None),
        ([True, True, False], ["killed"] * 5, 0.0),
        ([], ["killed"], 0.0),
    ],
)
def test_a_suite_scores_as_in_the_table(reference: list[bool], found: list[Fate], score: float | None) -> None:
    assert suite_score(reference, found) == score


@given(fates, st.randoms())
def test_a_score_is_a_share_and_knows_no_order(found: list[Fate], random: object) -> None:
    score = mutation_score(found)
    assert score is None or 0 <= score <= 1
    turned = list(found)
    random.shuffle(turned)  # type: ignore[attr-defined]
    assert mutation_score(turned) == score
    assert mutation_score([*found, "equivalent"]) == score


# --- scoring
# ---------------------------------------------------------------------------------------------------------------


def task(mutants: Sequence[dict[str, object]] = MUTANTS, source: str = SOURCE) -> Task:
    read = read_mutants([dict(mutant) for mutant in mutants], source)  # type: ignore[arg-type]
    extra: JsonObject = {"module": "clamp", "source": source, "mutants": as_json(read)}
    return Task("t-1", "codetest", 1, "?", "", extra=extra)


def score(tests: str, found: Task | None = None, **thresholds: float) -> Score:
    return Codetest().score(found or task(), Answer(None, f"```python\n{tests}\n```"), thresholds)


def test_a_suite_that_finds_every_fault_scores_full() -> None:
    result = score(GOOD)
    assert (result.success, result.format_valid) == (True, True)
    assert result.reason == "4 of 4 mutants killed (1.000, 0.8 is needed)"
    assert result.metrics == {
        "mutation_score": 1, "mutants": 4, "killed": 4, "timeouts": 1, "survived": 0, "equivalent": 1,
        "harness_errors": 0, "tests": 3, "tests_passed": 3, "line_coverage": 1, "copied_lines": 0,
    }  # fmt: skip


def test_survivors_are_told_by_operator_and_the_threshold_is_the_suites() -> None:
    result = score(WEAK)
    assert (result.success, result.format_valid) == (False, True)
    assert result.reason == "2 of 4 mutants killed (0.500, 0.8 is needed); survivors: return 1, statement 1"
    assert result.metrics["survived_return"] == result.metrics["survived_statement"] == 1
    assert 0 < result.metrics["line_coverage"] < 1
    assert score(WEAK, task([MUTANTS[0], MUTANTS[4]]), mutation_score=0.5).success


UNITTEST = """
import unittest
import clamp as module

class ClampTest(unittest.TestCase):
    def test_all(self):
        for value, expected in ((5, 5), (11, 10), (-3, 7)):
            with self.subTest(value):
                self.assertEqual(module.clamp(value), expected)
"""
SKIPPED = "import unittest\nclass A(unittest.TestCase):\n    @unittest.skip('x')\n    def test_a(self): pass\n"
WORTHLESS = {
    GOOD + "\ndef test_wrong():\n    assert clamp(5) == 6\n": "1 of 4 tests fail, 'test_wrong' first (AssertionError)",
    "class Nothing:\n    def test_a(self): pass\n": "no test is found",
    SKIPPED: "every test is skipped",
    "import unittest\ndef test_a(): raise unittest.SkipTest\n": "every test is skipped",
    GOOD.replace("import LIMIT", "import MISSING"): "the tests cannot be loaded (ImportError)",
    "def test_a( :\n": "the tests cannot be loaded (SyntaxError)",
    "import pytest\ndef test_a(): pass\n": "the tests cannot be loaded (ModuleNotFoundError)",
    "import os\ndef test_a(): os._exit(0)\n": "the tests end the program",
    "import os\nos._exit(0)\ndef test_a(): pass\n": "the tests cannot be loaded: they end the program",
    # the module has no file that could be read
    "import clamp, inspect\ndef test_a(): inspect.getsource(clamp)\n": "1 of 1 tests fail, 'test_a' first (TypeError)",
    "import clamp as m, inspect\ndef test_b(): inspect.getsource(m.clamp)": (
        "1 of 1 tests fail, 'test_b' first (OSError)"
    ),
    "import clamp\ndef test_a(): open(clamp.__file__)\n": "1 of 1 tests fail, 'test_a' first (AttributeError)",
}


@pytest.mark.parametrize(("tests", "why"), WORTHLESS.items())
def test_a_suite_that_does_not_pass_on_the_module_is_worth_nothing(tests: str, why: str) -> None:
    result = score(tests)
    assert (result.success, result.format_valid, result.reason) == (False, True, f"on the module as it is, {why}")
    assert result.metrics["mutation_score"] == 0
    assert result.metrics["mutants"] == 4


def test_unittest_is_understood() -> None:
    assert score(UNITTEST, task(MUTANTS[2:3])).metrics["mutation_score"] == 1


def test_tests_that_take_too_long_are_worth_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codetest, "_REFERENCE_S", 1.0)
    begin = time.perf_counter()
    result = score("def test_a():\n    while True: pass\n")
    assert result.reason == "on the module as it is, the tests take longer than 1 s"
    assert time.perf_counter() - begin < 20


def test_a_suite_that_passes_two_times_of_three_is_worth_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = itertools.count(1)

    def another_module_the_third_time(job: Job) -> Report:
        return run_tests(replace(job, source="def clamp(x): pass") if next(runs) == 3 else job)

    monkeypatch.setattr(codetest, "run_tests", another_module_the_third_time)
    result = score(WEAK)
    assert (result.success, result.metrics["mutation_score"]) == (False, 0)
    assert (
        result.reason == "on the module as it is in run 3 of 3, 1 of 1 tests fail, 'test_above' first (AssertionError)"
    )


def test_no_run_leaves_anything_for_the_next_one() -> None:
    counting = """
import os, pathlib, tempfile

def test_first_time():
    for folder in (".", tempfile.gettempdir(), "/dev/shm", os.path.expanduser("~")):
        mark = pathlib.Path(folder, "mark")
        assert not mark.exists()
        try:
            mark.touch()
        except OSError:
            pass
"""
    assert score(counting, task(MUTANTS[:1])).metrics["killed"] == 0


@pytest.mark.parametrize(
    ("tests", "killed"),
    [
        # on a mutant whatever is not a pass counts as found: an early end, too much output, a hanging import
        ("import os\nfrom clamp import clamp\ndef test_a():\n    if clamp(5) != 5: os._exit(0)\n", 2),
        ("from clamp import clamp\ndef test_a():\n    while clamp(5) != 5: print('x' * 100_000)\n", 2),
        ("from clamp import clamp\nassert clamp(5) == 5\ndef test_a(): pass\n", 2),
    ],
)
def test_a_mutant_is_killed_by_any_end_that_is_no_pass(tests: str, killed: int) -> None:
    assert score(tests).metrics["killed"] == killed


def test_a_mutant_that_cannot_be_tried_stays_in_the_denominator(monkeypatch: pytest.MonkeyPatch) -> None:
    def sometimes(job: Job) -> Report:
        if "LIMIT = 11" in job.source:
            raise ScorerError("out of order")
        return run_tests(job)

    monkeypatch.setattr(codetest, "run_tests", sometimes)
    result = score(GOOD, task(MUTANTS[:3]))
    assert result.metrics["harness_errors"] == 1
    assert result.metrics["mutation_score"] == 0.5
    assert result.reason.endswith("; 1 could not be tried")


def test_a_mutant_that_cannot_be_loaded_is_no_kill() -> None:
    broken = {"id": "m9", "operator": "constant", "line": 1, "old": "LIMIT = 10", "new": "LIMIT = 1 // 0"}
    result = score(GOOD, task([MUTANTS[2], broken]))
    assert (result.metrics["harness_errors"], result.metrics["mutation_score"]) == (1, 0.5)


def test_all_mutants_together_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codetest, "_ALL_S", 0.0)
    assert score(GOOD).metrics["harness_errors"] == 4


def test_a_module_that_cannot_be_loaded_is_the_tasks_fault() -> None:
    source = "import nothing_of_that_name\n" + SOURCE
    shifted = [{**mutant, "line": int(str(mutant["line"])) + 1} for mutant in MUTANTS]
    with pytest.raises(ScorerError, match=r"module under test cannot be loaded \(ModuleNotFoundError\)"):
        score(GOOD, task(shifted, source))


def test_a_copy_of_the_module_is_seen() -> None:
    ours = SOURCE.replace("def clamp", "def ours")
    check = "def test_same():\n    for n in range(-5, 20):\n        assert clamp.clamp(n) == ours(n)\n"
    result = score("\n".join(["import clamp", ours, check]), task(MUTANTS[:3]))
    assert result.metrics["mutation_score"] == 1, "nothing but a look at the figures tells it"
    assert result.metrics["copied_lines"] > 0.5


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "the answer has no Python code"),
        ("I would test the limits.", "the answer has no Python code"),
        ("```python\nx = 1\n```", "the answer defines no test"),
        ("```python\ndef test_a(): pass\n" + "#" * 10_000_000, "the tests have 10,000,019 characters, at most 200,000"),
        ("\0\ud800\u202e\u200b", "the answer has no Python code"),
        ("[" * 1_000_000, "the answer has no Python code"),
    ],
)  # fmt: skip
def test_an_answer_without_tests_has_no_valid_format(text: str, reason: str) -> None:
    result = Codetest().score(task(), Answer(None, text))
    assert (result.success, result.format_valid, result.reason[: len(reason)]) == (False, False, reason)


@settings(max_examples=4, deadline=None)
@given(st.text(max_size=60))
def test_no_answer_raises_or_passes(text: str) -> None:
    result = score(f"def test_a():\n    {text}")
    assert not result.success
    assert 0 <= result.metrics["mutation_score"] <= 1
    assert len(result.reason.splitlines()) == 1


# --- tasks
# ---------------------------------------------------------------------------------------------------------------


def loaded(tmp_path: Path, source: str | bytes = SOURCE, name: str = "lib/clamp.py", **fields: object) -> Task:
    path = tmp_path / "materials" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(source.encode() if isinstance(source, str) else source)
    row = {"task_id": "t-1", "question": "?", "materials": [name], "mutants": MUTANTS, **fields}
    (tmp_path / "tasks.jsonl").write_text(json.dumps(row, ensure_ascii=False), encoding="utf-8")
    return Codetest().load(tmp_path)[0]


def test_a_task_is_loaded_with_its_module_and_mutants(tmp_path: Path) -> None:
    found = loaded(tmp_path, SOURCE.replace("\n", "\r\n"))
    assert (found.extra["module"], found.extra["source"]) == ("clamp", SOURCE)
    mutants = from_json(found.extra["mutants"])
    assert [mutant.id for mutant in mutants] == ["m1", "m2", "m3", "m4", "m5"]
    assert [mutant.id for mutant in mutants if mutant.equivalent] == ["m2"]
    assert [material.name for material in found.materials] == ["lib/clamp.py"]
    assert score(GOOD, found).success


def test_of_several_materials_the_module_is_named(tmp_path: Path) -> None:
    (tmp_path / "materials").mkdir()
    (tmp_path / "materials" / "notes.txt").write_text("x")
    names = ["lib/clamp.py", "notes.txt"]
    assert loaded(tmp_path, materials=names, module="lib/clamp.py").extra["module"] == "clamp"
    with pytest.raises(TaskDataError, match="field 'module' is missing, and there are 2 materials"):
        loaded(tmp_path, materials=names)
    with pytest.raises(TaskDataError, match="field 'module' is 'clamp', which is not among the materials"):
        loaded(tmp_path, materials=names, module="clamp")


def changed(**fields: object) -> list[dict[str, object]]:
    return [{**MUTANTS[0], **fields}]


@pytest.mark.parametrize(
    ("fields", "field", "why"),
    [
        ({"mutants": None}, "mutants", "must be a list of 1 to 200 mutants"),
        ({"mutants": []}, "mutants", "must be a list of 1 to 200 mutants"),
        ({"mutants": ["m1"]}, "mutants", "has as mutant 1 'm1'; write id, operator, line, old and new"),
        ({"mutants": changed(line="1")}, "mutants", "has as mutant 1 "),
        ({"mutants": changed(line=True)}, "mutants", "has as mutant 1 "),
        ({"mutants": changed(equivalent=1)}, "mutants", "has as mutant 1 "),
        ({"mutants": changed(note="x")}, "mutants", "has in mutant 1 a field 'note', which is not known"),
        ({"mutants": changed(operator="Compare!")}, "mutants", "has a mutant 'm1' of operator 'Compare!'"),
        ({"mutants": changed(line=2)}, "mutants", "has a mutant 'm1' that does not apply: line 2 of the module is not"),
        ({"mutants": changed(line=10**9)}, "mutants", "has a mutant 'm1' that does not apply"),
        ({"mutants": changed(line=-1)}, "mutants", "has a mutant 'm1' that does not apply"),
        ({"mutants": changed(new="LIMIT = ")}, "mutants", "has a mutant 'm1' that does not apply: it is no Python"),
        ({"mutants": changed(new="LIMIT =  10")}, "mutants", "has a mutant 'm1' that is the module itself, or another"),
        ({"mutants": MUTANTS + changed(id="m6")}, "mutants", "has a mutant 'm6' that is the module itself, or another"),
        ({"mutants": MUTANTS + changed(new="LIMIT = 12")}, "mutants", "has two mutants 'm1'"),
        ({"mutants": changed(equivalent=True)}, "mutants", "has only equivalent mutants"),
        ({"materials": []}, "module", "is missing, and there are 0 materials"),
        ({"name": "lib/clamp.txt"}, "module", "is 'lib/clamp.txt'; it must be a module name.py"),
        ({"name": "lib/a-b.py"}, "module", "is 'lib/a-b.py'; it must be a module name.py"),
        ({"name": "queue.py"}, "module", "is 'queue.py', as a module of Python's own is called; rename it"),
        ({"source": b"\xff\xfe"}, "module", "is 'lib/clamp.py', which is not UTF-8"),
        ({"source": "#" * 100_001}, "module", "is 'lib/clamp.py'; it must be a module name.py of at most 100,000"),
    ],
)
def test_a_wrong_field_is_named_in_one_line(tmp_path: Path, fields: dict[str, object], field: str, why: str) -> None:
    with pytest.raises(TaskDataError) as caught:
        loaded(tmp_path, **fields)  # type: ignore[arg-type]
    assert f"tasks.jsonl line 1: field {field!r} {why}" in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_a_mutant_may_change_several_lines() -> None:
    mutant = Mutant("m", "statement", 5, "    while x < 0:\n        x += LIMIT", "    x = abs(x)")
    assert mutant.apply(SOURCE).split("\n")[4:6] == ["    x = abs(x)", "    if x > LIMIT:"]


@pytest.mark.skipif(not DOCS.is_file(), reason="the documentation is in the checkout only")
def test_the_example_of_the_documentation_is_a_task(tmp_path: Path) -> None:
    (tmp_path / "materials" / "clamp").mkdir(parents=True)
    (tmp_path / "materials" / "clamp" / "clamp.py").write_text(SOURCE)
    (tmp_path / "tasks.jsonl").write_text(DOCS.read_text(encoding="utf-8").split("```")[1].removeprefix("json\n"))
    (found,) = Codetest().load(tmp_path)
    assert score(GOOD, found).metrics["killed"] == 1


# --- the mutator
# ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
def mutator() -> ModuleType:
    if not MUTATOR.is_file():
        pytest.skip("the mutator is in the checkout only")
    spec = importlib.util.spec_from_file_location("mutants_script", MUTATOR)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


MUTABLE = '''"""Docstring, which is left alone."""

RATE = 2


def f(a: "int" = 1, *, b=None) -> "str":
    """Docstring."""
    total = (a) + (b or 3)
    if not total or a < 1 and b not in (1, 2):
        raise ValueError(f"{a + 1} 원")
    for n in range(a):
        if n == 3: continue
        total -= n ** 2
    한글 = "값"; print(한글)
    return total \\
        > RATE
'''


def test_the_mutator_changes_one_place_at_a_time(mutator: ModuleType) -> None:
    found = [(mutant["operator"], mutant["line"], mutant["new"].strip()) for mutant in mutator.mutants(MUTABLE)]
    assert set(found) == {
        ("constant", 3, "RATE = 3"),
        ("constant", 6, 'def f(a: "int" = 2, *, b=None) -> "str":'),
        ("arithmetic", 8, "total = (a) - (b or 3)"),
        ("boolean", 8, "total = (a) + (b and 3)"),
        ("constant", 8, "total = (a) + (b or 4)"),
        ("boolean", 9, "if total or a < 1 and b not in (1, 2):"),
        ("boolean", 9, "if not total and a < 1 and b not in (1, 2):"),
        ("boolean", 9, "if not total or a < 1 or b not in (1, 2):"),
        ("comparison", 9, "if not total or a <= 1 and b not in (1, 2):"),
        ("comparison", 9, "if not total or a < 1 and b in (1, 2):"),
        ("constant", 9, "if not total or a < 2 and b not in (1, 2):"),
        ("constant", 9, "if not total or a < 1 and b not in (2, 2):"),
        ("constant", 9, "if not total or a < 1 and b not in (1, 3):"),
        ("statement", 10, "pass"),
        ("comparison", 12, "if n != 3: continue"),
        ("constant", 12, "if n == 4: continue"),
        ("statement", 12, "if n == 3: pass"),
        ("arithmetic", 13, "total += n ** 2"),
        ("arithmetic", 13, "total -= n * 2"),
        ("constant", 13, "total -= n ** 3"),
        ("statement", 13, "pass"),
        ("constant", 14, "한글 = ''; print(한글)"),
        ("statement", 14, '한글 = "값"; pass'),
        ("comparison", 15, "return total \\\n        >= RATE"),
        ("return", 15, "return None"),
    }
    assert len(found) == len(set(found))


def test_every_mutant_applies_and_can_be_imported(mutator: ModuleType) -> None:
    made = mutator.mutants(MUTABLE)
    assert len(read_mutants(made, MUTABLE)) == len(made)
    # a name that is missing when the module is loaded makes a program that cannot be tried
    assert all("LIMIT" not in mutant["new"] for mutant in mutator.mutants("import math\nX = 7 // (math.inf > 1)\n"))


def test_the_samples_pin_what_the_mutator_makes(mutator: ModuleType) -> None:
    for found in Codetest().load(SAMPLES):
        source = str(found.extra["source"])
        made = {(m["operator"], m["line"], m["old"], m["new"]) for m in mutator.mutants(source)}
        pinned = [(m.operator, m.line, m.old, m.new) for m in from_json(found.extra["mutants"])]
        assert 10 <= len(pinned) <= 20
        assert set(pinned) <= made
        ast.parse(source)


# --- the sample suite
# ---------------------------------------------------------------------------------------------------------------

VERDICTS = {
    "sample-codetest-parking-fee": (True, True, "15 of 15 mutants killed (1.000, 0.8 is needed)"),
    "sample-codetest-josa": (True, True, "15 of 15 mutants killed (1.000, 0.8 is needed)"),
    "sample-codetest-shelf": (
        False, True,
        "8 of 16 mutants killed (0.500, 0.8 is needed); survivors: comparison 2, constant 2, return 1, statement 3",
    ),
    "sample-codetest-tides": (
        False, True,
        "on the module as it is, 1 of 3 tests fail, 'test_the_last_level_is_a_high_too' first (AssertionError)",
    ),
    "sample-codetest-wallet": (True, True, "12 of 12 mutants killed (1.000, 0.8 is needed)"),
}  # fmt: skip


async def test_the_sample_suite_ends_as_its_scripts_say(database: Database) -> None:
    runs = await played(database, "sample_codetest")
    assert {task_id: (run.success, run.format_valid, run.score_reason) for task_id, run in runs.items()} == VERDICTS
    assert {run.scorer_version for run in runs.values()} == {"codetest-1"}
    assert metrics(database, runs["sample-codetest-shelf"])["survived_statement"] == 3
    assert {"list_source", "read_source"} & set(tools_called(database, runs["sample-codetest-tides"]))
