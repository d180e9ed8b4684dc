"""A batch of a hundred runs is hit again and again, wherever it hurts, and ends as if nothing had happened.

The blows and their moments come from a fixed seed; what exactly they meet does not, which is the point.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from eval_pipeline_tests.automation.machine import Machine, machine, wait_until
from eval_pipeline_tests.endpoint_suite import CALLS_OF_A_RUN, run_arguments, task_ids

CELLS = 100
SEED = 20261130
BATCH = "chaos"
ROLES_OF_A_RUN = ("selector", "planner", "selector", "executor", "selector", "planner", "selector", "critic")

pytestmark = pytest.mark.slow


@dataclass
class Launch:
    """What works at the batch right now: a command, or a Dagster run in a process of the code server."""

    found: Machine
    command: subprocess.Popen[str] | None = None

    def kill(self) -> None:
        if self.command is not None:
            os.killpg(self.command.pid, signal.SIGKILL)
            self.command.communicate(timeout=60)
        else:
            for process in self.found.workers():
                process.kill()

    def has_ended(self) -> bool:
        return self.command is not None and self.command.poll() is not None


def by_command(found: Machine) -> Launch:
    return Launch(found, found.command(*run_arguments(BATCH)))


def by_dagster(found: Machine) -> Launch:
    found.run_job(BATCH)
    return Launch(found)


@dataclass
class Chaos:
    """Deals the blows. Each is one line in ``dealt``, for whoever has to find out what a failure was about."""

    found: Machine
    random: random.Random
    dealt: list[str] = field(default_factory=list)

    def deal(self, way: Callable[[Machine], Launch], blow: str) -> None:
        """Go on with the batch and strike when a few more runs have completed."""
        before = self.completed()
        launch = way(self.found)
        self.wait_for_more(launch, before, self.random.randint(1, 3))
        time.sleep(self.random.random())
        struck = self.found.statuses()
        getattr(self, blow)(launch)
        self.dealt.append(f"{blow} under {way.__name__} at {dict(struck)}")

    def worker(self, launch: Launch) -> None:
        launch.kill()

    def tree(self, launch: Launch) -> None:
        """Daemon, webserver, code server, workers and commands."""
        self.found.kill_tree()
        self.found.start()

    def everything(self, launch: Launch) -> None:
        self.found.kill_tree()
        self.found.kill_postgres()
        self.found.start()

    def postgres_killed(self, launch: Launch) -> None:
        """What is under way goes on when the server is back, which nobody starts but who needs it."""
        self.found.kill_postgres()
        self.goes_on(launch)

    def postgres_stopped(self, launch: Launch) -> None:
        self.found.stop_postgres()
        self.goes_on(launch)

    def goes_on(self, launch: Launch) -> None:
        wait_until(lambda: bool(self.found.statuses()), "PostgreSQL is back")
        self.wait_for_more(launch, self.completed(), 2)
        launch.kill()

    def completed(self) -> int:
        return self.found.statuses()["completed"]

    def wait_for_more(self, launch: Launch, before: int, more: int) -> None:
        def there() -> bool:
            assert not launch.has_ended(), launch.command and launch.command.communicate()
            return self.completed() >= before + more

        wait_until(there, f"{more} more runs than {before} have completed after {self.dealt}")


PLAN: tuple[tuple[Callable[[Machine], Launch], str], ...] = (
    (by_command, "worker"),
    (by_dagster, "worker"),
    (by_command, "postgres_killed"),
    (by_dagster, "postgres_killed"),
    (by_command, "postgres_stopped"),
    (by_command, "tree"),
    (by_dagster, "tree"),
    (by_dagster, "everything"),
    (by_command, "worker"),
)


def test_a_hundred_runs_survive_whatever_is_killed_and_nothing_is_done_or_paid_twice() -> None:
    dice = random.Random(SEED)
    plan = list(PLAN)
    dice.shuffle(plan)
    with machine(CELLS, delay_s=0.12, EVAL_CONCURRENCY="4") as found:
        found.start()
        found.add_batch(BATCH)
        chaos = Chaos(found, dice)
        for way, blow in plan:
            chaos.deal(way, blow)
        print("\n".join(chaos.dealt))
        assert len(chaos.dealt) >= 8
        assert chaos.completed() < CELLS, "the last blow must hit something"

        last = found.command(*run_arguments(BATCH))
        out, err = last.communicate(timeout=240)
        assert last.returncode == 0, err
        assert f"planned={CELLS}" in out

        everything_is_as_if_nothing_had_happened(found)


def everything_is_as_if_nothing_had_happened(found: Machine) -> None:
    tries = found.rows("select task_id, status, live, error_class, run_id, finished_at from runs")
    completed = [row for row in tries if row["status"] == "completed"]
    assert Counter(row["task_id"] for row in completed) == Counter(task_ids(CELLS))
    assert all(row["live"] for row in completed)
    assert {row["error_class"] for row in tries if row["status"] != "completed"} == {"interrupted"}
    assert found.rows("select count(*) as count from plan") == [{"count": CELLS}]

    # the endpoint's own count: the requests of each finished run are those of one try, and none came after it
    for task_id in task_ids(CELLS):
        asked = found.endpoint.solver.of(task_id)
        begun = [place for place, one in enumerate(asked) if one.first]
        assert tuple(one.role for one in asked[begun[-1] :]) == ROLES_OF_A_RUN, task_id
        assert len(begun) <= sum(row["task_id"] == task_id for row in tries)
    calls = found.rows(
        "select run_id, count(*) as calls from model_calls join runs using (run_id)"
        " where status = 'completed' group by 1"
    )
    assert {row["calls"] for row in calls} == {CALLS_OF_A_RUN}

    check = found.command("check")
    out, err = check.communicate(timeout=120)
    assert check.returncode == 0, (out, err)
    wait_until(lambda: not found.state()["alive"], "no Dagster run is left alive")
    state = found.state()
    assert state["slots"] == []
    assert state["cells"] == {
        "numMaterialized": CELLS,
        "numFailed": 0,
        "numMaterializing": 0,
        "numPartitions": CELLS,
    }
