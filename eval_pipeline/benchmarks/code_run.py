"""Runs tests on code in the sandbox and says what became of them, believing nothing that is not proved.

What happens inside belongs to :mod:`eval_pipeline.benchmarks.code_driver`, what the outcome is worth to the benchmark.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any, Literal, cast, get_args

from eval_pipeline.errors import EvalPipelineError, ScorerError
from eval_pipeline.ids import shown
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

    ``error`` is the class of the exception that loading failed with; ``stopped`` says why the sandbox ended the program,
    where it did. ``took_s`` is the time of the tests in seconds, as the program measured it. ``covered`` are the lines
    that ran, of ``lines``, that could.
    """

    stage: Stage
    collected: tuple[str, ...] = ()
    ran: tuple[Ran, ...] = ()
    error: str = ""
    stopped: str = ""
    took_s: float = 0.0
    covered: frozenset[int] = frozenset()
    lines: frozenset[int] = frozenset()

    @property
    def passed(self) -> int:
        return sum(test.outcome == "passed" for test in self.ran)


def run_tests(job: Job) -> Report:
    """Run ``job`` at the strongest level of the sandbox that this machine has; takes a bounded time.

    Raises:
        ScorerError: the sandbox cannot be made here, or is weaker than ``EVAL_SANDBOX_MINIMUM``; twice in a row nothing
            came of starting the program.
    """
    report = _attempt(job)
    if report.stage == "none":
        report = _attempt(job)
    if report.stage == "none":
        raise ScorerError(f"the code could not be run: the sandbox did not start ({report.stopped or 'no reason given'})")
    return report


def _attempt(job: Job) -> Report:
    token = secrets.token_hex(16)
    try:
        require(load_settings().sandbox_minimum)
        with contextlib.ExitStack() as open_ends:
            ended, data = _in_sandbox(job, token, open_ends)
    except (EvalPipelineError, OSError) as error:
        raise ScorerError(f"the code could not be run: {error}") from error
    except UnicodeEncodeError:
        return Report("module", error="UnicodeEncodeError")
    report = _read(data, token)
    if report.stage == "none":
        return replace(report, stopped=ended.stopped or ended.output.strip().split("\n")[-1][:200])
    return replace(report, stopped=ended.stopped or "") if report.stage != "done" else report
