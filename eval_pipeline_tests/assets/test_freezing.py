"""``tasks`` and ``team_configs`` of a batch: frozen by whoever comes first, shown once, never out of date by a date."""

from __future__ import annotations

import dagster as dg
import pytest
from dagster._core.definitions.data_version import CachingStaleStatusResolver
from dagster._core.loader import LoadingContextForTest
from sqlalchemy import select

from eval_pipeline.db import tables
from eval_pipeline.execution.launch import open_launch
from eval_pipeline.ids import BatchTeam
from eval_pipeline.settings import load_settings
from eval_pipeline.suites import load_suites, load_tasks
from eval_pipeline.teams.registry import load_teams
from eval_pipeline_tests.assets.grids import V4, Grid, failure
from eval_pipeline_tests.conftest import Database

FROZEN = ("tasks", "team_configs")


def causes(grid: Grid, name: str, partition: str | None = None) -> list[str]:
    """Why the pages call a partition of an asset out of date; empty where they do not."""
    graph = grid.defs.resolve_asset_graph()
    resolver = CachingStaleStatusResolver(grid.instance, graph, LoadingContextForTest(grid.instance))
    return [cause.reason for cause in resolver.get_stale_causes(grid.family.key(name), partition)]


def test_runs_launched_alone_freeze_the_batch_and_a_later_launch_shows_it_no_second_time(
    instance: dg.DagsterInstance, database: Database
) -> None:
    grid = Grid(instance, database)
    grid.launch_tasks(1)
    grid.launch_tasks(2)
    for name in FROZEN:
        assert grid.materializations(name) == {V4: 1}


def test_freezing_first_and_running_then_is_the_same_contract(instance: dg.DagsterInstance, database: Database) -> None:
    grid = Grid(instance, database)
    for name in FROZEN:
        assert grid.materialize(name, V4, V4).success
    assert grid.counts()["batches"] == 1
    assert grid.launch_tasks(1).success
    assert grid.counts()["batches"] == 1
    for name in FROZEN:
        assert grid.materializations(name) == {V4: 1}


def test_a_contract_that_dagster_never_heard_of_is_shown_by_the_next_launch(
    instance: dg.DagsterInstance, database: Database
) -> None:
    grid = Grid(instance, database)
    settings = load_settings()
    loaded = load_tasks(load_suites(settings)["sample"], settings)
    open_launch(settings, database.engine, BatchTeam.parse(V4), loaded, load_teams(None))
    assert grid.materializations("tasks") == {}
    grid.launch_tasks(1)
    for name in FROZEN:
        assert grid.materializations(name) == {V4: 1}


def test_the_frozen_team_shows_its_prompts_its_hashes_and_the_whole_contract(
    instance: dg.DagsterInstance, database: Database
) -> None:
    grid = Grid(instance, database)
    grid.launch_tasks(1)
    spec = load_teams(None)["v4-prompt-fix"]
    shown = grid.metadata("team_configs", V4)
    assert (shown["team"], shown["parent"], shown["change"]) == (spec.team_id, "v3-prompt-fix", spec.change)
    assert (shown["prompt_bundle_hash"], shown["contract_hash"]) == (spec.prompt_bundle_hash, spec.contract_hash)
    assert "scripted model" in str(shown["model"])
    for prompt in spec.prompts.values():
        assert prompt in str(shown["prompts"])
    with database.engine.connect() as connection:
        contract = connection.execute(select(tables.batches.c.contract)).scalar_one()
    for field in contract:
        assert f"| {field} |" in str(shown["contract"])


def test_the_frozen_tasks_show_questions_and_hashes_but_no_gold_answer(
    instance: dg.DagsterInstance, database: Database
) -> None:
    grid = Grid(instance, database)
    grid.launch_tasks(1)
    shown = grid.metadata("tasks", V4)
    with database.engine.connect() as connection:
        stored = connection.execute(select(tables.tasks)).all()
    for task in stored:
        assert task.content_hash[:12] in str(shown["frozen_tasks"])
    cafe = next(task for task in stored if task.task_id == "sample-cafe-food-total")
    assert cafe.question[:60] in str(shown["questions"])
    assert cafe.gold not in str(shown)


def test_loading_the_suite_again_and_reporting_again_put_nothing_out_of_date(
    instance: dg.DagsterInstance, database: Database
) -> None:
    grid = Grid(instance, database)
    grid.launch_tasks(2)
    assert grid.materialize("mv_batch_summary", V4, V4).success
    grid.reload()
    grid.launch_tasks(2)
    for name in (*FROZEN, "mv_batch_summary"):
        assert causes(grid, name, V4) == []
    for name in ("runs", "events"):
        assert causes(grid, name, f"{V4}|{grid.task_keys[0]}") == []


def test_a_further_run_puts_the_summary_out_of_date(instance: dg.DagsterInstance, database: Database) -> None:
    # the counterpart of the test above: its list would be empty as well if nothing were ever found
    grid = Grid(instance, database)
    grid.launch_tasks(1)
    assert grid.materialize("mv_batch_summary", V4, V4).success
    second = f"{V4}|{grid.task_keys[1]}"
    grid.launch(second, second)
    assert causes(grid, "mv_batch_summary", V4) != []


@pytest.mark.parametrize("name", FROZEN)
def test_freezing_for_a_team_that_is_not_there_is_one_line(
    instance: dg.DagsterInstance, database: Database, name: str
) -> None:
    grid = Grid(instance, database, batch_teams=("first@v9",))
    reason = failure(grid.materialize(name, "first@v9", "first@v9"))
    assert "'v9'" in reason
    assert "\n" not in reason
    assert grid.materializations(name) == {}
