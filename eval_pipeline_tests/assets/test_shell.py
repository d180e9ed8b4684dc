"""The same cells from a shell, with Dagster's own commands: exit codes that a CI job can go by."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import dagster as dg
import pytest
from dagster._core.storage.partition_status_cache import AssetPartitionStatus

from eval_pipeline.assets.partitions import Family
from eval_pipeline.assets.ranges import range_tags
from eval_pipeline_tests.assets.grids import V4, Grid, block_staging
from eval_pipeline_tests.conftest import Database

MATERIALIZED, FAILED = AssetPartitionStatus.MATERIALIZED, AssetPartitionStatus.FAILED
CAFE = "sample-cafe-food-total"
RUNS = Family("sample").key("runs")
MODULE = ("-m", "eval_pipeline.definitions")

pytestmark = pytest.mark.slow


def shell(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a module as a command in this test's home and environment."""
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        env=os.environ,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def materialize(*arguments: str) -> subprocess.CompletedProcess[str]:
    return shell("dagster", "asset", "materialize", *MODULE, "--select", "sample/runs", *arguments)


def test_load_registers_a_batch_and_dagster_runs_one_cell_of_it(
    instance: dg.DagsterInstance, database: Database
) -> None:
    done = shell(
        "eval_pipeline.cli", "load", "--suite", "sample", "--batch", "shell", "--team", "v5-multitool", "--json"
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["batch_team"] == ["shell@v5-multitool"]
    cell = f"shell@v5-multitool|{CAFE}#1"
    done = materialize("--partition", cell)
    assert done.returncode == 0, done.stderr
    assert instance.get_materialized_partitions(RUNS) == {cell}


@pytest.mark.parametrize("crash", [False, True])
def test_a_range_of_cells_exits_with_1_if_one_of_them_crashed(
    instance: dg.DagsterInstance, database: Database, crash: bool
) -> None:
    grid = Grid(instance, database)
    if crash:
        block_staging(CAFE)
    cells = [f"{V4}|{key}" for key in grid.task_keys[:3]]
    done = materialize("--partition-range", f"{cells[0]}...{cells[-1]}")
    assert done.returncode == int(crash)
    crashed = {f"{V4}|{CAFE}#1"} if crash else set()
    assert grid.cells("runs", FAILED) == crashed
    assert grid.cells("runs", MATERIALIZED) == set(cells) - crashed
    assert ("1 of 3 cells have no completed run" in done.stderr) is crash


def test_a_key_that_nobody_registered_exits_with_1_and_names_it(
    instance: dg.DagsterInstance, database: Database
) -> None:
    grid = Grid(instance, database)
    done = materialize("--partition", f"{V4}|sample-nowhere#1")
    assert done.returncode == 1
    assert f"{V4}|sample-nowhere#1" in done.stderr
    assert grid.counts()["runs"] == 0


@pytest.mark.parametrize("crash", [False, True])
def test_a_job_with_range_tags_is_the_same_for_ci(
    instance: dg.DagsterInstance, database: Database, crash: bool
) -> None:
    grid = Grid(instance, database)
    if crash:
        block_staging(CAFE)
    cells = [f"{V4}|{key}" for key in grid.task_keys[:3]]
    tags = json.dumps(range_tags(cells[0], cells[-1]))
    done = shell("dagster", "job", "execute", *MODULE, "-j", "sample_runs", "--tags", tags)
    assert done.returncode == int(crash), done.stderr
    assert len(grid.cells("runs", MATERIALIZED)) == 3 - int(crash)


@pytest.mark.parametrize("arguments", [(), MODULE])
def test_the_definitions_are_validated_with_and_without_naming_the_module(
    database: Database, arguments: tuple[str, ...]
) -> None:
    # without, Dagster goes by the workspace.yaml of the folder
    done = shell("dagster", "definitions", "validate", *arguments)
    assert done.returncode == 0, done.stderr
    assert "All code locations passed validation" in done.stdout + done.stderr
