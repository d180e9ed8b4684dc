"""The program in the sandbox that loads code, runs tests on it and reports what became of them.

It runs alone, with nothing of ours loaded: :mod:`eval_pipeline.benchmarks.code_run` passes it to the sandbox as text
and judges its report. The code, the tests and this program share a process, so whatever ends that early, prints, exits
or replaces what others call must not look like success. What proves the end is a token that comes over a pipe before
anything is loaded, and goes back over another behind the last test. On the way to it nothing is used that could have
been replaced since: functions and builtins are this module's own copies, and nobody can import it.

The job is one JSON object behind its length in eight digits: ``token``; ``module`` and ``source``, the code, which
exists in memory only; ``tests``; ``apart`` (each test in a process of its own) with ``test_s`` seconds for each;
``seconds`` for all; ``until_failure`` (stop at the first); ``cover`` (note which lines run). The report is JSON lines:
``stage`` (``ready``, ``module``, ``tests``), ``failed`` with the stage's exception, ``collected``, each test's ``test``
and ``outcome`` with its ``error``, ``took``, ``covered`` with ``lines``, and at the end the ``token``.
"""

from __future__ import annotations

import builtins
import json
import sys
import threading
from contextlib import suppress
from importlib.machinery import ModuleSpec
from os import WNOHANG, _exit, close, fdopen, fork, kill, pipe, read, waitpid, write
from select import select
from signal import ITIMER_REAL, SIG_DFL, SIGALRM, SIGKILL, setitimer
from signal import signal as set_signal
from time import monotonic, sleep
from types import AsyncGeneratorType, CodeType, CoroutineType, FrameType, FunctionType, GeneratorType, ModuleType
from unittest import SkipTest, TestCase, TestResult, TestSuite, defaultTestLoader

TYPE_CHECKING = False
if TYPE_CHECKING:
    # half of the time that the program takes to start would go into this
    from collections.abc import Callable, Iterator
    from typing import Any

CHANNEL = (-1, -1)
"""The job's pipe and the report's; the numbers are put in when the program is started."""
TESTS = "tests_under_way"
_SPARE_S = 1.0
_MOST = 1000
"""Bytes of one outcome, which must reach a pipe in one piece."""

# what is defined below has the builtins that stand here, whatever is done to the others later
pristine = dict(vars(builtins))
globals()["__builtins__"] = pristine
run_code, compiled = exec, compile

Outcome = tuple[str, str]
"""``passed``, ``failed``, ``skipped``, ``timeout`` or ``ended`` (its process), and the class of the exception."""


class Sources:
    """Finds one module in memory, whose file nobody can read since there is none."""

    def __init__(self, name: str, source: str) -> None:
        self._name, self._source = name, source
        self.lines: set[int] = set()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        return ModuleSpec(name, self) if name == self._name else None  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        """Leave the making of the module to the import system."""

    def exec_module(self, module: ModuleType) -> None:
        code = compiled(self._source, f"<{self._name}>", "exec", dont_inherit=True)
        self._source = ""
        self.lines = set(lines_of(code))
        run_code(code, vars(module))


def lines_of(code: CodeType) -> Iterator[int]:
    yield from (line for _, _, line in code.co_lines() if line)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from lines_of(constant)


def main() -> None:
    sys.modules["__main__"] = ModuleType("__main__")
    # other frameworks would make the outcome depend on what is installed
    sys.modules["pytest"] = None  # type: ignore[assignment]
    report = CHANNEL[1]
    with fdopen(CHANNEL[0], "rb") as file:
        job = json.loads(file.read(int(file.read(8))))
    token = job.pop("token")
    tell(report, stage="ready")
    source = Sources(job["module"], job.pop("source"))
    sys.meta_path.insert(0, source)
    covered = watched(f"<{job['module']}>") if job["cover"] else None
    tell(report, stage="module")
    if not loaded(report, lambda: __import__(job["module"])):
        return
    tell(report, stage="tests")
    module = ModuleType(TESTS)
    vars(module)["__builtins__"] = dict(pristine)
    sys.modules[TESTS] = module
    tests = job.pop("tests")
    if not loaded(report, lambda: run_code(compiled(tests, f"<{TESTS}>", "exec", dont_inherit=True), vars(module))):
        return
    found = list(collected(module))
    tell(report, collected=[name for name, _ in found])
    run_all(report, found, job, token)
    if covered is not None:
        sys.settrace(None)
        tell(report, covered=sorted(covered & source.lines), lines=sorted(source.lines))
    tell(report, token=token)


# --- the report
# ------------------------------------------------------------------------------------------------------------


def tell(report: int, **fields: Any) -> None:
    data = ("{" + ",".join([f"{text(name)}:{literal(value)}" for name, value in fields.items()]) + "}\n").encode()
    while data:
        data = data[write(report, data) :]


def literal(value: Any) -> str:
    if isinstance(value, str):
        return text(value)
    return "[" + ",".join([literal(item) for item in value]) + "]" if isinstance(value, list) else repr(value)


def text(value: str) -> str:
    return '"' + "".join([escaped(character) for character in value]) + '"'


def escaped(character: str) -> str:
    number = ord(character)
    if 32 <= number < 127 and character not in '"\\':
        return character
    if number < 0x10000:
        return f"\\u{number:04x}"
    return f"\\u{0xD800 + (number - 0x10000 >> 10):04x}\\u{0xDC00 + (number & 0x3FF):04x}"


