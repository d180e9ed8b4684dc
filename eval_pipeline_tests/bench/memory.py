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
    """The peak of a short batch, and of one ten times as long."""
    short, long = (200, 2000) if size == "full" else (5, 20)
    with tempfile.TemporaryDirectory() as folder:
        variables = write_workload(Path(folder) / "work", long // 5, attempts=5)
        with bench_home(variables=variables | {"EVAL_CONCURRENCY": "10"}):
            before = product_batch("short", short)["peak_mb"]
            after = product_batch("long", long)["peak_mb"]
    ratio = after / before
    yield Figure(f"peak over {short:,} runs", before, "MB")
    yield Figure(f"peak over {long:,} runs", after, "MB", f"over {short}", ratio, "≤ 1.1", ratio <= 1.1)
    yield Figure("growth per run", (after - before) * 1000 / (long - short), "kB")
