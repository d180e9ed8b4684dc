"""``kill -9`` of a whole ``dagster dev`` in the middle of a backfill: the next start heals it without hands."""

from __future__ import annotations

import pytest

from eval_pipeline_tests.automation.machine import Machine, machine, wait_until
from eval_pipeline_tests.endpoint_suite import CALLS_OF_A_RUN, run_arguments, task_ids

CELLS = 24
AT_ONCE = 3

pytestmark = pytest.mark.slow


def wait_for_rows(found: Machine, completed: int) -> None:
    def there() -> bool:
        now = found.statuses()
        return now["completed"] >= completed and now["running"] > 0

    wait_until(there, f"{completed} runs have completed and others are under way")


def is_healed(found: Machine) -> bool:
    """Nothing hangs: no cell materializing, no slot taken, no try running, no run that has not ended."""
    state = found.state()
    return (
        state["cells"]["numMaterializing"] == 0
        and state["slots"] == []
        and state["alive"] == []
        and found.statuses()["running"] == 0
    )


def test_a_killed_tree_heals_at_the_next_start_and_the_batch_is_gone_on_with() -> None:
    with machine(CELLS, delay_s=0.25, EVAL_CONCURRENCY=str(AT_ONCE)) as found:
        found.start()
        found.add_batch("b")
        backfill = found.backfill("b")
        wait_for_rows(found, 4)
        # PostgreSQL lives on, as it does when a terminal is closed
        found.kill_tree()
        kept = found.statuses()
        assert kept["running"] > 0

        found.start()
        wait_until(lambda: is_healed(found), "everything is given back")
        cells, completed = found.state()["cells"], found.statuses()["completed"]
        assert completed >= kept["completed"]
        # what was committed in the moment of the kill is not reported yet: the next launch does that without a call
        assert completed - AT_ONCE <= cells["numMaterialized"] <= completed
        assert cells["numMaterialized"] + cells["numFailed"] == CELLS
        wait_until(lambda: found.backfill_status(backfill) == "COMPLETED_FAILED", "the backfill has ended")

        again = found.go_on_with(backfill)
        wait_for_rows(found, found.statuses()["completed"] + 4)
        # as when the machine loses its power
        found.kill_tree()
        found.kill_postgres()

        found.start()
        wait_until(lambda: is_healed(found), "everything is given back")
        wait_until(lambda: found.backfill_status(again) == "COMPLETED_FAILED", "the backfill has ended")
        command = found.command(*run_arguments("b"))
        _, err = command.communicate(timeout=240)
        assert command.returncode == 0, err
        assert found.state()["cells"] == {
            "numMaterialized": CELLS,
            "numFailed": 0,
            "numMaterializing": 0,
            "numPartitions": CELLS,
        }
        tries = found.rows("select task_id, count(*) filter (where status = 'completed') as done from runs group by 1")
        assert {row["task_id"]: row["done"] for row in tries} == dict.fromkeys(task_ids(CELLS), 1)
        closed = found.rows("select distinct error_class from runs where status = 'crashed'")
        assert [row["error_class"] for row in closed] == ["interrupted"]
        calls = found.rows(
            "select run_id, count(*) as calls from model_calls join runs using (run_id)"
            " where status = 'completed' group by 1"
        )
        assert {row["calls"] for row in calls} == {CALLS_OF_A_RUN}

        check = found.command("check")
        out, _ = check.communicate(timeout=120)
        assert check.returncode == 0, out
