"""Runs tests on code in the sandbox and says what became of them, believing nothing that is not proved.

What happens inside belongs to :mod:`eval_pipeline.benchmarks.code_driver`, what the outcome is worth to the benchmark.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any, Literal, get_args

from eval_pipeline.errors import EvalPipelineError, ScorerError
from eval_pipeline.settings import load_settings
from eval_pipeline.tools.sandbox.policy import Limits
from eval_pipeline.tools.sandbox.probe import best_way, require
from eval_pipeline.tools.sandbox.runner import Ended, run

Outcome = Literal["passed", "failed", "skipped", "timeout", "ended"]
"""Of one test; ``ended``: it ended the process that it ran in."""
Stage = Literal["none", "ready", "module", "tests", "run", "done"]
"""How far a run came: not even to its program; that is there; it loads the code; it loads the tests; it runs them; and
all of them are over, which the token proves."""

_MIB = 1024 * 1024
_LIMITS = Limits(memory=1024 * _MIB, file_size=_MIB, disk=16 * _MIB, output=_MIB, characters=2000)
_START_S = 10.0
"""Beside the time of the tests: for the sandbox, the interpreter and the loading of code and tests."""
_MAX_REPORT = 4 * _MIB
_CHUNK = 64 * 1024
_JOIN_S = 5.0
_FOLLOWS: dict[Stage, Stage] = {"none": "ready", "ready": "module", "module": "tests"}
_TOO_SLOW = (128 + signal.SIGALRM, 128 + signal.SIGXCPU)


@dataclass(frozen=True, slots=True)
class Job:
    """What is run: the ``tests`` on the ``source`` of the module called ``module``.

    ``seconds`` is the time of all tests together, ``test_s`` that of one, for tests that run ``apart``: each in a
    process of its own. ``until_failure`` stops at the first test that fails; ``cover`` notes which lines run.
    """

    module: str
    source: str
    tests: str
    seconds: float
    test_s: float = 5.0
    apart: bool = False
    until_failure: bool = False
    cover: bool = False


@dataclass(frozen=True, slots=True)
class Ran:
    """One test. ``error`` is the class of the exception that it failed with, as a person may be shown it."""

    name: str
    outcome: Outcome
    error: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """What became of a job.

    ``error`` is the class of the exception that loading failed with; ``stopped`` says why the sandbox ended the
    program, where it did, and ``timed_out`` whether it took too long. ``took_s`` is the time of the tests in seconds,
    as the program measured it. ``covered`` are the lines that ran, of ``lines``, that could.
    """

    stage: Stage
    collected: tuple[str, ...] = ()
    ran: tuple[Ran, ...] = ()
    error: str = ""
    stopped: str = ""
    timed_out: bool = False
    took_s: float = 0.0
    covered: frozenset[int] = frozenset()
    lines: frozenset[int] = frozenset()

    @property
    def passed(self) -> int:
        """How many tests passed; none where nothing proves that the report is the driver's own."""
        return sum(test.outcome == "passed" for test in self.ran) if self.stage == "done" else 0


def run_tests(job: Job) -> Report:
    """Run ``job`` at the strongest level of the sandbox that this machine has; takes a bounded time.

    Raises:
        ScorerError: the sandbox cannot be made here, or is weaker than ``EVAL_SANDBOX_MINIMUM``; or twice in a row
            nothing came of starting it.
    """
    report = _attempt(job)
    if report.stage == "none":
        report = _attempt(job)
    if report.stage == "none":
        raise ScorerError(
            f"the code could not be run: the sandbox did not start ({report.stopped or 'no reason given'})"
        )
    return report


