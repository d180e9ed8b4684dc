"""The two sensors of a fresh machine: keys appear by themselves, and summaries follow the runs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import dagster as dg
import pytest

from eval_pipeline.assets.partitions import TEAMS_KEY, Family
from eval_pipeline.automation.sensors import refresh_key
from eval_pipeline.db.freshness import StaleBatch
from eval_pipeline.definitions import build_defs
from eval_pipeline.ids import BatchTeam
from eval_pipeline.settings import load_settings
from eval_pipeline.suites import load_suites, load_tasks
from eval_pipeline_tests.assets.grids import V4, Grid, block_staging
from eval_pipeline_tests.conftest import Database

V3 = "first@v3-prompt-fix"
NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


def look(instance: dg.DagsterInstance, name: str) -> dg.SensorResult:
    """One evaluation of a sensor of this moment's definitions."""
    defs = build_defs(load_settings())
    sensor = next(one for one in defs.sensors or () if one.name == name)
    with dg.build_sensor_context(instance=instance, definitions=defs) as context:
        found = sensor(context)
    assert isinstance(found, dg.SensorResult)
    return found


def test_the_keys_of_a_suite_that_can_be_loaded_are_registered_and_its_loading_requested(
    instance: dg.DagsterInstance, database: Database
) -> None:
    found = look(instance, "register_suites")
    loaded = load_tasks(load_suites(database.settings)["sample"], database.settings)
    keys = instance.get_dynamic_partitions(Family("sample").task_attempt_name)
    assert keys == [f"{task.task_id}#1" for task in loaded.tasks]
    (request,) = found.run_requests or ()
    assert request.asset_selection is not None
    assert {TEAMS_KEY, Family("sample").key("dataset")} <= set(request.asset_selection)
    assert Family("gaia").key("dataset") not in request.asset_selection


def test_a_suite_that_has_keys_is_left_to_who_loads_it_and_one_without_data_says_what_to_set(
    instance: dg.DagsterInstance, database: Database
) -> None:
    look(instance, "register_suites")
    again = look(instance, "register_suites")
    assert not again.run_requests
    assert again.skip_reason is not None
    assert "set EVAL_GAIA_DIR" in str(again.skip_reason.skip_message)
    assert instance.get_dynamic_partitions(Family("gaia").task_attempt_name) == []


def test_every_batch_with_newer_runs_is_refreshed_once(instance: dg.DagsterInstance, database: Database) -> None:
    grid = Grid(instance, database, batch_teams=(V3, V4))
    first = grid.task_keys[0]
    grid.launch(f"{V3}|{first}", f"{V4}|{first}")
    requests = look(instance, "refresh_summaries").run_requests or ()
    assert {(request.job_name, request.partition_key) for request in requests} == {
        ("sample_summaries", V3),
        ("sample_summaries", V4),
    }
    assert len({request.run_key for request in requests}) == len(requests) == 2

    grid.materialize("mv_batch_summary", V3, V4)
    # of which the other two know nothing yet
    assert len(look(instance, "refresh_summaries").run_requests or ()) == 2
    for name in ("mv_passk", "mv_tool_summary"):
        grid.materialize(name, V3, V4)
    rested = look(instance, "refresh_summaries")
    assert not rested.run_requests
    assert rested.skip_reason is not None


def test_a_crash_makes_a_summary_stale_too(instance: dg.DagsterInstance, database: Database) -> None:
    grid = Grid(instance, database)
    block_staging("sample-cafe-food-total")
    grid.launch_tasks(1)
    (request,) = look(instance, "refresh_summaries").run_requests or ()
    assert request.partition_key == V4


def test_a_batch_whose_key_was_taken_away_is_left_alone(instance: dg.DagsterInstance, database: Database) -> None:
    grid = Grid(instance, database)
    grid.launch_tasks(1)
    instance.delete_dynamic_partition(grid.family.batch_team_name, V4)
    assert not look(instance, "refresh_summaries").run_requests


def test_the_requested_job_renews_every_view(instance: dg.DagsterInstance, database: Database) -> None:
    grid = Grid(instance, database)
    grid.launch_tasks(1)
    (request,) = look(instance, "refresh_summaries").run_requests or ()
    assert request.job_name is not None
    job = grid.defs.resolve_job_def(request.job_name)
    assert job.execute_in_process(instance=instance, partition_key=request.partition_key).success
    for name in ("mv_batch_summary", "mv_passk", "mv_tool_summary"):
        assert grid.materializations(name) == {V4: 1}
    assert not look(instance, "refresh_summaries").run_requests


def stale(**changes: object) -> StaleBatch:
    fields: Mapping[str, object] = {"newest": NOON, "ended": 3, "under_way": False, "latest": 9} | changes
    return StaleBatch("sample", BatchTeam("first", "v4"), **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ((stale(), NOON), (stale(), NOON + timedelta(minutes=5)), True),
        ((stale(), NOON), (stale(ended=4), NOON), False),
        # a verdict that changed, or cells that were added
        ((stale(), NOON), (stale(latest=10), NOON), False),
        # a refresh that failed must not be the last word
        ((stale(), NOON), (stale(), NOON + timedelta(hours=1)), False),
        # under way, a batch of many short runs costs one refresh a minute
        ((stale(under_way=True), NOON), (stale(under_way=True, ended=9), NOON + timedelta(seconds=45)), True),
        ((stale(under_way=True), NOON), (stale(under_way=True), NOON + timedelta(seconds=75)), False),
        # the end is refreshed at once, whatever was refreshed before
        ((stale(under_way=True), NOON), (stale(), NOON), False),
    ],
)
def test_what_is_refreshed_again_and_what_is_not(
    before: tuple[StaleBatch, datetime], after: tuple[StaleBatch, datetime], same: bool
) -> None:
    assert (refresh_key(*before) == refresh_key(*after)) is same
