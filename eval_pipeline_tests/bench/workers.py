"""Several worker processes over one batch, on one machine and one PostgreSQL: how much faster than one."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import text

from eval_pipeline.launcher import open_instance
from eval_pipeline_tests.bench.figures import Figure, Size
from eval_pipeline_tests.bench.measuring import product_batch
from eval_pipeline_tests.bench.places import bench_home, migrated
from eval_pipeline_tests.bench.workload import TEAM, write_workload

TITLE = "two worker processes over one batch of scripted runs, beside one"
WORKERS = 2


def measure(size: Size) -> Iterator[Figure]:
    """Runs per second of one worker and of two, from the word to go until the last is done, and runs done twice."""
    runs = 2000 if size == "full" else 20
    with tempfile.TemporaryDirectory() as folder:
        variables = write_workload(Path(folder) / "work", runs // 10, attempts=10)
        with bench_home(variables=variables | {"EVAL_CONCURRENCY": "10"}):
            product_batch("warm-up", 10)
            open_instance().event_log_storage.set_concurrency_slots("llm", WORKERS)
            alone_s = _together("one", runs, 1)
            together_s = _together("two", runs, WORKERS)
            with migrated().connect() as connection:
                tries, cells = connection.execute(
                    text("select count(*), count(distinct (task_id, attempt)) from runs where batch_id = 'two'")
                ).one()
    yield Figure("one worker", runs / alone_s, "runs/s")
    ratio = alone_s / together_s
    yield Figure(f"{WORKERS} workers", runs / together_s, "runs/s", "one worker", ratio, "≥ 1.7", ratio >= 1.7)
    yield Figure(
        "runs done twice or not at all", tries - cells + runs - cells, "", target="0", met=tries == cells == runs
    )


def _together(batch: str, runs: int, workers: int) -> float:
    """Seconds that this many workers need for the batch, each for its share of the cells."""
    share = runs // workers
    side = [sys.executable, "-m", "eval_pipeline_tests.bench.product_side", f"{batch}@{TEAM}", "grid"]
    working = [
        subprocess.Popen(
            [*side, f"{number * share}:{(number + 1) * share}", "on-command"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(workers)
    ]
    for worker in working:
        assert worker.stdout is not None
        if worker.stdout.readline() != "ready\n":
            raise RuntimeError("a worker did not get ready")
    begun_s = time.monotonic()
    for worker in working:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    done = [json.loads(worker.communicate()[0].strip().rsplit("\n", 1)[-1])["runs"] for worker in working]
    if sum(done) != runs:
        raise RuntimeError(f"{sum(done)} of {runs} runs completed")
    return time.monotonic() - begun_s
