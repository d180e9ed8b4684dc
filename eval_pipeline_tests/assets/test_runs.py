"""A launch of cells on a real instance: what Dagster shows afterwards is what the database holds, cell by cell."""

from __future__ import annotations

import asyncio

import dagster as dg
import pytest
from dagster._core.storage.partition_status_cache import AssetPartitionStatus
from sqlalchemy import select

from eval_pipeline.assets.mirror import mirror_check
from eval_pipeline.db import tables
from eval_pipeline.execution.launch import open_launch
from eval_pipeline.execution.run_many import run_cells
from eval_pipeline.ids import BatchTeam, TaskAttempt
from eval_pipeline.settings import load_settings
from eval_pipeline.suites import load_suites, load_tasks
from eval_pipeline.teams.registry import load_teams
from eval_pipeline_tests.assets.grids import V4, Grid, block_staging, failure
from eval_pipeline_tests.conftest import Database

MATERIALIZED, FAILED = AssetPartitionStatus.MATERIALIZED, AssetPartitionStatus.FAILED
CAFE = "sample-cafe-food-total"
V3 = "first@v3-prompt-fix"


def test_a_crashed_cell_fails_alone_and_every_other_one_is_materialized_once(
    instance: dg.DagsterInstance, database: Database
) -> None:
    grid = Grid(instance, database)
    block_staging(CAFE)
    result = grid.launch_tasks(6)
    cells = [f"{V4}|{key}" for key in grid.task_keys[:6]]
    crashed, *completed = cells
    assert crashed == f"{V4}|{CAFE}#1"
    reason = failure(result)
    assert reason.startswith(f"1 of 6 cells have no completed run: {CAFE}#1 (")
    assert "\n" not in reason
    for asset in ("runs", "events"):
        assert grid.cells(asset, MATERIALIZED) == set(completed)
        assert grid.cells(asset, FAILED) == {crashed}
        assert grid.materializations(asset) == dict.fromkeys(completed, 1)
    told = grid.observation(crashed)
    assert told["verdict"] == "crashed (team)"
    assert "cannot be staged" in str(told["error"])


def test_what_a_crash_left_is_run_by_the_next_launch_and_the_rest_is_only_reported(
    instance: dg.DagsterInstance, database: Database
) -> None:
    grid = Grid(instance, database)
    obstacle = block_staging(CAFE)
    grid.launch_tasks(3)
    obstacle.unlink()
    assert grid.launch_tasks(3).success
    assert len(grid.cells("runs", MATERIALIZED)) == 3
    assert grid.cells("runs", FAILED) == set()
    with database.engine.connect() as connection:
        tries = connection.execute(select(tables.runs.c.task_id, tables.runs.c.try_no)).all()
    assert sorted(row.task_id for row in tries if row.try_no == 2) == [CAFE]
    assert len(tries) == 4
    assert mirror_check(instance, database.engine).count == 0


def test_a_second_launch_calls_no_model_and_writes_no_row(instance: dg.DagsterInstance, database: Database) -> None:
    grid = Grid(instance, database)
    assert grid.launch_tasks(4).success
    before = grid.counts()
    assert before["model_calls"] > 0
    assert grid.launch_tasks(4).success
    assert grid.counts() == before
    cell = f"{V4}|{grid.task_keys[0]}"
    assert "no model" in str(grid.metadata("runs", cell)["skipped"])


def test_a_completed_run_that_dagster_never_heard_of_is_reported_without_a_model_call(
    instance: dg.DagsterInstance, database: Database
) -> None:
    grid = Grid(instance, database)
    # what a process leaves that dies between its commit and its event
    settings = load_settings()
    loaded = load_tasks(load_suites(settings)["sample"], settings)
    launch = open_launch(settings, database.engine, BatchTeam.parse(V4), loaded, load_teams(None))
    attempts = [TaskAttempt.parse(key) for key in grid.task_keys[:3]]
    asyncio.run(run_cells(launch, attempts, lambda plan: None, lambda result: None))
    assert grid.cells("runs", MATERIALIZED) == set()
    assert mirror_check(instance, database.engine).count == 6
    before = grid.counts()

    assert grid.launch_tasks(3).success

    assert grid.counts() == before
    assert len(grid.cells("runs", MATERIALIZED)) == len(grid.cells("events", MATERIALIZED)) == 3
    assert mirror_check(instance, database.engine).count == 0


def test_the_command_lines_tag_leaves_a_crashed_run_and_a_launch_without_it_tries_it_again(
    instance: dg.DagsterInstance, database: Database
) -> None:
    grid = Grid(instance, database)
    obstacle = block_staging(CAFE)
    grid.launch_tasks(2)
    obstacle.unlink()
    before = grid.counts()
    assert "not retried" in failure(grid.launch_tasks(2, eval__retry_crashed="false"))
    assert grid.counts() == before
    assert grid.launch_tasks(2).success
    assert grid.counts()["runs"] == before["runs"] + 1


