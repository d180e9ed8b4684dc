"""What Dagster is given: every asset, job and sensor by name, wired so that backfills work."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.assets.graph.asset_graph import AssetGraph

from eval_pipeline.assets.partitions import BATCH_TEAM, TASK_ATTEMPT, Family
from eval_pipeline.definitions import build_defs
from eval_pipeline.settings import load_settings

FAMILY = ("dataset", "tasks", "team_configs", "runs", "events", "mv_batch_summary", "mv_passk", "mv_tool_summary")
PER_BATCH = ("tasks", "team_configs", "mv_batch_summary", "mv_passk", "mv_tool_summary")
SUITES = ("sample", "gaia", "gaia_l1")


@pytest.fixture
def defs(clean_environment: Path) -> dg.Definitions:
    return build_defs(load_settings())


@pytest.fixture
def graph(defs: dg.Definitions) -> AssetGraph:
    return defs.resolve_asset_graph()


@pytest.mark.parametrize("suite", SUITES)
def test_every_suite_has_its_family_of_assets_its_jobs_and_its_group(
    defs: dg.Definitions, graph: AssetGraph, suite: str
) -> None:
    family = Family(suite)
    assert {family.key(name) for name in FAMILY} <= set(graph.get_all_asset_keys())
    assert {graph.get(family.key(name)).group_name for name in FAMILY} == {suite}
    assert {f"{suite}_runs", f"{suite}_summaries"} <= {job.name for job in defs.resolve_all_job_defs()}


def test_the_sensors_that_a_fresh_machine_needs_are_there_and_running(defs: dg.Definitions) -> None:
    sensors = {sensor.name: sensor for sensor in defs.sensors or ()}
    for name in ("register_suites", "refresh_summaries"):
        sensor = sensors[name]
        assert isinstance(sensor, dg.SensorDefinition)
        assert sensor.default_status is dg.DefaultSensorStatus.RUNNING


def test_the_definitions_are_valid_as_a_whole(defs: dg.Definitions) -> None:
    dg.Definitions.validate_loadable(defs)


def test_the_lineage_is_the_designs(graph: AssetGraph) -> None:
    parents = {name: {key.path[-1] for key in graph.get(Family("sample").key(name)).parent_keys} for name in FAMILY}
    assert parents == {
        "dataset": set(),
        "tasks": {"dataset"},
        "team_configs": {"teams"},
        "runs": {"tasks", "team_configs"},
        "events": {"runs"},
        "mv_batch_summary": {"runs"},
        "mv_passk": {"runs"},
        "mv_tool_summary": {"events"},
    }


def test_no_suite_is_fed_by_another(graph: AssetGraph) -> None:
    for key in graph.get_all_asset_keys():
        suites = {parent.path[0] for parent in graph.get(key).parent_keys if len(parent.path) > 1}
        if len(key.path) > 1:
            assert suites <= {key.path[0]}


def test_cells_have_two_dimensions_and_all_else_that_is_partitioned_has_dynamic_keys(graph: AssetGraph) -> None:
    # a static partitioned asset before runs would be mapped by identity, and backfills would break
    family = Family("sample")
    for name in ("runs", "events"):
        cells = graph.get(family.key(name)).partitions_def
        assert isinstance(cells, dg.MultiPartitionsDefinition)
        assert [dimension.name for dimension in cells.partitions_defs] == [BATCH_TEAM, TASK_ATTEMPT]
    for name in PER_BATCH:
        assert graph.get(family.key(name)).partitions_def == family.batch_team
    assert graph.get(family.key("dataset")).partitions_def is None


def test_every_asset_says_what_it_is_who_keeps_it_and_of_what_kind(graph: AssetGraph) -> None:
    for key in graph.get_all_asset_keys():
        node = graph.get(key)
        assert node.description, f"{key.to_user_string()} has no description"
        assert node.owners, f"{key.to_user_string()} has no owner"
        assert node.kinds, f"{key.to_user_string()} has no kind"


def test_a_batch_is_one_dagster_run_unless_a_setting_says_how_many_cells_one_holds(
    clean_environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = Family("sample").key("runs")
    assert _policy(runs) == dg.BackfillPolicy.single_run()
    monkeypatch.setenv("EVAL_CELLS_PER_DAGSTER_RUN", "20")
    assert _policy(runs) == dg.BackfillPolicy.multi_run(20)


def _policy(key: dg.AssetKey) -> dg.BackfillPolicy | None:
    return build_defs(load_settings()).resolve_asset_graph().get(key).backfill_policy


def test_a_suite_of_ones_own_gets_its_family_too(clean_environment: Path) -> None:
    (clean_environment / "suites.yaml").write_text(
        "suites:\n  mine:\n    title: Mine\n    benchmark: gaia\n    data: package\n", encoding="utf-8"
    )
    keys = build_defs(load_settings()).resolve_asset_graph().get_all_asset_keys()
    assert Family("mine").key("runs") in keys
    assert Family("sample").key("runs") not in keys


@pytest.mark.slow
def test_a_setting_that_is_wrong_fails_the_validation_with_its_line(clean_environment: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "dagster", "definitions", "validate"],
        cwd=clean_environment,
        env=os.environ | {"EVAL_CONCURRENCY": "many"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 1
    assert "EVAL_CONCURRENCY" in done.stdout + done.stderr
