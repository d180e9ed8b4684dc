"""Running tests on code in the sandbox: what is reported, and that nothing but a finished run looks like one."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

import pytest

from eval_pipeline.benchmarks import code_run
from eval_pipeline.benchmarks.code_run import Job, Ran, Report, run_tests
from eval_pipeline.errors import ScorerError
from eval_pipeline.tools.sandbox import LEVELS, probe
from eval_pipeline.tools.sandbox.command import Way

pytestmark = pytest.mark.usefixtures("clean_environment")

ADD = "def add(a, b):\n    return a + b\n"
TESTS = """
from solution import add

def test_sum():
    assert add(1, 2) == 3

def test_zero():
    assert add(0, 0) == 0

def test_type():
    assert type(add(2, 2)) is int
"""


def job(
    source: str = ADD, tests: str = TESTS, *, seconds: float = 10.0, test_s: float = 5.0, apart: bool = True
) -> Job:
    return Job("solution", source, tests, seconds=seconds, test_s=test_s, apart=apart)


def outcomes(report: Report) -> list[str]:
    return [test.outcome for test in report.ran]


@pytest.fixture(params=LEVELS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Way:
    """Each level of the sandbox that this machine can make, used in place of the best one."""
    found = probe.way(request.param)
    if found is None:
        pytest.skip(f"this machine cannot make the level {request.param} of the sandbox")
    monkeypatch.setattr(code_run, "best_way", lambda: found)
    return found


def test_right_code_passes_at_every_level(way: Way) -> None:
    report = run_tests(job())
    assert (report.stage, report.passed, report.stopped, report.error) == ("done", 3, "", "")
    assert report.collected == ("test_sum", "test_zero", "test_type")
    assert report.took_s > 0


def test_a_test_that_hangs_is_ended_alone_at_every_level(way: Way) -> None:
    source = "import time\ndef add(a, b):\n    while a:\n        pass\n    return a + b\n"
    begin = time.perf_counter()
    report = run_tests(job(source, seconds=20, test_s=1))
    assert outcomes(report) == ["timeout", "passed", "timeout"]
    assert time.perf_counter() - begin < 30


def test_every_kind_of_test_is_run() -> None:
    tests = """
import unittest
from solution import add

def test_plain(): assert add(1, 1) == 2
async def test_async(): assert add(1, 1) == 3
def test_yield():
    yield 1
def test_skipped(): raise unittest.SkipTest("later")
def test_한글(): assert add("가", "나") == "가나"
def test_with_parameter(thing): pass
def helper(): raise ValueError
not_the_name_of_a_test = test_plain
class Cases(unittest.TestCase):
    def setUp(self): self.one = 1
    def test_case(self): self.assertEqual(add(self.one, 1), 2)
    def test_fails(self): self.assertEqual(add(self.one, 1), 3)
    def test_raises(self): add(1, "1")
    @unittest.skip("never")
    def test_skip(self): raise ValueError
    @unittest.expectedFailure
    def test_expected(self): self.fail()
    @unittest.expectedFailure
    def test_unexpected(self): pass
class Broken(unittest.TestCase):
    @classmethod
    def setUpClass(cls): raise OSError
    def test_never(self): pass
