"""The checks of ``runs`` in the pages: how many rows, a few of them, and what to do."""

from __future__ import annotations

from typing import Any

import dagster as dg
import pytest
from sqlalchemy import text

from eval_pipeline.assets.partitions import Family
from eval_pipeline_tests.assets.grids import Grid
from eval_pipeline_tests.conftest import Database

CRASH = (
    "update runs set status = 'crashed', error_class = 'team', error_message = 'it broke', success = null,"
    " format_valid = null, terminated_by = null, score_reason = null, scorer_version = null"
)
ALL = {"consistency", "contract", "trace_completeness", "no_run_left_crashed", "every_planned_run_has_ended"}


def evaluate(grid: Grid) -> dict[str, dg.AssetCheckEvaluation]:
    """Every check of the suite, run as the pages run them: without the asset."""
    keys = {dg.AssetCheckKey(grid.family.key("runs"), name) for name in ALL}
    job = grid.defs.resolve_implicit_global_asset_job_def().get_subset(
        asset_selection=set(), asset_check_selection=keys
    )
    quiet = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
    outcome = job.execute_in_process(instance=grid.instance, run_config=quiet)
    return {found.check_name: found for found in outcome.get_asset_check_evaluations()}


def shown(found: dg.AssetCheckEvaluation) -> dict[str, Any]:
    return {name: value.value for name, value in found.metadata.items()}


@pytest.fixture
def grid(instance: dg.DagsterInstance, database: Database) -> Grid:
    grid = Grid(instance, database)
    assert grid.launch_tasks(3).success
    return grid


def change(database: Database, statement: str, **values: object) -> None:
    with database.engine.begin() as connection:
        connection.execute(text(statement), values)


def test_all_pass_on_a_batch_that_is_whole(grid: Grid) -> None:
    found = evaluate(grid)
    assert set(found) == ALL
    assert all(one.passed for one in found.values())
    assert {shown(one)["found"] for one in found.values()} == {0}
    assert {one.asset_key for one in found.values()} == {Family("sample").key("runs")}


def test_findings_are_counted_shown_and_say_what_to_do(database: Database, grid: Grid) -> None:
    first, second, third = (key.partition("#")[0] for key in grid.task_keys[:3])
    change(database, f"{CRASH} where task_id = :task", task=first)
    change(
        database,
        "insert into plan (batch_id, team_id, task_id, attempt, task_hash)"
        " select batch_id, team_id, task_id, 2, task_hash from plan",
    )
    change(
        database,
        "delete from events where seq = 1 and run_id = (select run_id from runs where task_id = :task)",
        task=second,
    )
    # stuck, and none of Dagster's business either
    change(
        database,
        "update runs set status = 'running', success = null, format_valid = null, finished_at = null,"
        " terminated_by = null, heartbeat_at = now() - interval '1 hour' where task_id = :task",
        task=third,
    )
    found = evaluate(grid)

    crashed = shown(found["no_run_left_crashed"])
    assert crashed["found"] == 1
    assert first in crashed["sample"]
    assert "it broke" in crashed["sample"]
    assert "--retry-crashed" in crashed["what_to_do"]
    assert crashed["what_it_means"]

    unended = shown(found["every_planned_run_has_ended"])
    assert unended["found"] == 3 + 1
    assert unended["sample"].count("not started") == 3
    assert "launch the batch again" in unended["what_to_do"]

    traces = shown(found["trace_completeness"])
    assert traces["gap_in_seq: found"] == 1
    assert second in traces["gap_in_seq: sample"]

    # one finding does not hide another in the same check
    consistency = shown(found["consistency"])
    assert consistency["stale_heartbeat: found"] == 1
    assert consistency["dagster_mirror: found"] == 2 * 2
    assert consistency["found"] == 1 + 2 * 2
    assert third in consistency["stale_heartbeat: sample"]

    assert found["contract"].passed
    severities = {name: one.severity for name, one in found.items() if not one.passed}
    error, warning = dg.AssetCheckSeverity.ERROR, dg.AssetCheckSeverity.WARN
    assert severities == {
        "consistency": error,
        "trace_completeness": error,
        "no_run_left_crashed": warning,
        "every_planned_run_has_ended": warning,
    }


def test_a_cell_that_has_just_completed_under_a_launch_at_work_is_no_finding_yet(
    database: Database, grid: Grid
) -> None:
    """Between its commit and the word to Dagster; once nothing is running any more, it is one."""
    first, second = (key.partition("#")[0] for key in grid.task_keys[:2])
    for statement in (
        "insert into batches select 'other', team_id, suite, benchmark, suite_hash, contract, contract_hash, info,"
        " provider, model, scripted, created_at from batches",
        "insert into plan select 'other', team_id, task_id, attempt, task_hash, now() from plan",
    ):
        change(database, statement)
    columns = "run_id, batch_id, team_id, task_id, attempt, try_no, live, task_hash, level, started_at, heartbeat_at"
    values = "gen_random_uuid(), 'other', team_id, task_id, attempt, 1, true, task_hash, level, now(), now()"
    of_task = "from runs where task_id = :task and batch_id = 'first'"
    verdict = "success, format_valid, terminated_by"
    change(
        database,
        f"insert into runs ({columns}, status, finished_at, {verdict})"
        f" select {values}, status, now(), {verdict} {of_task}",
        task=first,
    )
    change(database, f"insert into runs ({columns}, status) select {values}, 'running' {of_task}", task=second)
    assert evaluate(grid)["consistency"].passed
    change(
        database,
        "update runs set finished_at = now() - interval '2 minutes' where batch_id = 'other' and status = 'completed'",
    )
    assert shown(evaluate(grid)["consistency"])["dagster_mirror: found"] == 2


def test_no_more_of_a_finding_is_shown_than_a_sample(database: Database, grid: Grid) -> None:
    change(
        database,
        "insert into plan (batch_id, team_id, task_id, attempt, task_hash)"
        " select batch_id, team_id, task_id, number, task_hash from plan, generate_series(2, 30) as number",
    )
    metadata = shown(evaluate(grid)["every_planned_run_has_ended"])
    assert metadata["found"] == 3 * 29
    assert str(metadata["sample"]).count("not started") == 20
