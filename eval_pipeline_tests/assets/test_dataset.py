"""``<suite>/dataset`` keeps the keys of the grid in step with the suite, and never under a backfill's feet."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.execution.backfill import BulkActionStatus, PartitionBackfill
from dagster._core.test_utils import instance_for_test
from sqlalchemy import select

from eval_pipeline.assets.dataset import cell_keys, register_cells
from eval_pipeline.assets.partitions import Family
from eval_pipeline.db import tables
from eval_pipeline.definitions import build_defs
from eval_pipeline.launcher import LaunchError, load_suite
from eval_pipeline.settings import load_settings
from eval_pipeline.suites import LoadedSuite, load_suites, load_tasks
from eval_pipeline_tests.assets.grids import Grid, failure
from eval_pipeline_tests.conftest import Database

MINE = "mine@v4-prompt-fix"
ONE, TWO, THREE = "sample-cafe-food-total", "sample-floor-tiles", "sample-leaking-tank"
FAMILY = Family("mine")


def declare(home: Path, task_ids: Sequence[str], attempts: int = 1) -> None:
    """Make ``mine`` the home's only suite: these of the sample's tasks, in the data's order."""
    listed = ", ".join(task_ids)
    (home / "suites.yaml").write_text(
        f"suites:\n  mine:\n    title: Mine\n    benchmark: gaia\n    data: package\n    attempts: {attempts}\n"
        f"    task_ids: [{listed}]\n",
        encoding="utf-8",
    )


def loaded() -> LoadedSuite:
    settings = load_settings()
    return load_tasks(load_suites(settings)["mine"], settings)


def test_keys_are_registered_in_the_suites_order_with_attempts_inside(
    instance: dg.DagsterInstance, clean_environment: Path
) -> None:
    declare(clean_environment, (TWO, ONE), attempts=2)
    assert register_cells(instance, FAMILY, loaded()) == []
    keys = instance.get_dynamic_partitions(FAMILY.task_attempt_name)
    assert keys == cell_keys(loaded()) == [f"{ONE}#1", f"{ONE}#2", f"{TWO}#1", f"{TWO}#2"]


def test_loading_stores_the_tasks_and_shows_what_the_suite_holds(
    instance: dg.DagsterInstance, database: Database
) -> None:
    grid = Grid(instance, database)
    settings = load_settings()
    sample = load_tasks(load_suites(settings)["sample"], settings)
    with database.engine.connect() as connection:
        stored = connection.execute(select(tables.tasks.c.task_id, tables.tasks.c.content_hash)).all()
    assert {tuple(row) for row in stored} == {(task.task_id, task.content_hash) for task in sample.tasks}
    (record,) = instance.fetch_materializations(grid.family.key("dataset"), limit=5).records
    assert record.asset_materialization is not None
    shown = {key: value.value for key, value in record.asset_materialization.metadata.items()}
    assert (shown["tasks"], shown["suite_hash"]) == (len(sample.tasks), sample.content_hash)
    assert "| .xlsx | 1 |" in str(shown["attachments"])


def test_loading_again_registers_nothing_twice(instance: dg.DagsterInstance, database: Database) -> None:
    grid = Grid(instance, database)
    before = grid.task_keys
    grid.reload()
    assert grid.task_keys == before


def test_a_task_that_left_the_suite_leaves_the_grid_and_a_new_one_comes_last(
    instance: dg.DagsterInstance, clean_environment: Path
) -> None:
    declare(clean_environment, (ONE, THREE))
    register_cells(instance, FAMILY, loaded())
    declare(clean_environment, (TWO, THREE))
    assert register_cells(instance, FAMILY, loaded()) == []
    assert instance.get_dynamic_partitions(FAMILY.task_attempt_name) == [f"{THREE}#1", f"{TWO}#1"]


def test_a_key_stays_while_a_backfill_may_want_it_and_goes_after_that(
    instance: dg.DagsterInstance, clean_environment: Path
) -> None:
    declare(clean_environment, (ONE, TWO))
    register_cells(instance, FAMILY, loaded())
    backfill = PartitionBackfill(
        "b1", BulkActionStatus.REQUESTED, from_failure=False, tags={}, backfill_timestamp=time.time()
    )
    instance.add_backfill(backfill)
    declare(clean_environment, (ONE,))
    assert register_cells(instance, FAMILY, loaded()) == [f"{TWO}#1"]
    assert instance.get_dynamic_partitions(FAMILY.task_attempt_name) == [f"{ONE}#1", f"{TWO}#1"]
    instance.update_backfill(backfill.with_status(BulkActionStatus.COMPLETED_FAILED))  # type: ignore[no-untyped-call]
    assert register_cells(instance, FAMILY, loaded()) == []
    assert instance.get_dynamic_partitions(FAMILY.task_attempt_name) == [f"{ONE}#1"]


def test_a_cell_of_a_task_that_left_the_suite_is_refused_in_one_line(
    instance: dg.DagsterInstance, database: Database, clean_environment: Path
) -> None:
    declare(clean_environment, (ONE, TWO))
    grid = Grid(instance, database, suite="mine", batch_teams=(MINE,))
    declare(clean_environment, (ONE,))
    grid.defs = build_defs(load_settings())
    reason = failure(grid.launch(f"{MINE}|{TWO}#1", f"{MINE}|{TWO}#1"))
    assert f"suite mine has no task '{TWO}' any more" in reason
    assert grid.counts()["runs"] == 0


def test_a_batch_whose_suite_has_changed_since_is_refused_with_both_hashes(
    instance: dg.DagsterInstance, database: Database, clean_environment: Path
) -> None:
    declare(clean_environment, (TWO, THREE))
    grid = Grid(instance, database, suite="mine", batch_teams=(MINE,))
    assert grid.launch_tasks(1, MINE).success
    then = loaded().content_hash
    declare(clean_environment, (ONE, TWO, THREE))
    grid.reload()
    reason = failure(grid.launch_tasks(3, MINE))
    assert f"suite.hash: then {then[:12]}, now {loaded().content_hash[:12]}" in reason
    assert grid.counts()["runs"] == 1


def test_more_attempts_than_the_suite_has_are_refused(
    instance: dg.DagsterInstance, database: Database, clean_environment: Path
) -> None:
    declare(clean_environment, (TWO,))
    grid = Grid(instance, database, suite="mine", batch_teams=(MINE,))
    instance.add_dynamic_partitions(FAMILY.task_attempt_name, [f"{TWO}#2"])
    assert "suite mine has 1 attempts per task, not 2" in failure(grid.launch(f"{MINE}|{TWO}#2", f"{MINE}|{TWO}#2"))


def test_a_suite_without_data_says_in_one_line_what_to_set(instance: dg.DagsterInstance, database: Database) -> None:
    with pytest.raises(LaunchError, match="set EVAL_GAIA_DIR to the folder with its tasks") as caught:
        load_suite(instance, load_suites(database.settings)["gaia"])
    assert "\n" not in str(caught.value)
    assert instance.get_dynamic_partitions(Family("gaia").task_attempt_name) == []


def test_a_fresh_database_is_migrated_by_the_first_step_that_needs_it(empty_database: Database) -> None:
    del empty_database
    with instance_for_test(temp_dir=os.environ["DAGSTER_HOME"]) as instance:
        load_suite(instance, load_suites(load_settings())["sample"])
        assert instance.get_dynamic_partitions(Family("sample").task_attempt_name)
