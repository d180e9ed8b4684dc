"""(h) Whether a worker's memory grows with the runs that it has behind it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from eval_pipeline_tests.bench.figures import Figure, Size
from eval_pipeline_tests.bench.measuring import product_batch
from eval_pipeline_tests.bench.places import bench_home
from eval_pipeline_tests.bench.workload import write_workload

TITLE = "(h) memory of one process over its runs"


def measure(size: Size) -> Iterator[Figure]:
    """What the process holds when a tenth of a long batch has ended, and when all of it has."""
    runs = 2000 if size == "full" else 20
    with tempfile.TemporaryDirectory() as folder:
        variables = write_workload(Path(folder) / "work", runs // 5, attempts=5)
        with bench_home(variables=variables | {"EVAL_CONCURRENCY": "10"}):
            product_batch("warm-up", 2)
            measured = product_batch("long", runs)
    early, late = measured["early_mb"], measured["late_mb"]
    ratio = late / early
    yield Figure(f"after {runs // 10:,} of {runs:,} runs", early, "MB")
    yield Figure("after the last", late, "MB", "after a tenth", ratio, "≤ 1.1", ratio <= 1.1)
    yield Figure("growth per run", (late - early) * 1000 / (runs - runs // 10), "kB")
    yield Figure("peak", measured["peak_mb"], "MB")
