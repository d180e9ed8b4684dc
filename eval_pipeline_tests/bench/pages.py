"""How long people wait for Dagster's pages: the load time of the code location, and the partitions page of many cells.

The cells are registered and materialized through the product's own storage; what the page asks is the query that the
page itself sends. Where there is a Chromium, the page is opened in it too.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence

import dagster as dg
from dagster._core.events import DagsterEvent, StepMaterializationData
from dagster._core.instance import RUNLESS_JOB_NAME, RUNLESS_RUN_ID

from eval_pipeline.assets.partitions import Family
from eval_pipeline_tests.bench.figures import Figure, Size
from eval_pipeline_tests.bench.places import bench_home, grid, migrated
from eval_pipeline_tests.browser.chromium import opened_browser
from eval_pipeline_tests.browser.dev_server import DevServer

TITLE = "(f) the code location and Dagster's pages"
_FAMILY = Family("grid")
_TEAM = "v5-multitool"
_CELLS: dict[Size, tuple[int, int]] = {"full": (100, 1000), "small": (4, 50)}
"""Batches, and cells of each."""
_REPEATS: dict[Size, int] = {"full": 7, "small": 1}
_AT_ONCE = 5_000
_PAGE = "/assets/grid/runs?view=partitions"
_LOADED_MS = 120_000

_PARTITIONS = """
query PartitionHealthQuery($key: AssetKeyInput!) {
  assetNodeOrError(assetKey: $key) {
    ... on AssetNode {
      id
      partitionKeysByDimension { name type partitionKeys }
      assetPartitionStatuses {
        ... on MultiPartitionStatuses {
          primaryDimensionName
          ranges {
            primaryDimStartKey
            primaryDimEndKey
            secondaryDim {
              ... on DefaultPartitionStatuses { materializedPartitions materializingPartitions failedPartitions }
            }
          }
        }
      }
    }
  }
}
"""
_STATS = """
query Stats($key: AssetKeyInput!) {
  assetNodeOrError(assetKey: $key) {
    ... on AssetNode { partitionStats { numMaterialized numFailed numMaterializing numPartitions } }
  }
}
"""


def measure(size: Size) -> Iterator[Figure]:
    """Load times and page times; see :data:`TITLE`."""
    with bench_home(suites=grid(2, 1)) as home:
        migrated()
        yield from _loading(_REPEATS[size])
        batches, cells = _CELLS[size]
        begun_s = time.perf_counter()
        with dg.DagsterInstance.get() as instance:
            _materialize(instance, batches, cells)
        each_ms = 1000 * (time.perf_counter() - begun_s) / (batches * cells)
        yield Figure(f"registering and storing {batches * cells:,} cells, each", each_ms, "ms")
        server = DevServer(home, {"EVAL_SUITES_FILE": os.environ["EVAL_SUITES_FILE"]})
        try:
            yield from _queries(server, batches * cells, _REPEATS[size])
            if size == "full" and shutil.which("chromium"):
                yield from _browser(server, batches * cells)
        finally:
            server.kill()


def _loading(repeats: int) -> Iterator[Figure]:
    """Of fresh processes, in turn, so that both meet the same load of the machine."""
    dagster, ours = [], []
    for _ in range(repeats):
        dagster.append(_process_s("import dagster"))
        ours.append(_process_s("import eval_pipeline.definitions"))
    base, loaded = statistics.median(dagster), statistics.median(ours)
    yield Figure("process that imports dagster", base, "s")
    yield Figure("process that loads the code location", loaded, "s", "import dagster alone", loaded / base)


def _process_s(program: str) -> float:
    begun_s = time.perf_counter()
    subprocess.run([sys.executable, "-c", program], check=True, stdin=subprocess.DEVNULL)
    return time.perf_counter() - begun_s


def _materialize(instance: dg.DagsterInstance, batches: int, cells: int) -> None:
    batch_teams = [f"b{number:04}@{_TEAM}" for number in range(batches)]
    task_attempts = [f"task-{number:05}#1" for number in range(cells)]
    instance.add_dynamic_partitions(_FAMILY.batch_team_name, batch_teams)
    instance.add_dynamic_partitions(_FAMILY.task_attempt_name, task_attempts)
    keys = [_FAMILY.cell_key(batch, cell) for batch in batch_teams for cell in task_attempts]
    for first in range(0, len(keys), _AT_ONCE):
        events = [_materialized(key) for key in keys[first : first + _AT_ONCE]]
        instance.event_log_storage.store_event_batch(events)


def _materialized(key: dg.MultiPartitionKey) -> dg.EventLogEntry:
    made = dg.AssetMaterialization(asset_key=_FAMILY.key("runs"), partition=key)
    event = DagsterEvent(
        event_type_value=dg.DagsterEventType.ASSET_MATERIALIZATION.value,
        job_name=RUNLESS_JOB_NAME,
        event_specific_data=StepMaterializationData(made),
    )
    return dg.EventLogEntry(  # type: ignore[no-untyped-call]
        user_message="",
        level=20,
        job_name=RUNLESS_JOB_NAME,
        run_id=RUNLESS_RUN_ID,
        error_info=None,
        timestamp=time.time(),
        dagster_event=event,
    )


def _queries(server: DevServer, cells: int, repeats: int) -> Iterator[Figure]:
    key = {"path": list(_FAMILY.key("runs").path)}
    for name, query in (("partition statuses", _PARTITIONS), ("partition counts", _STATS)):
        seconds: list[float] = []
        for _ in range(1 + repeats):
            begun_s = time.perf_counter()
            node = server.graphql(query, key=key)["assetNodeOrError"]
            seconds.append(time.perf_counter() - begun_s)
        found = _shown(node)
        if found != cells:
            raise RuntimeError(f"the page would show {found:,} of {cells:,} cells as materialized")
        yield from _first_and_later(f"{name} of {cells:,} cells", seconds)


def _shown(node: dict[str, dict[str, object]]) -> int:
    if "partitionStats" in node:
        return int(str(node["partitionStats"]["numMaterialized"]))
    found = 0
    keys = node["partitionKeysByDimension"]
    batch_teams = next(dimension["partitionKeys"] for dimension in keys if dimension["name"] == "batch_team")  # type: ignore[index]
    for one in node["assetPartitionStatuses"]["ranges"]:  # type: ignore[attr-defined]
        first, last = (batch_teams.index(one[f"primaryDim{end}Key"]) for end in ("Start", "End"))
        found += (last - first + 1) * len(one["secondaryDim"]["materializedPartitions"])
    return found


def _first_and_later(what: str, seconds: Sequence[float]) -> Iterator[Figure]:
    first, *later = seconds
    yield Figure(f"{what}, asked first", first, "s")
    yield Figure(f"{what}, asked again", statistics.median(later), "s")


def _browser(server: DevServer, cells: int) -> Iterator[Figure]:
    with opened_browser() as browser:
        page = browser.new_page()
        seconds = []
        for _ in range(2):
            begun_s = time.perf_counter()
            page.goto(f"{server.url}{_PAGE}")
            page.get_by_text(f"b0000@{_TEAM}").first.wait_for(timeout=_LOADED_MS)
            seconds.append(time.perf_counter() - begun_s)
        yield from _first_and_later(f"partitions page of {cells:,} cells in Chromium", seconds)