def _attempt(job: Job) -> Report:
    token = secrets.token_hex(16)
    try:
        message = json.dumps({"token": token, **asdict(job)}, ensure_ascii=True).encode()
        require(load_settings().sandbox_minimum)
        ended, data = _in_sandbox(b"%08d%s" % (len(message), message), replace(_LIMITS, seconds=job.seconds + _START_S))
    except (EvalPipelineError, OSError) as error:
        raise ScorerError(f"the code could not be run: {error}") from error
    report = _read(data, token)
    if report.stage == "done":
        return report
    if report.stage == "none":
        return replace(report, stopped=ended.stopped or ended.output.strip().split("\n")[-1][:200])
    too_slow = ended.status in _TOO_SLOW or (ended.stopped is not None and ended.seconds >= job.seconds + _START_S)
    return replace(report, stopped=ended.stopped or "", timed_out=too_slow)


def _in_sandbox(message: bytes, limits: Limits) -> tuple[Ended, bytes]:
    """Start the driver, send it ``message`` and take in its report."""
    job_read, job_write = os.pipe()
    report_read, report_write = os.pipe()
    taken: list[bytes] = []
    threads = [
        threading.Thread(target=_send, args=(job_write, message), daemon=True),
        threading.Thread(target=_take, args=(report_read, taken), daemon=True),
    ]
    for thread in threads:
        thread.start()
    try:
        code = _driver().replace("CHANNEL = (-1, -1)", f"CHANNEL = ({job_read}, {report_write})")
        # in a thread of its own, since the caller's may have an event loop that is running
        with ThreadPoolExecutor(1) as pool:
            started = run(best_way(), code, None, limits, pass_fds=(job_read, report_write))
            ended = pool.submit(asyncio.run, started).result()
    finally:
        os.close(job_read)
        os.close(report_write)
        for thread in threads:
            thread.join(_JOIN_S)
    return ended, b"".join(taken)


def _send(pipe: int, message: bytes) -> None:
    with contextlib.suppress(OSError), os.fdopen(pipe, "wb") as file:  # who should read it may have ended
        file.write(message)


def _take(pipe: int, taken: list[bytes]) -> None:
    left = _MAX_REPORT
    with os.fdopen(pipe, "rb", buffering=0) as file:
        while left > 0 and (chunk := file.read(_CHUNK)):
            taken.append(chunk)
            left -= len(chunk)


def _read(data: bytes, token: str) -> Report:
    """The report as far as it can be believed: up to the first line that the driver would not have written."""
    report = Report("none")
    for line in data.split(b"\n"):
        if not line or report.stage == "done":
            # what is written behind the token was not written by the driver
            return replace(report, stage="run") if line else report
        try:
            report = _with_line(report, json.loads(line), token)
        except (ValueError, TypeError, LookupError, RecursionError):
            break
    return report


def _with_line(report: Report, said: Any, token: str) -> Report:
    """``report`` with one more line, if the driver could have written it at this place.

    Raises:
        ValueError: it could not.
    """
    match report.stage, said:
        case "none" | "ready" | "module", {"stage": stage} if _FOLLOWS.get(report.stage) == stage:
            return replace(report, stage=stage)
        case "module" | "tests", {"failed": error}:
            return replace(report, error=_class_name(error))
        case "tests", {"collected": [*names]} if all(isinstance(name, str) for name in names):
            return replace(report, stage="run", collected=tuple(names))
        case "run", {"test": name, "outcome": outcome, "error": error} if outcome in get_args(Outcome):
            if report.collected[len(report.ran)] == name:
                ran = Ran(name, outcome, _class_name(error) if error else "")
                return replace(report, ran=(*report.ran, ran))
        case "run", {"took": int() | float() as seconds}:
            return replace(report, took_s=float(seconds))
        case "run", {"covered": [*covered], "lines": [*lines]}:
            return replace(report, covered=frozenset(map(int, covered)), lines=frozenset(map(int, lines)))
        case "run", {"token": given} if given == token:
            return replace(report, stage="done")
    raise ValueError("no line of the driver's")


def _class_name(name: object) -> str:
    return name if isinstance(name, str) and name.isidentifier() and name.isascii() else "Exception"


@cache
def _driver() -> str:
    return files(__package__).joinpath("code_driver.py").read_text(encoding="utf-8")
