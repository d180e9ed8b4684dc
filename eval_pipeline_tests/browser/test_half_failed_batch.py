"""A batch whose quota runs out, as its pages show it: half red, its checks say what to do, and green after a resume."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from eval_pipeline.execution.circuit import FAILURES_TO_OPEN
from eval_pipeline_tests.automation.machine import Machine, machine, wait_until
from eval_pipeline_tests.endpoint_suite import SUITE
from eval_pipeline_tests.execution.test_circuit import QUOTA
from eval_pipeline_tests.stub_openai import Reply, Request

if TYPE_CHECKING:
    from playwright.sync_api import Page

CELLS = 20
ANSWERED = 9
CONCURRENCY = 1
"""With more, a run that is still answered would end between the refused ones, and rightly begin the count anew."""
_SETTLED_MS = 2_500

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def test_a_half_failed_batch_shows_what_is_left_and_a_resume_turns_it_green(page: Page, screenshots: Path) -> None:
    def meter(task_id: str, request: Request) -> Reply | None:
        return None if int(task_id.rpartition("-")[2]) < ANSWERED else QUOTA

    with machine(CELLS, delay_s=0.05, EVAL_CONCURRENCY=str(CONCURRENCY)) as found:
        found.endpoint.solver.meddler = meter
        found.start()
        found.add_batch("b")
        stopped = found.run_job("b")
        wait_until(lambda: found.run_status(stopped) == "FAILURE", "the run has stopped")
        refused = found.statuses()["crashed"]
        assert refused == FAILURES_TO_OPEN
        assert found.state()["cells"]["numMaterialized"] == ANSWERED

        page.goto(f"{found.dev.url}/assets/{SUITE}/runs?view=partitions")
        page.get_by_text(f"Failed ({CELLS - ANSWERED})").first.wait_for()
        page.wait_for_timeout(_SETTLED_MS)
        page.screenshot(path=screenshots / "half-failed.png")

        page.goto(f"{found.dev.url}/runs/{stopped}")
        page.get_by_text("wait until the quota is renewed").first.wait_for()
        page.wait_for_timeout(_SETTLED_MS)
        page.screenshot(path=screenshots / "half-failed-why.png")

        _show_check(found, page, "no_run_left_crashed", str(refused))
        page.get_by_text("launch the batch with").first.wait_for()
        page.screenshot(path=screenshots / "half-failed-checks.png")

        found.endpoint.solver.meddler = None
        resumed = found.run_job("b")
        wait_until(lambda: found.run_status(resumed) == "SUCCESS", "the run has ended")
        page.goto(f"{found.dev.url}/assets/{SUITE}/runs?view=partitions")
        page.get_by_text(f"Materialized ({CELLS})").first.wait_for()
        page.get_by_text("Failed (0)").first.wait_for()
        page.wait_for_timeout(_SETTLED_MS)
        page.screenshot(path=screenshots / "resumed.png")
        _show_check(found, page, "no_run_left_crashed", "0")
        page.screenshot(path=screenshots / "resumed-checks.png")
        assert found.rows("select count(*) as count from plan") == [{"count": CELLS}]


def _show_check(found: Machine, page: Page, name: str, count: str) -> None:
    """The page of one check, once its latest evaluation counts ``count``; the refresh of the summaries runs it."""
    address = f"{found.dev.url}/assets/{SUITE}/runs?view=checks&checkDetail={name}"

    def there() -> bool:
        page.goto(address)
        page.wait_for_timeout(_SETTLED_MS)
        row = page.get_by_role("row").filter(has=page.get_by_text("found", exact=True)).first
        return row.is_visible() and count in row.inner_text().split()

    wait_until(there, f"check {name} counts {count}")