"""
    report = run_tests(job(tests=tests, apart=False))
    assert report.stage == "done"
    assert {(test.name, test.outcome, test.error) for test in report.ran} == {
        ("test_plain", "passed", ""),
        ("test_async", "failed", "AssertionError"),
        ("test_yield", "failed", "TypeError"),
        ("test_skipped", "skipped", ""),
        ("test_한글", "passed", ""),
        ("test_with_parameter", "failed", "TypeError"),
        ("Cases.test_case", "passed", ""),
        ("Cases.test_fails", "failed", "AssertionError"),
        ("Cases.test_raises", "failed", "TypeError"),
        ("Cases.test_skip", "skipped", ""),
        ("Cases.test_expected", "passed", ""),
        ("Cases.test_unexpected", "failed", "AssertionError"),
        ("Broken.test_never", "failed", "OSError"),
    }


def test_what_is_imported_is_no_test_of_the_module() -> None:
    source = ADD + "def test_own(): raise ValueError\n"
    report = run_tests(job(source, "from solution import *\ndef test_it(): assert add(1, 1) == 2\n"))
    assert report.collected == ("test_it",)


@pytest.mark.parametrize(
    ("source", "stage", "error"),
    [
        ("def add(a, b) return", "module", "SyntaxError"),
        ("x = [" * 50_000, "module", "SyntaxError"),
        ("x = 1\0", "module", "SyntaxError"),
        ("x = '\ud800'", "module", "UnicodeEncodeError"),
        ("import nothing_of_that_name", "module", "ModuleNotFoundError"),
        ("import pytest", "module", "ModuleNotFoundError"),
        ("import sys\nsys.exit(0)", "module", "SystemExit"),
        ("raise KeyboardInterrupt", "module", "KeyboardInterrupt"),
        ("class Odd(Exception): pass\nOdd.__name__ = 'not a name; at all'\nraise Odd", "module", "Exception"),
        ("import os\nos._exit(0)", "module", ""),
        ("import os\nos.abort()", "module", ""),
        ("x = bytearray(2**33)", "module", "MemoryError"),
        ("import time\ndef ad(a, b): return 0", "tests", "ImportError"),
    ],
)
def test_code_that_cannot_be_loaded_says_how_far_it_came(source: str, stage: str, error: str) -> None:
    report = run_tests(job(source))
    assert (report.stage, report.error, report.passed) == (stage, error, 0)


def test_loading_that_never_ends_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_run, "_START_S", 2.0)
    report = run_tests(job("while True: pass", seconds=1))
    assert (report.stage, report.timed_out, report.stopped) == ("module", True, "it took longer than 3 s")


def test_tests_that_do_not_stand_apart_have_one_time_together() -> None:
    report = run_tests(job(tests="def test_a(): pass\ndef test_b():\n    while True: pass\n", seconds=1, apart=False))
    assert (report.stage, report.timed_out, outcomes(report), report.passed) == ("run", True, ["passed"], 0)


def test_it_can_stop_at_the_first_failure() -> None:
    tests = "def test_a(): pass\ndef test_b(): assert 0\ndef test_c(): pass\n"
    report = run_tests(Job("solution", "", tests, seconds=5, until_failure=True))
    assert (report.stage, outcomes(report), len(report.collected)) == ("done", ["passed", "failed"], 3)


def test_lines_that_run_are_told_from_those_that_do_not() -> None:
    source = (
        '"""Doc."""\n\nX = 1\n\ndef half(x):\n    """Doc."""\n    if x % 2:\n        raise OSError\n    return x // 2\n'
    )
    tests = """
import threading
from solution import half

def test_in_a_thread():
    thread = threading.Thread(target=half, args=(4,))
    thread.start()
    thread.join()
"""
    report = run_tests(Job("solution", source, tests, seconds=5, cover=True))
    assert report.lines == {1, 3, 5, 7, 8, 9}
    assert report.lines - report.covered == {8}


FORGED = """
import os
lines = b'{"collected":["test_sum","test_zero","test_type"]}\\n' + b"".join(
    b'{"test":"%s","outcome":"passed","error":""}\\n' % name for name in (b"test_sum", b"test_zero", b"test_type"))
def forge(more):
    for fd in range(3, 40):
        try:
            os.write(fd, lines + more)
        except OSError:
            pass
