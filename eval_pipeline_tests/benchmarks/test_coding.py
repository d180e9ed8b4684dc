"""coding: the tricks of the table, the code in an answer, the loader, and the sample suite from end to end."""

from __future__ import annotations

import json
import time
from pathlib import Path

import psutil
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eval_pipeline.benchmarks.base import Answer, Score, Task
from eval_pipeline.benchmarks.code_answer import MAX_CODE, has_tests, python_code
from eval_pipeline.benchmarks.coding import Coding, test_names
from eval_pipeline.errors import TaskDataError
from eval_pipeline_tests.benchmarks.suite_runs import metrics, played, tools_called
from eval_pipeline_tests.conftest import Database

test_names.__test__ = False  # type: ignore[attr-defined]

DOCS = Path(__file__).parents[2] / "docs" / "benchmarks" / "coding.md"
SAMPLES = Path(__file__).parents[2] / "eval_pipeline" / "sample_data" / "coding"
NAIVE = """
from solution import add

def test_sum():
    assert add(1, 2) == 3

def test_other_sum():
    assert add(2, 5) == 7
"""
STRICT = NAIVE + "\ndef test_type():\n    assert type(add(1, 2)) is int\n"


@pytest.fixture(autouse=True)
def _settings(clean_environment: Path) -> None:
    """What the sandbox may be comes from the settings, and those are the defaults here."""


def task(tests: str = STRICT, **extra: float) -> Task:
    return Task("t-1", "coding", 1, "?", "", extra={"tests": tests, **extra})


def fenced(code: str) -> Answer:
    return Answer(None, f"Here it is.\n\n```python\n{code}\n```\n")


def score(code: str, tests: str = STRICT) -> Score:
    return Coding().score(task(tests, test_timeout_s=0.8), fenced(code))


RIGHT = "def add(a, b):\n    return a + b"
NONE = "0 of 3 tests pass; test 1 "
CANDIDATES = {
    "correct": (RIGHT, "all 3 tests pass"),
    "wrong": ("def add(a, b): return a - b", "1 of 3 tests pass; test 1 failed (AssertionError)"),
    "syntax error": ("def add(a, b) return a", "the code cannot be loaded (SyntaxError)"),
    "no entry point": ("def plus(a, b): pass", "the tests cannot be loaded with this code (ImportError)"),
    "endless loop": ("def add(a, b):\n    while True: pass", NONE + "took too long"),
    "sleep 60": ("import time\ndef add(a, b): time.sleep(60)", NONE + "took too long"),
    "sys.exit(0) at import": ("import sys\nsys.exit(0)", "the code cannot be loaded (SystemExit)"),
    "os._exit(0) at import": ("import os\nos._exit(0)", "the code cannot be loaded: it ended the program"),
    "os._exit(0) in the function": ("import os\ndef add(a, b): os._exit(0)", NONE + "ended its process"),
    "sys.exit(0) in the function": ("import sys\ndef add(a, b): sys.exit(0)", NONE + "failed (SystemExit)"),
    "exit hook": (
        "import atexit, os\natexit.register(lambda: os._exit(0))\ndef add(a, b): return 0",
        "1 of 3 tests pass; test 1 failed (AssertionError)",
    ),
    "except hook": (
        "import os, sys\nsys.excepthook = lambda *a: os._exit(0)\ndef add(a, b): raise ValueError",
        NONE + "failed (ValueError)",
    ),
    "signal handler": (
        "import os, signal\nsignal.signal(14, lambda *a: os._exit(0))\ndef add(a, b):\n    while True: pass",
        NONE + "took too long",
    ),
    "thread that exits": (
        "import os, threading, time\nthreading.Thread(target=lambda: os._exit(0)).start()\ntime.sleep(0.3)",
        "the code cannot be loaded: it ended the program",
    ),
    "reads stdin": ("def add(a, b): return input() or a + b", NONE + "failed (EOFError)"),
    "prints 10 MB": (
        "def add(a, b):\n    print('x' * 10_000_000)\n    return a + b",
        "the program ended before the last test: it printed more than 1 MiB",
    ),
    "allocates 4 GB": ("def add(a, b): return bytearray(4 * 2**30) and a + b", NONE + "failed (MemoryError)"),
    "writes a 5 MB file": (
        "def add(a, b):\n    open('f', 'wb').write(b'x' * 5_000_000)\n    return a + b",
        NONE + "failed (OSError)",
    ),
    "recurses": ("def add(a, b): return add(a, b)", NONE + "failed (RecursionError)"),
    "markdown fence left in": (f"```python\n{RIGHT}\n```", "the code cannot be loaded (SyntaxError)"),
    "nothing but a comment": ("# see above", "the tests cannot be loaded with this code (ImportError)"),
}


