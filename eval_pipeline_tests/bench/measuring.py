"""Starts what is measured in processes of their own, and reads what they print of themselves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from eval_pipeline_tests.bench.workload import TEAM

INSPECT = "EVAL_TEST_INSPECT"
"""The Python of an environment that has ``inspect-ai``; without it there is nothing to compare with."""

_INSPECT_SIDE = Path(__file__).parent / "inspect_side"

# what is measured has an environment of its own, without settings of a test
_INSPECT_PYTHON = os.environ.get(INSPECT)

Measured = dict[str, float]


def inspect_python() -> str | None:
    """The Python with Inspect, if there is one."""
    return _INSPECT_PYTHON


def last_json(command: list[str]) -> Measured:
    """Run ``command``; the JSON object on the last line that it prints.

    Raises:
        RuntimeError: it failed; with the end of what it said.
    """
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[:4])} failed: {(done.stderr or done.stdout)[-2000:]}")
    measured: Measured = json.loads(done.stdout.strip().rsplit("\n", 1)[-1])
    return measured


def product_batch(batch: str, runs: int, *, suite: str = "grid", team: str = TEAM) -> Measured:
    """A batch of the product over that many cells of a suite of the current home; see ``product_side``."""
    side = [sys.executable, "-m", "eval_pipeline_tests.bench.product_side"]
    measured = last_json([*side, f"{batch}@{team}", suite, f"0:{runs}"])
    if measured["runs"] != runs:
        raise RuntimeError(f"{measured['runs']} of {runs} runs completed")
    return measured


def first_call(batch: str, runs: int) -> Measured:
    """Launch that batch and kill the worker at its first request to the model, which leaves it to be resumed."""
    side = [sys.executable, "-m", "eval_pipeline_tests.bench.product_side"]
    return last_json([*side, f"{batch}@{TEAM}", "grid", f"0:{runs}", "until-the-first-call"])


def inspect_batch(samples: int, latency_s: float, concurrency: int) -> Measured:
    """The same number of samples in Inspect; see ``inspect_side/overhead.py``."""
    with tempfile.TemporaryDirectory() as logs:
        arguments = [str(samples), str(latency_s), str(concurrency), logs]
        measured = last_json([inspect_python() or "", str(_INSPECT_SIDE / "overhead.py"), *arguments])
    if measured["samples"] != samples:
        raise RuntimeError(f"Inspect: {measured['samples']} of {samples} samples")
    return measured
