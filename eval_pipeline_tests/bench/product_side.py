"""One batch of the product in a process of its own, measured from within; the other side of :mod:`.inspect_side`.

``python -m eval_pipeline_tests.bench.product_side BATCH@TEAM SUITE FIRST:END`` runs those cells of the suite on the
home of its environment, the way ``eval-pipeline run`` does, and prints one line of JSON: seconds of wall and CPU of the
launch, of what came before, from the launch to the first request to the model, of PostgreSQL's processes meanwhile, and
the peak of this process's memory. A further word ``until-the-first-call`` ends it there; with ``on-command`` it says
``ready`` and begins when it is sent a line.
"""

from __future__ import annotations

import functools
import json
import os
import resource
import sys
import time
from typing import Any

import psutil

BEGUN_S = time.monotonic()
UNTIL, ON_COMMAND = "until-the-first-call", "on-command"

from eval_pipeline import launcher  # noqa: E402
from eval_pipeline.agents.role_client import RoleClient  # noqa: E402
from eval_pipeline.assets.listener import NobodyListens  # noqa: E402
from eval_pipeline.commands.context import ready  # noqa: E402
from eval_pipeline.db import postmaster  # noqa: E402
from eval_pipeline.execution.cells import CellResult  # noqa: E402
from eval_pipeline.home import pg_data_dir  # noqa: E402
from eval_pipeline.ids import BatchTeam  # noqa: E402
from eval_pipeline.suites import load_suites, load_tasks  # noqa: E402


def cpu_s() -> float:
    """CPU seconds of this process."""
    spent = resource.getrusage(resource.RUSAGE_SELF)
    return spent.ru_utime + spent.ru_stime


def server_cpu_s() -> float:
    """CPU seconds of the embedded PostgreSQL, the sessions that have ended included."""
    found = postmaster.read(pg_data_dir())
    assert found is not None
    server = psutil.Process(found.pid)
    total = 0.0
    for process in (server, *server.children(recursive=True)):
        times = process.cpu_times()
        total += times.user + times.system
    ended = server.cpu_times()
    return total + ended.children_user + ended.children_system


class FirstCall:
    """Notes when the first request to a model is made, seconds after this was made. All of them go past it."""

    def __init__(self) -> None:
        self.after_s: float | None = None
        begun_s, usual = time.monotonic(), RoleClient._once

        @functools.wraps(usual)
        def noted(*arguments: Any, **more: Any) -> Any:
            self.after_s = time.monotonic() - begun_s
            if sys.argv[4:] == [UNTIL]:
                print(json.dumps({"first_call_s": self.after_s, "start_s": begun_s - BEGUN_S}), flush=True)
                os._exit(0)
            RoleClient._once = usual  # type: ignore[method-assign]
            return usual(*arguments, **more)

        RoleClient._once = noted  # type: ignore[method-assign]


class Memory(NobodyListens):
    """Notes this process's memory, MB, when a tenth of the runs has ended and when the last has."""

    def __init__(self, runs: int) -> None:
        self._marks = {max(1, runs // 10): "early_mb", runs: "late_mb"}
        self._ended = 0
        self.noted: dict[str, float] = {}

    def ended(self, result: CellResult) -> None:
        self._ended += 1
        if self._ended in self._marks:
            self.noted[self._marks[self._ended]] = psutil.Process().memory_info().rss / 2**20


def main() -> None:
    """Run the batch and print what it took."""
    batch_team = BatchTeam.parse(sys.argv[1], "batch")
    settings, database = ready()
    suite = load_suites(settings)[sys.argv[2]]
    loaded = load_tasks(suite, settings)
    first_cell, _, end = sys.argv[3].partition(":")
    cells = launcher.Selection().cells(loaded)[int(first_cell) : int(end)]
    first = FirstCall()
    instance = launcher.healed_instance(database, lambda _line: None)
    launcher.load_suite(instance, suite)
    launcher.register_batch(instance, suite, [batch_team])
    if sys.argv[4:] == [ON_COMMAND]:
        print("ready", flush=True)
        sys.stdin.readline()
    begun_s, before_s, server_s = time.monotonic(), cpu_s(), server_cpu_s()
    memory = Memory(len(cells))
    result = launcher.run_batch(instance, settings, loaded, batch_team, cells, retry_crashed=True, listener=memory)
    print(
        json.dumps(
            {
                "runs": sum(run.end == "completed" for run in result.results),
                "wall_s": time.monotonic() - begun_s,
                "first_call_s": first.after_s,
                "start_s": begun_s - BEGUN_S,
                "cpu_s": cpu_s() - before_s,
                "start_cpu_s": before_s,
                "server_cpu_s": server_cpu_s() - server_s,
                **memory.noted,
                "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            }
        )
    )


if __name__ == "__main__":
    main()
