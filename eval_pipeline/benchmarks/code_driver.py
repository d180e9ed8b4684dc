"""The program in the sandbox that loads code, runs tests on it and reports what became of them.

It runs alone, with nothing of ours loaded: :mod:`eval_pipeline.benchmarks.code_run` passes it to the sandbox as text and
judges its report. Code and tests are strangers to each other and to this program: they share its process, so that
whatever ends it early, prints or exits, must not look like success. What proves the end is a token that comes over a
pipe before any of them is loaded, and goes back over another behind the last test.

The job is one JSON object behind its length in eight digits: ``token``; ``module`` and ``source``, the code, which
exists in memory only; ``tests``; ``apart`` (each test in a process of its own) with ``test_s`` seconds for each;
``seconds`` for all; ``until_failure`` (stop at the first); ``cover`` (note the lines that run). The report is JSON lines:
``stage`` (``ready``, ``module``, ``tests``), ``failed`` with the stage's exception, ``collected``, each test's ``test``
and ``outcome`` with its exception, ``took``, ``covered`` with ``lines``, and at the end the ``token``.
"""

# ruff: noqa: PTH100

import asyncio
import contextlib
import importlib.abc
import importlib.machinery
import inspect
import json
import os
import select
import signal
import sys
import threading
import time
import types
import unittest
from collections.abc import Callable, Iterator
from typing import Any

CHANNEL = (-1, -1)
"""The job's pipe and the report's; the numbers are put in when the program is started."""
TESTS = "tests_under_way"
_SPARE_S = 1.0
_MOST = 3000
"""Bytes of one outcome, which must reach a pipe in one piece."""

Outcome = dict[str, str]


