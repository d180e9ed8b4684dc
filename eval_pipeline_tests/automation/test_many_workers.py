"""One batch over several worker processes through the queue and the pool: more at once, nothing twice, one killed."""

from __future__ import annotations

import os
import signal
from collections import Counter

import pytest

from eval_pipeline_tests.automation.machine import Machine, machine, wait_until
from eval_pipeline_tests.endpoint_suite import CALLS_OF_A_RUN, task_ids

CELLS = 40
CELLS_OF_A_WORKER = 8
SLOTS = 3
AT_ONCE = 2

pytestmark = pytest.mark.slow

_LIMIT = """
    mutation Limit($key: String!, $limit: Int!) { setConcurrencyLimit(concurrencyKey: $key, limit: $limit) }
"""


def test_workers_share_a_batch_within_the_limit_of_the_pool_and_a_killed_one_loses_nothing() -> None:
    more = {"EVAL_CONCURRENCY": str(AT_ONCE), "EVAL_CELLS_PER_DAGSTER_RUN": str(CELLS_OF_A_WORKER)}
    with machine(CELLS, delay_s=0.3, **more) as found:
        found.start()
        wait_until(lambda: bool(found.dev.graphql(_LIMIT, key="llm", limit=SLOTS)), "the pool has its limit")
        found.add_batch("b")
        backfill = found.backfill("b")
        seen: list[set[str]] = []

        def several_at_work() -> bool:
            seen.append(at_work(found))
            assert len(found.state()["slots"]) <= SLOTS
            return len(seen[-1]) == SLOTS and found.statuses()["completed"] >= 4

        wait_until(several_at_work, f"{SLOTS} workers are at it at once")
        killed = sorted(seen[-1])[0]
        os.kill(int(killed.rpartition(":")[2]), signal.SIGKILL)

        def goes_on() -> bool:
            seen.append(at_work(found))
            assert len(found.state()["slots"]) <= SLOTS
            return found.backfill_status(backfill) == "COMPLETED_FAILED"

        wait_until(goes_on, "the other workers have done their part")
        lost = CELLS - found.statuses()["completed"]
        assert 0 < lost <= CELLS_OF_A_WORKER
        assert max(map(len, seen)) == SLOTS

        again = found.go_on_with(backfill)
        wait_until(lambda: found.backfill_status(again) == "COMPLETED_SUCCESS", "what was lost has been done")
        nothing_twice(found, killed)


def at_work(found: Machine) -> set[str]:
    """The workers that have a run under way, as ``host:process``."""
    return {row["worker"] for row in found.rows("select distinct worker from runs where status = 'running' and live")}


def nothing_twice(found: Machine, killed: str) -> None:
    tries = found.rows("select task_id, status, error_class, worker from runs")
    assert Counter(row["task_id"] for row in tries if row["status"] == "completed") == Counter(task_ids(CELLS))
    unfinished = [row for row in tries if row["status"] != "completed"]
    assert {(row["error_class"], row["worker"]) for row in unfinished} == {("interrupted", killed)}
    assert 0 < len(unfinished) <= AT_ONCE
    assert len({row["worker"] for row in tries}) > CELLS // CELLS_OF_A_WORKER

    # the endpoint's own count: a task was begun once for each try, and no other worker asked for it beside that
    for task_id in task_ids(CELLS):
        begun = sum(asked.first for asked in found.endpoint.solver.of(task_id))
        assert begun == sum(row["task_id"] == task_id for row in tries), task_id
    calls = found.rows(
        "select run_id, count(*) as calls from model_calls join runs using (run_id)"
        " where status = 'completed' group by 1"
    )
    assert {row["calls"] for row in calls} == {CALLS_OF_A_RUN}
    assert found.state()["cells"] == {
        "numMaterialized": CELLS,
        "numFailed": 0,
        "numMaterializing": 0,
        "numPartitions": CELLS,
    }
    check = found.command("check")
    out, err = check.communicate(timeout=120)
    assert check.returncode == 0, (out, err)
