"""(a) What a run costs when the model costs nothing, everything stored and told to Dagster, beside Inspect."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from eval_pipeline_tests.bench.figures import Figure, Size
from eval_pipeline_tests.bench.measuring import Measured, inspect_batch, inspect_python, product_batch
from eval_pipeline_tests.bench.places import bench_home
from eval_pipeline_tests.bench.workload import write_workload

TITLE = "(a) overhead of a run: six turns, two tool calls, a model without latency"
CONCURRENCY = 10


def measure(size: Size) -> Iterator[Figure]:
    """CPU and wall per run and the peak of memory, and the same of Inspect; then the memory of a longer batch.

    The two take turns, since the machine is not always equally fast; the figures are medians.
    """
    runs, many, rounds = (200, 1000, 5) if size == "full" else (10, 20, 1)
    of_ours: list[Measured] = []
    of_theirs: list[Measured] = []
    with tempfile.TemporaryDirectory() as folder:
        variables = write_workload(Path(folder) / "work", many // 5, attempts=5)
        with bench_home(variables=variables | {"EVAL_CONCURRENCY": str(CONCURRENCY)}):
            product_batch("warm-up", 2)
            for number in range(rounds):
                of_ours.append(product_batch(f"measured-{number}", runs))
                if inspect_python():
                    of_theirs.append(inspect_batch(runs, 0.0, CONCURRENCY))
            long = product_batch("long", many)
    for what, name, scale, unit in (
        ("CPU per run", "cpu_s", 1000 / runs, "ms"),
        ("CPU per run, PostgreSQL's included", "all_cpu_s", 1000 / runs, "ms"),
        ("wall per run", "wall_s", 1000 / runs, "ms"),
        ("peak of memory", "peak_mb", 1.0, "MB"),
        ("CPU before the first run", "start_cpu_s", 1.0, "s"),
    ):
        value = median(_of(ours, name) for ours in of_ours) * scale
        theirs = median(_of(one, name) for one in of_theirs) * scale if of_theirs else None
        ratio = value / theirs if theirs else None
        target, met = ("≤ 0.5", ratio <= 0.5 if ratio is not None else None) if name == "cpu_s" else ("", None)
        yield Figure(what, value, unit, "Inspect", ratio, target, met)
    peak = long["peak_mb"]
    yield Figure(f"peak of memory at {many:,} runs", peak, "MB", target="≤ 250 MB", met=peak <= 250)


def _of(measured: Measured, name: str) -> float:
    if name == "all_cpu_s":
        return measured["cpu_s"] + measured.get("server_cpu_s", 0.0)
    return measured[name]