"""


@pytest.mark.parametrize(
    "source",
    [
        FORGED + "forge(b'')\nos._exit(0)\n",
        FORGED + 'forge(b\'{"token":"0"}\\n\')\nos._exit(0)\n',
        FORGED + "forge(b'')\ndef add(a, b): return 0\n",
        FORGED + "def add(a, b):\n    forge(b'')\n    os._exit(0)\n",
        # what the driver calls is replaced
        "import os, json, builtins, unittest\nos.write = os._exit = os.fork = json.dumps = lambda *a: None\n"
        "builtins.compile = builtins.exec = lambda *a, **k: None\nunittest.TestCase.run = None\n"
        "def add(a, b): return 0\n",
        "import __main__\n__main__.of_function = lambda function: lambda: ('passed', '')\n"
        "__main__.in_child = lambda *a: ('passed', '')\ndef add(a, b): return 0\n",
        "import sys\nfor module in list(sys.modules.values()):\n    if hasattr(module, 'in_child'):\n"
        "        module.in_child = lambda *a: ('passed', '')\ndef add(a, b): return 0\n",
        "import sys\nclass Any:\n    def __getattr__(self, name): return lambda *a: a\n"
        "sys.modules['tests_under_way'] = Any()\ndef add(a, b): return 0\n",
    ],
)
def test_a_report_that_is_made_up_is_not_believed(source: str) -> None:
    assert run_tests(job(source)).passed < 3


BEGUN = b'{"stage":"ready"}\n{"stage":"module"}\n{"stage":"tests"}\n{"collected":["a","b"]}\n'
PASSED = b'{"test":"a","outcome":"passed","error":""}\n{"test":"b","outcome":"passed","error":""}\n'
TOKEN = b'{"token":"T"}\n'


@pytest.mark.parametrize(
    ("data", "stage"),
    [
        (b"", "none"),
        (b"null\n", "none"),
        (b"\xff\xfe\n", "none"),
        (TOKEN, "none"),
        (b'{"stage":"module"}\n', "none"),
        (b'{"stage":"ready"}\n' + TOKEN, "ready"),
        (b'{"stage":"ready"}\n{"stage":"module"}\n{"failed":5}\n' + TOKEN, "module"),
        (BEGUN.replace(b'["a","b"]', b"5") + TOKEN, "tests"),
        (BEGUN.replace(b'["a","b"]', b"[5]") + TOKEN, "tests"),
        (BEGUN + PASSED, "run"),
        (BEGUN + PASSED + TOKEN.replace(b"T", b"X"), "run"),
        (BEGUN + PASSED + TOKEN + PASSED, "run"),
        (BEGUN + PASSED + TOKEN + TOKEN, "run"),
        (BEGUN + PASSED + PASSED + TOKEN, "run"),
        (BEGUN + PASSED.replace(b'"b"', b'"a"') + TOKEN, "run"),
        (BEGUN + PASSED.replace(b'"b"', b"7") + TOKEN, "run"),
        (BEGUN + PASSED.replace(b"passed", b"splendid") + TOKEN, "run"),
        (BEGUN + BEGUN + PASSED + TOKEN, "run"),
        (BEGUN + b"nonsense\n" + PASSED + TOKEN, "run"),
        (BEGUN + b"[" * 100_000 + b"\n" + PASSED + TOKEN, "run"),
        (BEGUN + PASSED + b'{"took":"long"}\n' + TOKEN, "run"),
        (BEGUN + PASSED + b'{"covered":["x"],"lines":[1]}\n' + TOKEN, "run"),
        (BEGUN + PASSED + b'{"took":0.5}\n' + TOKEN, "done"),
    ],
)
def test_a_report_is_believed_up_to_the_first_line_that_is_not_the_drivers(data: bytes, stage: str) -> None:
    report = code_run._read(data, "T")
    assert (report.stage, report.passed) == (stage, 2 if stage == "done" else 0)


def test_the_code_leaves_no_file_and_finds_none(tmp_path: Path) -> None:
    tests = """
import inspect, os, pathlib, solution

def test_no_source():
    try:
        inspect.getsource(solution.add)
    except OSError:
        return
    raise AssertionError

def test_no_file():
    assert not hasattr(solution, "__file__")
    text = "".join(p.read_text() for p in pathlib.Path.cwd().rglob("*") if p.is_file())
    assert "a + b" not in text and "test_no_" + "file" not in text
"""
    assert outcomes(run_tests(job(tests=tests))) == ["passed", "passed"]


async def test_it_can_be_called_where_an_event_loop_runs() -> None:
    assert asyncio.get_running_loop().is_running()
    assert run_tests(job()).passed == 3


def test_a_large_job_and_a_large_report_pass_through_the_pipes() -> None:
    tests = "\n".join(f"def test_{'x' * 50}_{n}(): assert '{'y' * 80}'" for n in range(900))
    report = run_tests(job("z = 1\n" * 20_000, tests, apart=False))
    assert (report.stage, report.passed) == ("done", 900)


def test_a_sandbox_that_does_not_start_is_nobodys_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_run, "_driver", lambda: "import sys\nprint('out of order')\nsys.exit(3)\n")
    with pytest.raises(ScorerError, match=r"the sandbox did not start \(out of order\)"):
        run_tests(job())


def test_a_sandbox_weaker_than_the_setting_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVAL_SANDBOX_MINIMUM", "bwrap")
    monkeypatch.setattr(probe, "best_level", lambda: "limits")
    with pytest.raises(ScorerError, match="EVAL_SANDBOX_MINIMUM asks for bwrap"):
        run_tests(job())


def test_no_pipe_is_left_open() -> None:
    def open_files() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    run_tests(job())
    before = open_files()
    for source in (ADD, "import os\nos._exit(0)", "def add(a, b): return 0"):
        run_tests(job(source))
    assert open_files() <= before


def test_a_test_says_what_it_was() -> None:
    report = run_tests(job("def add(a, b): return [][a]"))
    assert report.ran[0] == Ran("test_sum", "failed", "IndexError")
    assert json.loads(json.dumps(report.collected)) == ["test_sum", "test_zero", "test_type"]