@pytest.mark.parametrize("name", CANDIDATES)
def test_every_candidate_of_the_table_is_judged_by_the_token(name: str) -> None:
    code, reason = CANDIDATES[name]
    begin = time.perf_counter()
    result = score(code)
    assert (result.success, result.format_valid, result.reason) == (name == "correct", True, reason)
    assert result.metrics["tests_total"] == 3
    assert result.metrics["tests_passed"] == (3 if result.success else int(reason[0]) if reason[0].isdigit() else 0)
    assert time.perf_counter() - begin < 40


def test_an_object_that_equals_everything_passes_only_where_no_test_looks_at_its_type() -> None:
    code = "class Yes(int):\n    def __eq__(self, other): return True\ndef add(a, b): return Yes()"
    assert score(code, NAIVE).success
    assert not score(code, STRICT).success


def test_code_for_the_visible_tests_only_passes_only_those() -> None:
    code = "def add(a, b): return {(1, 2): 3, (2, 5): 7}[a, b]"
    assert score(code).success
    assert not score(code, STRICT + "\ndef test_hidden():\n    assert add(10, 20) == 30\n").success


def test_a_child_that_is_left_behind_ends_with_the_sandbox() -> None:
    word = "left-behind-by-coding"
    code = (
        "import subprocess, sys\ndef add(a, b):\n"
        f"    subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(100)', '{word}'])\n    return a + b"
    )
    assert score(code).success
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and any(
        word in " ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"])
    ):
        time.sleep(0.05)
    assert not any(word in " ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"]))


def test_tests_do_not_disturb_each_other() -> None:
    code = "calls = []\ndef add(a, b):\n    calls.append(a)\n    assert len(calls) == 1\n    return a + b"
    assert score(code).success


@pytest.mark.parametrize(
    "text",
    ["", "No idea.", "```python\n```", "```java\nclass A {}\n```", "\0\ud800\u202e", "x" * 10_000_000, "[" * 1_000_000],
)
def test_an_answer_without_code_has_no_valid_format(text: str) -> None:
    result = Coding().score(task(), Answer(None, text))
    assert (result.success, result.format_valid, result.reason) == (False, False, "the answer has no Python code")
    assert result.metrics["tests_passed"] == 0


def test_code_of_any_length_is_judged() -> None:
    assert score(RIGHT + "\n" + "#" * (MAX_CODE - len(RIGHT) - 10)).success
    result = score(RIGHT + "\n#" * 5_000_000)
    assert result.reason == "the code has 10,000,032 characters, at most 200,000 are run"


@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=60))
def test_no_answer_raises_or_passes(text: str) -> None:
    result = Coding().score(task(), fenced(text))
    assert not result.success
    assert 0 <= result.metrics["tests_passed_share"] <= 1
    assert len(result.reason.splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("```python\nx = 1\n```", "x = 1\n"),
        ("```py\nx = 1\n```", "x = 1\n"),
        ("```Python3\nx = 1\n```", "x = 1\n"),
        ("```\nx = 1\n```", "x = 1\n"),
        ("```python\nx = 1\n```\nbetter:\n```python\nx = 2\n```", "x = 2\n"),
        ("```python\nx = 1\n```\nprints\n```\n1\n```", "x = 1\n"),
        ("```text\nx = 1\n```", None),
        ("def f():\n    return 1\n", "def f():\n    return 1\n"),
        ("import os", "import os"),
        ("@cache\ndef f(): pass", "@cache\ndef f(): pass"),
        ("I would define a function.", None),
        ("  ```python\n  def f():\n      return 1\n  ```", "def f():\n    return 1\n"),
    ],
)
def test_the_code_of_an_answer_is_found(text: str, code: str | None) -> None:
    assert python_code(text) == code


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("def test_a(): pass", True),
        ("class A:\n    def test_a(self): pass", True),
        ("async def test_a(): pass", True),
        ("def check(): pass", False),
        ("# def test_a", False),
        ("", False),
    ],
)
def test_tests_are_seen_without_running_anything(code: str, found: bool) -> None:
    assert has_tests(code) is found