# --- code and its lines
# ----------------------------------------------------------------------------------------------------


def loaded(report: int, load: Callable[[], Any]) -> bool:
    try:
        load()
    except BaseException as error:
        tell(report, failed=described(error))
        return False
    return True


def described(error: BaseException) -> str:
    """The class of an exception; its text may hold anything, a hidden value for one."""
    name = type(error).__name__
    return name[:60] if isinstance(name, str) else "Exception"


def watched(file: str) -> set[int]:
    """Note from now on which lines of ``file`` run, in every thread."""
    lines: set[int] = set()

    def local(frame: FrameType, event: str, argument: Any) -> Any:
        lines.add(frame.f_lineno)
        return local

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        return local(frame, event, argument) if frame.f_code.co_filename == file else None

    threading.settrace(trace)
    sys.settrace(trace)
    return lines


# --- tests
# -----------------------------------------------------------------------------------------------------------------


def collected(module: ModuleType) -> Iterator[tuple[str, Callable[[], Outcome]]]:
    """The tests that the module itself defines, in its order: functions, and the methods of TestCase classes."""
    for name, value in list(vars(module).items()):
        if getattr(value, "__module__", None) != TESTS:
            continue
        if isinstance(value, FunctionType) and name.startswith("test"):
            yield name, of_function(value)
        elif isinstance(value, type) and issubclass(value, TestCase):
            for method in defaultTestLoader.getTestCaseNames(value):
                yield f"{name}.{method}", of_case(value, method)


def of_function(function: Callable[[], Any]) -> Callable[[], Outcome]:
    def run() -> Outcome:
        try:
            result = function()
            if isinstance(result, CoroutineType):
                import asyncio  # noqa: PLC0415 - it takes long to load, and few tests need it

                asyncio.run(result)
            elif isinstance(result, GeneratorType | AsyncGeneratorType):
                raise TypeError("a test that yields does not run")
        except SkipTest:
            return "skipped", ""
        except BaseException as error:
            return "failed", described(error)
        return "passed", ""

    return run


class Errors(TestResult):
    """The result of one test case that also knows the exceptions."""

    def __init__(self) -> None:
        super().__init__()
        self.classes: list[str] = []

    def addError(self, test: Any, err: Any) -> None:  # noqa: N802 - unittest's name
        self.classes.append(described(err[1]))
        super().addError(test, err)

    def addFailure(self, test: Any, err: Any) -> None:  # noqa: N802 - unittest's name
        self.classes.append(described(err[1]))
        super().addFailure(test, err)


def of_case(case: type[TestCase], method: str) -> Callable[[], Outcome]:
    def run() -> Outcome:
        result = Errors()
        try:
            TestSuite([case(method)]).run(result)
        except BaseException as error:
            return "failed", described(error)
        if not result.wasSuccessful():
            return "failed", result.classes[0] if result.classes else "AssertionError"
        return "skipped" if result.skipped or not result.testsRun else "passed", ""

    return run


def run_all(report: int, tests: list[tuple[str, Callable[[], Outcome]]], job: Any, token: str) -> None:
    started = monotonic()
    if not job["apart"]:
        # a signal that nobody has taken over ends the process, whatever it hangs in
        set_signal(SIGALRM, SIG_DFL)
        setitimer(ITIMER_REAL, job["seconds"])
    for name, test in tests:
        if job["apart"]:
            left = job["seconds"] - (monotonic() - started)
            outcome, error = in_child(report, test, min(job["test_s"], left), token) if left > 0 else ("timeout", "")
        else:
            outcome, error = test()
        tell(report, test=name, outcome=outcome, error=error)
        if job["until_failure"] and outcome not in ("passed", "skipped"):
            break
    setitimer(ITIMER_REAL, 0)
    tell(report, took=round(monotonic() - started, 6))


def in_child(report: int, test: Callable[[], Outcome], seconds: float, token: str) -> Outcome:
    """Run one test in a process of its own, so that one which ends or hangs its process fails alone."""
    reading, writing = pipe()
    pid = fork()
    if not pid:
        close(reading)
        close(report)
        set_signal(SIGALRM, SIG_DFL)
        setitimer(ITIMER_REAL, seconds + _SPARE_S)
        write(writing, f"{token} {' '.join(test())}".encode("utf-8", "replace")[:_MOST])
        _exit(0)
    close(writing)
    in_time = bool(select([reading], [], [], seconds)[0])
    said = read(reading, _MOST).decode("utf-8", "replace").split(" ") if in_time else []
    close(reading)
    end(pid)
    if not in_time:
        return "timeout", ""
    return (said[1], said[2]) if len(said) == 3 and said[0] == token else ("ended", "")


def end(pid: int) -> None:
    """Kill a child and take its entry out of the table.

    Where the sandbox lets nobody be signalled, its own alarm ends it, or the end of the sandbox.
    """
    deadline = monotonic() + _SPARE_S
    with suppress(OSError):
        kill(pid, SIGKILL)
    with suppress(OSError):
        while waitpid(pid, WNOHANG) == (0, 0) and monotonic() < deadline:
            sleep(0.002)


if __name__ == "__main__":
    try:
        main()
    finally:
        # past every exit handler and thread of what has been loaded
        _exit(0)
