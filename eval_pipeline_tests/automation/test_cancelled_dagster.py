"""*Terminate* on the page of a Dagster run: what was under way is closed, the summary follows, the rest can be run."""

from __future__ import annotations

import pytest

from eval_pipeline_tests.automation.machine import machine, wait_until
from eval_pipeline_tests.endpoint_suite import run_arguments

CELLS = 16

pytestmark = pytest.mark.slow


def test_a_terminated_run_closes_its_tries_gives_back_its_slot_and_is_summarised() -> None:
    with machine(CELLS, delay_s=0.25, EVAL_CONCURRENCY="3") as found:
        found.start()
        found.add_batch("b")
        run_id = found.run_job("b")
        wait_until(
            lambda: found.statuses()["completed"] >= 3 and found.statuses()["running"] > 0,
            "3 runs have completed and others are under way",
        )
        found.terminate(run_id)
        wait_until(lambda: found.run_status(run_id) == "CANCELED", "the run is cancelled")

        left = found.statuses()
        assert left["running"] == 0
        assert 3 <= left["completed"] < CELLS
        closed = found.rows("select distinct error_class from runs where status = 'crashed'")
        assert [row["error_class"] for row in closed] == ["interrupted"]
        cells = found.state()["cells"]
        # Dagster calls what a cancelled run has not made missing, not failed
        assert (cells["numMaterialized"], cells["numFailed"], cells["numMaterializing"]) == (left["completed"], 0, 0)
        assert run_id not in found.state()["slots"]
        summary = "select completed, crashed from mv_batch_summary"
        figures = {"completed": left["completed"], "crashed": left["crashed"]}
        wait_until(lambda: found.rows(summary) == [figures], "the summary has followed")

        command = found.command(*run_arguments("b"))
        _, err = command.communicate(timeout=240)
        assert command.returncode == 0, err
        wait_until(lambda: found.state()["cells"]["numMaterialized"] == CELLS, "every cell is materialized")