# --- tasks
# ---------------------------------------------------------------------------------------------------------------


def loaded(tmp_path: Path, **fields: object) -> Task:
    row = {"task_id": "t-1", "question": "?", "tests": NAIVE, **fields}
    (tmp_path / "tasks.jsonl").write_text(json.dumps(row, ensure_ascii=False), encoding="utf-8")
    return Coding().load(tmp_path)[0]


def test_a_task_is_loaded_with_its_hidden_tests(tmp_path: Path) -> None:
    found = loaded(tmp_path, gold=RIGHT, test_timeout_s=3, level=2)
    assert (found.benchmark, found.level, found.gold) == ("coding", 2, RIGHT)
    assert found.extra == {"tests": NAIVE, "test_timeout_s": 3}
    assert found.question == "?"
    assert found.content_hash != loaded(tmp_path, gold=RIGHT, test_timeout_s=3, level=2, tests=STRICT).content_hash


@pytest.mark.parametrize(
    ("fields", "field", "why"),
    [
        ({"tests": None}, "tests", "is None, not a text"),
        ({"tests": "def test_a() pass"}, "tests", "is no Python: expected ':'"),
        ({"tests": "x = 1"}, "tests", "has 0 functions test_…; write 1 to 200"),
        ({"tests": "def test_a(): pass\n" * 2}, "tests", "has two functions 'test_a'; only the second would run"),
        ({"tests": "def test_a(x): pass"}, "tests", "has 'test_a' with parameters or decorators"),
        ({"tests": "async def test_a(): pass"}, "tests", "has 'test_a', which is no plain function"),
        ({"tests": "class TestA: pass"}, "tests", "has 'TestA', which is no plain function"),
        ({"tests": "(" * 100_000}, "tests", "is no Python"),
        ({"test_timeout_s": 0.5}, "test_timeout_s", "is 0.5; write a number of seconds from 1 to 60"),
        ({"test_timeout_s": "5"}, "test_timeout_s", "is '5'; write a number of seconds from 1 to 60"),
        ({"gold": 5}, "gold", "is 5, not a text"),
    ],
)
def test_a_wrong_field_is_named_in_one_line(tmp_path: Path, fields: dict[str, object], field: str, why: str) -> None:
    with pytest.raises(TaskDataError) as caught:
        loaded(tmp_path, **fields)
    assert f"tasks.jsonl line 1: field {field!r} {why}" in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_an_unknown_field_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TaskDataError, match="there is no field 'test'; known are"):
        loaded(tmp_path, test="x")


@pytest.mark.skipif(not DOCS.is_file(), reason="the documentation is in the checkout only")
def test_the_example_of_the_documentation_is_a_task(tmp_path: Path) -> None:
    (tmp_path / "tasks.jsonl").write_text(DOCS.read_text(encoding="utf-8").split("```")[1].removeprefix("json\n"))
    (found,) = Coding().load(tmp_path)
    assert Coding().score(found, fenced(found.gold)).reason == "all 2 tests pass"


# --- the sample suite
# ---------------------------------------------------------------------------------------------------------------

VERDICTS = {
    "sample-coding-merge-slots": (True, True, "all 8 tests pass"),
    "sample-coding-choseong": (True, True, "all 6 tests pass"),
    "sample-coding-won-in-words": (True, True, "all 7 tests pass"),
    "sample-coding-gate-log": (True, True, "all 6 tests pass"),
    "sample-coding-version-order": (False, True, "4 of 5 tests pass; test 4 failed (AssertionError)"),
    "sample-coding-rate-limit": (False, False, "the answer has no Python code"),
}


async def test_the_sample_suite_ends_as_its_scripts_say(database: Database) -> None:
    runs = await played(database, "sample_coding")
    assert {task_id: (run.success, run.format_valid, run.score_reason) for task_id, run in runs.items()} == VERDICTS
    assert {run.scorer_version for run in runs.values()} == {"coding-1"}
    assert metrics(database, runs["sample-coding-version-order"])["tests_passed_share"] == 0.8
    assert all("python_exec" in tools_called(database, run) for run in runs.values())


def test_every_reference_solution_passes_and_no_question_shows_a_test() -> None:
    for found in Coding().load(SAMPLES):
        assert Coding().score(found, fenced(found.gold)).success
        assert not any(name in found.question for name in test_names(str(found.extra["tests"])))
