"""(b) How near a batch comes to the time that the model alone would take."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from eval_pipeline_tests.bench.figures import Figure, Size
from eval_pipeline_tests.bench.measuring import inspect_batch, inspect_python, product_batch
from eval_pipeline_tests.bench.places import bench_home
from eval_pipeline_tests.bench.workload import CALLS, TURNS, write_workload

TITLE = "(b) efficiency: ideal time (runs × calls × latency ÷ concurrency) over the launch's own time"


def measure(size: Size) -> Iterator[Figure]:
    """The share for two latencies, at the concurrency where it is hardest; Inspect's beside it at the shorter one."""
    concurrency = 50 if size == "full" else 4
    # the waves are whole, so that the ideal can be reached; our calls are the turns and the choices of a speaker
    plans = ((0.5, 8), (1.0, 4)) if size == "full" else ((0.05, 2),)
    for latency_s, waves in plans:
        runs = waves * concurrency
        with tempfile.TemporaryDirectory() as folder:
            variables = write_workload(Path(folder) / "work", runs // 2, attempts=2)
            latency = {"EVAL_CONCURRENCY": str(concurrency), "EVAL_SCRIPTED_LATENCY_S": str(latency_s)}
            with bench_home(variables=variables | latency):
                ours = product_batch("measured", runs)
        share = waves * CALLS * latency_s / ours["wall_s"]
        target, met = ("≥ 0.95", share >= 0.95) if latency_s == 0.5 else ("", None)
        what = f"{runs} runs at {concurrency}, {latency_s:g} s latency"
        yield Figure(what, share, "of 1", target=target, met=met)
        if inspect_python():
            theirs = inspect_batch(runs, latency_s, concurrency)
            yield Figure(
                f"the same in Inspect ({TURNS} calls a sample)", waves * TURNS * latency_s / theirs["wall_s"], "of 1"
            )
