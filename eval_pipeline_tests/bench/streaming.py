"""(g) What streaming costs: many runs at once, thousands of chunks a run, beside the same answers in one piece."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from eval_pipeline_tests.bench.endpoint_side import PLANNERS
from eval_pipeline_tests.bench.figures import Figure, Size
from eval_pipeline_tests.bench.measuring import product_batch
from eval_pipeline_tests.bench.places import bench_home
from eval_pipeline_tests.endpoint_suite import SUITE, TEAM

TITLE = "(g) streaming: CPU of the worker, the endpoint in a process of its own"


def measure(size: Size) -> Iterator[Figure]:
    """CPU per run with and without a stream of 3,000 chunks, the chunks 10 ms apart."""
    runs, chunks, delay_s = (50, 3000, 0.01) if size == "full" else (4, 40, 0.001)
    with tempfile.TemporaryDirectory() as folder, _endpoint(Path(folder), runs, chunks // PLANNERS, delay_s) as where:
        cpu_ms: dict[str, float] = {}
        for stream in ("false", "true"):
            with bench_home(variables=where | {"EVAL_CONCURRENCY": str(runs), "EVAL_LLM_STREAM": stream}):
                measured = product_batch("measured", runs, suite=SUITE, team=TEAM)
            cpu_ms[stream] = measured["cpu_s"] * 1000 / runs
    yield Figure("CPU per run, answers in one piece", cpu_ms["false"], "ms")
    ratio = cpu_ms["true"] / cpu_ms["false"]
    what = f"CPU per run, {chunks:,} chunks streamed to {runs} runs at once"
    yield Figure(what, cpu_ms["true"], "ms", "in one piece", ratio, "≤ 2", ratio <= 2)
    yield Figure("CPU per chunk", (cpu_ms["true"] - cpu_ms["false"]) * 1000 / chunks, "µs")


@contextlib.contextmanager
def _endpoint(folder: Path, tasks: int, pieces: int, delay_s: float) -> Iterator[dict[str, str]]:
    """A talkative endpoint, and the variables that lead to it."""
    command = [sys.executable, "-m", "eval_pipeline_tests.bench.endpoint_side"]
    arguments = [str(folder), str(tasks), str(pieces), str(delay_s)]
    with subprocess.Popen([*command, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as serving:
        assert serving.stdin is not None
        assert serving.stdout is not None
        try:
            variables: dict[str, str] = json.loads(serving.stdout.readline())
            yield variables
        finally:
            serving.stdin.close()