class Sources(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Finds one module in memory, whose file nobody can read since there is none."""

    def __init__(self, name: str, source: str) -> None:
        self._name, self._source = name, source
        self.lines: set[int] = set()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != self._name:
            return None
        return importlib.machinery.ModuleSpec(name, self)

    def get_source(self, fullname: str) -> str | None:
        return None

    def get_code(self, fullname: str) -> types.CodeType:
        code = compile(self._source, f"<{self._name}>", "exec", dont_inherit=True)
        self._source = ""
        self.lines = set(lines_of(code))
        return code


def lines_of(code: types.CodeType) -> Iterator[int]:
    yield from (line for _, _, line in code.co_lines() if line)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from lines_of(constant)


class Report:
    """The lines that go out; what they need is held here, where nothing that is loaded later can replace it."""

    def __init__(self, pipe: int) -> None:
        self._pipe, self._write, self._dumps = pipe, os.write, json.dumps

    def tell(self, **fields: Any) -> None:
        data = self._dumps(fields).encode() + b"\n"
        while data:
            data = data[self._write(self._pipe, data) :]

    def close(self) -> None:
        os.close(self._pipe)


def received(pipe: int) -> Any:
    with os.fdopen(pipe, "rb") as file:
        return json.loads(file.read(int(file.read(8))))


def main() -> None:
    report = Report(CHANNEL[1])
    job = received(CHANNEL[0])
    token = job.pop("token")
    report.tell(stage="ready")
    # other frameworks would make the outcome depend on what is installed
    sys.modules["pytest"] = None  # type: ignore[assignment]
    source = Sources(job["module"], job.pop("source"))
    sys.meta_path.insert(0, source)
    covered = watched(f"<{job['module']}>") if job["cover"] else None
    report.tell(stage="module")
    if not loaded(report, lambda: __import__(job["module"])):
        return
    report.tell(stage="tests")
    module = types.ModuleType(TESTS)
    sys.modules[TESTS] = module
    tests = job.pop("tests")
    if not loaded(report, lambda: exec(compile(tests, f"<{TESTS}>", "exec", dont_inherit=True), vars(module))):
        return
    found = list(collected(module))
    report.tell(collected=[name for name, _ in found])
    run_all(report, found, job, token)
    if covered is not None:
        sys.settrace(None)
        report.tell(covered=sorted(covered & source.lines), lines=sorted(source.lines))
    report.tell(token=token)


def loaded(report: Report, load: Callable[[], Any]) -> bool:
    try:
        load()
    except BaseException as error:
        report.tell(failed=described(error))
        return False
    return True


def described(error: BaseException) -> str:
    """The class of an exception; its text may hold anything, a hidden value for one."""
    return str(getattr(type(error), "__name__", "Exception"))[:60]


def watched(file: str) -> set[int]:
    """Note from now on which lines of ``file`` run, in every thread."""
    lines: set[int] = set()

    def local(frame: types.FrameType, event: str, argument: Any) -> Any:
        lines.add(frame.f_lineno)
        return local

    def trace(frame: types.FrameType, event: str, argument: Any) -> Any:
        if frame.f_code.co_filename != file:
            return None
        return local(frame, event, argument)

    threading.settrace(trace)
    sys.settrace(trace)
    return lines


# --- tests
# -----------------------------------------------------------------------------------------------------------------


def collected(module: types.ModuleType) -> Iterator[tuple[str, Callable[[], Outcome]]]:
    """The tests that the module itself defines, in its order: functions, and the methods of TestCase classes."""
    for name, value in list(vars(module).items()):
        if getattr(value, "__module__", None) != TESTS:
            continue
        if inspect.isfunction(value) and name.startswith("test"):
            yield name, lambda function=value: of_function(function)  # type: ignore[misc]
        elif isinstance(value, type) and issubclass(value, unittest.TestCase):
            for method in unittest.defaultTestLoader.getTestCaseNames(value):
                yield f"{name}.{method}", lambda case=value(method): of_case(case)  # type: ignore[misc]


def of_function(function: Callable[[], Any]) -> Outcome:
    try:
        result = function()
        if inspect.iscoroutine(result):
            asyncio.run(result)
        elif inspect.isgenerator(result) or inspect.isasyncgen(result):
            raise TypeError("a test that yields does not run")
    except unittest.SkipTest:
        return {"outcome": "skipped"}
    except BaseException as error:
        return {"outcome": "failed", "error": described(error)}
    return {"outcome": "passed"}


def of_case(case: unittest.TestCase) -> Outcome:
    errors: list[str] = []

    class Result(unittest.TestResult):
        def addError(self, test: Any, err: Any) -> None:  # noqa: N802 - unittest's name
            errors.append(described(err[1]))
            super().addError(test, err)

        def addFailure(self, test: Any, err: Any) -> None:  # noqa: N802 - unittest's name
            errors.append(described(err[1]))
            super().addFailure(test, err)

    result = Result()
    try:
        unittest.TestSuite([case]).run(result)
    except BaseException as error:
        return {"outcome": "failed", "error": described(error)}
    if not result.wasSuccessful():
        return {"outcome": "failed", "error": next(iter(errors), "AssertionError")}
    return {"outcome": "skipped" if result.skipped or not result.testsRun else "passed"}


def run_all(report: Report, tests: list[tuple[str, Callable[[], Outcome]]], job: Any, token: str) -> None:
    started = time.monotonic()
    if not job["apart"]:
        # a signal that nobody has taken over ends the process, whatever it hangs in
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, job["seconds"])
    for name, test in tests:
        if job["apart"]:
            left = job["seconds"] - (time.monotonic() - started)
            outcome = in_child(report, test, min(job["test_s"], left), token) if left > 0 else {"outcome": "timeout"}
        else:
            outcome = test()
        report.tell(test=name, **outcome)
        if job["until_failure"] and outcome["outcome"] not in ("passed", "skipped"):
            break
    signal.setitimer(signal.ITIMER_REAL, 0)
    report.tell(took=round(time.monotonic() - started, 6))


def in_child(report: Report, test: Callable[[], Outcome], seconds: float, token: str) -> Outcome:
    """Run one test in a process of its own, so that one which ends or hangs its process fails alone."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(reading)
        report.close()
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, seconds + _SPARE_S)
        os.write(writing, json.dumps({"token": token, **test()}).encode()[:_MOST])
        os._exit(0)
    os.close(writing)
    in_time = bool(select.select([reading], [], [], seconds)[0])
    said = os.read(reading, _MOST) if in_time else b""
    os.close(reading)
    # where nobody outside a group may be signalled, the child's own alarm ends it, or the sandbox's end does
    with contextlib.suppress(OSError):
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    if not in_time:
        return {"outcome": "timeout"}
    try:
        outcome = json.loads(said)
        if outcome.pop("token") == token:
            return dict(outcome)
    except (ValueError, KeyError, TypeError, AttributeError):
        pass
    return {"outcome": "ended"}


if __name__ == "__main__":
    try:
        main()
    finally:
        # past every exit handler and thread of what has been loaded
        os._exit(0)
