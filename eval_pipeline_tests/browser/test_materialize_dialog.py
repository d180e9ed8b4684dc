"""A batch as a person runs it in Dagster's pages: launched, watched, one crash seen, and only that one run again."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from eval_pipeline.settings import load_settings
from eval_pipeline.suites import load_suites, load_tasks
from eval_pipeline_tests.browser.dev_server import DevServer

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

BATCH_TEAM = "mybatch@v5-multitool"
CRASHING = "sample-cafe-food-total"
RUNS_PAGE = "/assets/sample/runs?view=partitions"

_BACKFILL_S = 240
_LOOK_EVERY_MS = 3_000
_SETTLED_MS = 2_000
_MOST_ZOOMS = 8
_CANVAS = (210, 840)
"""Between these heights, in pixels, the title of a node is on the page with the whole node around it."""
_COUNT = re.compile(r"(Failed|Materialized|Materializing|Missing) \((\d+)\)")
_STATS = """
    query Stats($key: AssetKeyInput!) {
        assetNodeOrError(assetKey: $key) {
            ... on AssetNode { partitionStats { numMaterialized numFailed numMaterializing numPartitions } }
        }
    }
"""
_UNDER_WAY = """
    { runsOrError(filter: {statuses: [QUEUED, NOT_STARTED, STARTING, STARTED]}) { ... on Runs { results { runId } } } }