def test_one_task_over_two_teams_is_one_launch_of_two_conditions(
    instance: dg.DagsterInstance, database: Database
) -> None:
    grid = Grid(instance, database, batch_teams=(V3, V4))
    task = grid.task_keys[0]
    assert grid.launch(f"{V3}|{task}", f"{V4}|{task}").success
    assert grid.cells("runs", MATERIALIZED) == {f"{V3}|{task}", f"{V4}|{task}"}
    assert grid.counts()["batches"] == 2
    assert grid.materializations("team_configs") == {V3: 1, V4: 1}


def test_one_team_over_a_part_of_the_tasks_leaves_the_others_alone(
    instance: dg.DagsterInstance, database: Database
) -> None:
    grid = Grid(instance, database, batch_teams=(V3, V4))
    middle = grid.task_keys[4:7]
    assert grid.launch(f"{V4}|{middle[0]}", f"{V4}|{middle[-1]}").success
    assert grid.cells("runs", MATERIALIZED) == {f"{V4}|{key}" for key in middle}
    assert grid.counts()["plan"] == 3


@pytest.mark.parametrize("asset", ["runs", "mv_batch_summary", "tasks", "team_configs"])
def test_a_range_the_wrong_way_round_fails_aloud(instance: dg.DagsterInstance, database: Database, asset: str) -> None:
    grid = Grid(instance, database, batch_teams=(V3, V4))
    if asset == "runs":
        first, last = grid.task_keys[0], grid.task_keys[2]
        result = grid.launch(f"{V4}|{last}", f"{V4}|{first}")
    else:
        result = grid.materialize(asset, V4, V3)
    assert "the partition range is empty" in failure(result)
    assert grid.materializations(asset) == {}


@pytest.mark.parametrize(
    ("batch_team", "says"),
    [
        ("first@v9-unknown", "'v9-unknown'"),
        ("no-team", "'no-team' is not of the form batch@team"),
        ("two@v4-prompt-fix@signs", "is not of the form batch@team"),
        ("../up@v4-prompt-fix", "batch id '../up' cannot be used"),
        ("한글@v4-prompt-fix", "batch id '한글' cannot be used"),
        (f"{'long' * 40}@v4-prompt-fix", "cannot be used"),
        ("first@t1-text", "choose a team with 'answers: line'"),
    ],
)
def test_a_key_that_names_no_condition_is_one_line_before_anything_runs(
    instance: dg.DagsterInstance, database: Database, batch_team: str, says: str
) -> None:
    grid = Grid(instance, database, batch_teams=(batch_team,))
    before = grid.counts()
    reason = failure(grid.launch_tasks(2, batch_team))
    assert says in reason
    assert "\n" not in reason
    assert grid.counts() == before
    assert grid.materializations("team_configs") == {}


@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        ("EVAL_MAX_MESSAGES", "12", "max_messages: then 30, now 12"),
        ("EVAL_LLM_TEMPERATURE", "0.7", "llm_temperature: then 0.0, now 0.7"),
        ("EVAL_LLM_SEED", "7", "llm_seed: then None, now 7"),
    ],
)
def test_a_launch_under_other_conditions_is_refused_with_the_difference(
    instance: dg.DagsterInstance,
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
    value: str,
    says: str,
) -> None:
    grid = Grid(instance, database)
    assert grid.launch_tasks(1).success
    before = grid.counts()
    monkeypatch.setenv(variable, value)
    reason = failure(grid.launch_tasks(3))
    assert says in reason
    assert "\n" not in reason
    assert grid.counts() == before
    assert len(grid.materializations("runs")) == 1


def test_a_launch_at_another_speed_goes_on_with_the_batch(
    instance: dg.DagsterInstance, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    grid = Grid(instance, database)
    assert grid.launch_tasks(1).success
    monkeypatch.setenv("EVAL_CONCURRENCY", "1")
    monkeypatch.setenv("EVAL_LLM_TIMEOUT_S", "7")
    assert grid.launch_tasks(2).success


def test_a_cell_says_what_came_of_it_and_that_the_model_was_scripted(
    instance: dg.DagsterInstance, database: Database
) -> None:
    grid = Grid(instance, database)
    tiles = f"{V4}|sample-floor-tiles#1"
    assert grid.launch(tiles, tiles).success
    shown = grid.metadata("runs", tiles)
    with database.engine.connect() as connection:
        run = connection.execute(select(tables.runs)).one()
    assert (shown["verdict"], shown["success"], shown["answer"]) == ("right", 1, run.final_answer)
    assert "scripted model" in str(shown["model"])
    assert shown["turns"] == run.turns
    assert shown["tokens"] == run.tokens_in + run.tokens_out
    assert shown["latency_s"] == pytest.approx(run.latency_ms / 1000)
    assert shown["transcript"] == f"`eval-pipeline trace {run.run_id}`"
    assert grid.metadata("events", tiles)["run_id"] == str(run.run_id)