"""
_NODES = "{ assetNodes { groupName assetKey { path } } }"

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def test_a_crashed_cell_is_red_alone_and_only_failed_and_missing_runs_just_that_one(
    page: Page, server: DevServer, screenshots: Path, clean_environment: Path
) -> None:
    try:
        cells = _cells_of_the_sample()
        # a file where the task's folder must be: staging fails, as on a full or wrongly mounted disk
        in_the_way = server.home / ".eval_pipeline" / "stage" / CRASHING
        in_the_way.parent.mkdir(parents=True)
        in_the_way.write_text("in the way")
        _wait_for_keys(server, page, cells)

        dialog = _open_dialog(server, page, first=True)
        _add_partition(page, dialog, BATCH_TEAM)
        _all(dialog, "task_attempt")
        page.wait_for_timeout(_SETTLED_MS)
        page.screenshot(path=screenshots / "dialog.png")
        dialog.get_by_role("button", name="Launch backfill").click()
        dialog.wait_for(state="hidden")

        _wait_for_counts(server, page, Failed=1, Materialized=cells - 1, Materializing=0, Missing=0)
        _show_cell(server, page, CRASHING)
        page.get_by_text("failed, and did not materialize").wait_for()
        page.screenshot(path=screenshots / "partitions-one-red.png")
        page.get_by_role("button", name="View all historical events").click()
        page.get_by_role("dialog").get_by_text(f"|{CRASHING}#1").last.click()
        page.get_by_text("cannot be staged").first.wait_for()
        page.screenshot(path=screenshots / "why-red.png")
        assert _stats(server, "runs") == (cells - 1, 1, 0, cells)
        (crash,) = server.rows("select task_id, error_class, error_message from runs where status <> 'completed'")
        assert crash["task_id"] == CRASHING
        assert "cannot be staged" in crash["error_message"]

        in_the_way.unlink()
        dialog = _open_dialog(server, page)
        _all(dialog, "batch_team")
        _all(dialog, "task_attempt")
        dialog.get_by_text("Backfill only failed and missing partitions").click()
        dialog.get_by_text("1 failed and missing").wait_for()
        page.screenshot(path=screenshots / "dialog-only-failed.png")
        dialog.get_by_role("button", name="Launch 1 run").click()
        dialog.wait_for(state="hidden")

        _wait_for_counts(server, page, Failed=0, Materialized=cells, Materializing=0, Missing=0)
        assert _stats(server, "runs") == (cells, 0, 0, cells)
        assert _stats(server, "events") == (cells, 0, 0, cells)
        tries = server.rows("select task_id, try_no, status, live, dagster_run_id from runs order by task_id, try_no")
        retried = [row for row in tries if row["task_id"] == CRASHING]
        assert [(row["try_no"], row["status"], row["live"]) for row in retried] == [
            (1, "crashed", False),
            (2, "completed", True),
        ]
        assert len(tries) == cells + 1
        others = {row["dagster_run_id"] for row in tries if row["task_id"] != CRASHING}
        assert others == {retried[0]["dagster_run_id"]}
        assert retried[1]["dagster_run_id"] not in others

        _wait_for_summaries(server, cells)
        _take_pictures(server, page, screenshots)
        running = server.alive()
        assert any("postgres" in line for line in running)
        assert any("dagster" in line for line in running)
        assert server.stop() == []
    except BaseException:
        page.screenshot(path=screenshots / "failed-here.png")
        print(server.log())
        raise


def _cells_of_the_sample() -> int:
    settings = load_settings()
    loaded = load_tasks(load_suites(settings)["sample"], settings)
    assert CRASHING in {task.task_id for task in loaded.tasks if task.attachment}
    return len(loaded.tasks) * loaded.suite.attempts


def _wait_for_keys(server: DevServer, page: Page, cells: int) -> None:
    """A sensor registers the keys of a suite that can be loaded; nobody has to."""
    deadline = time.monotonic() + _BACKFILL_S
    while True:
        page.goto(server.url + RUNS_PAGE)
        keys = page.get_by_text(re.compile("^sample-.*#1$"))
        page.wait_for_timeout(_LOOK_EVERY_MS)
        if keys.count() >= cells:
            return
        assert time.monotonic() < deadline, "the task keys were not registered"


def _open_dialog(server: DevServer, page: Page, *, first: bool = False) -> Locator:
    page.goto(server.url + RUNS_PAGE)
    page.get_by_role("button", name="Materialize").first.click()
    if first:
        # on a fresh machine Dagster warns of what runs needs; the step makes that itself
        page.get_by_role("button", name="Confirm").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_text("Partition selection").wait_for()
    page.wait_for_timeout(_SETTLED_MS)
    return dialog


def _add_partition(page: Page, dialog: Locator, key: str) -> None:
    asking = page.get_by_role("dialog").filter(has=page.get_by_role("button", name="Save", exact=True)).last
    deadline = time.monotonic() + _BACKFILL_S
    # the dialog draws its rows anew when it has read the keys, and a click in that moment opens nothing
    while not asking.is_visible():
        assert time.monotonic() < deadline, "nothing asks for the name of a partition"
        dialog.get_by_text("Add a partition").first.click()
        page.wait_for_timeout(_SETTLED_MS)
    asking.get_by_role("textbox").fill(key)
    asking.get_by_role("button", name="Save").click()
    page.wait_for_timeout(_SETTLED_MS)
    complaint = page.get_by_role("button", name="OK", exact=True)
    if complaint.is_visible():
        # Dagster's page may look for the very first key before it has read the keys again; the key is there
        complaint.click()
    dialog.first.get_by_text(key).first.wait_for(state="attached")


def _all(dialog: Locator, dimension: str) -> None:
    order = ("batch_team", "task_attempt")
    dialog.first.get_by_role("button", name="All", exact=True).nth(order.index(dimension)).click()


def _wait_for_counts(server: DevServer, page: Page, **wanted: int) -> None:
    deadline = time.monotonic() + _BACKFILL_S
    while (shown := _counts(server, page)) != wanted:
        assert time.monotonic() < deadline, f"the page shows {shown}, not {wanted}"


def _counts(server: DevServer, page: Page) -> dict[str, int]:
    page.goto(server.url + RUNS_PAGE)
    page.get_by_text("Missing (").wait_for()
    page.wait_for_timeout(_LOOK_EVERY_MS)
    texts = page.get_by_text(_COUNT).all_inner_texts()
    return {name: int(count) for name, count in _COUNT.findall(" ".join(texts))}


def _stats(server: DevServer, asset: str) -> tuple[int, int, int, int]:
    """Materialized, failed, materializing and all partitions, as Dagster counts them."""
    node: Any = server.graphql(_STATS, key={"path": ["sample", asset]})["assetNodeOrError"]
    stats = node["partitionStats"]
    return (stats["numMaterialized"], stats["numFailed"], stats["numMaterializing"], stats["numPartitions"])


def _show_cell(server: DevServer, page: Page, task_id: str) -> None:
    page.goto(f"{server.url}{RUNS_PAGE}&partition={quote(f'{BATCH_TEAM}|{task_id}#1')}")
    page.get_by_role("heading", name=f"{task_id}#1").or_(page.get_by_text(f"|{task_id}#1")).first.wait_for()
    page.wait_for_timeout(_SETTLED_MS)


def _wait_for_summaries(server: DevServer, cells: int) -> None:
    """A sensor renews the summaries of a batch, after a crash as well as after the end."""
    deadline = time.monotonic() + _BACKFILL_S
    while (
        sum(row["completed"] for row in server.rows("select completed from mv_batch_summary")) < cells
        or server.graphql(_UNDER_WAY)["runsOrError"]["results"]
    ):
        assert time.monotonic() < deadline, "the summaries were not renewed"
        time.sleep(1)


def _take_pictures(server: DevServer, page: Page, folder: Path) -> None:
    _show_cell(server, page, CRASHING)
    page.screenshot(path=folder / "partitions.png")
    page.get_by_text("Hide navigation").click()
    page.goto(f"{server.url}/locations/eval_pipeline.definitions/asset-groups/sample/lineage")
    nodes = server.graphql(_NODES)["assetNodes"]
    names = {node["assetKey"]["path"][-1] for node in nodes if node["groupName"] == "sample"}
    assert {"dataset", "tasks", "team_configs", "runs", "events", "mv_batch_summary"} <= names
    page.get_by_text("runs", exact=True).first.wait_for()
    page.wait_for_timeout(3 * _SETTLED_MS)
    zoomed = 0
    while not all(_in_sight(page, name) for name in names):
        assert (zoomed := zoomed + 1) <= _MOST_ZOOMS, "the lineage does not fit the page"
        page.get_by_label("zoom_out").first.click()
        page.wait_for_timeout(_SETTLED_MS)
    page.screenshot(path=folder / "lineage.png")


def _in_sight(page: Page, asset: str) -> bool:
    """Whether the whole node of an asset is on the canvas, below the bars at the top."""
    shown = page.get_by_text(asset, exact=True).first
    box = shown.bounding_box() if shown.count() else None
    return box is not None and _CANVAS[0] < box["y"] < _CANVAS[1]
