"""What the command line launches through Dagster: every cell asked for, whatever the order of the keys."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecordStatus

from eval_pipeline.assets.partitions import Family
from eval_pipeline.db.freshness import stale_batches
from eval_pipeline.execution.cells import CellEnd
from eval_pipeline.ids import BatchTeam, TaskAttempt
from eval_pipeline.launcher import (
    LaunchError,
    Selection,
    load_suite,
    refresh_summaries,
    register_batch,
    run_batch,
)
from eval_pipeline.settings import load_settings
from eval_pipeline.suites import LoadedSuite, load_suites, load_tasks
from eval_pipeline_tests.assets.grids import block_staging
from eval_pipeline_tests.assets.test_dataset import ONE, THREE, TWO, declare
from eval_pipeline_tests.conftest import Database

FIRST = BatchTeam.parse("first@v4-prompt-fix")
SECOND = BatchTeam.parse("second@v4-prompt-fix")


def prepare(instance: dg.DagsterInstance, *batch_teams: BatchTeam) -> LoadedSuite:
    """Load ``mine`` as it is declared now, and register the conditions."""
    settings = load_settings()
    suite = load_suites(settings)["mine"]
    load_suite(instance, suite)
    register_batch(instance, suite, batch_teams)
    return load_tasks(suite, settings)


def test_a_task_put_between_others_later_is_run_with_them(
    instance: dg.DagsterInstance, database: Database, clean_environment: Path
) -> None:
    declare(clean_environment, (ONE, THREE))
    prepare(instance)
    declare(clean_environment, (ONE, TWO, THREE))
    loaded = prepare(instance, FIRST)
    # the keys are in the order of registration now, the suite in that of its data
    assert instance.get_dynamic_partitions(Family("mine").task_attempt_name) == [f"{ONE}#1", f"{THREE}#1", f"{TWO}#1"]
    cells = Selection().cells(loaded)
    assert [cell.task_id for cell in cells] == [ONE, TWO, THREE]
    result = run_batch(instance, database.settings, loaded, FIRST, cells, retry_crashed=False)
    assert {ended.task_attempt: ended.end for ended in result.results} == dict.fromkeys(cells, CellEnd.COMPLETED)


def test_holes_are_run_and_what_is_done_between_them_is_not_counted_as_asked_for(
    instance: dg.DagsterInstance, database: Database, clean_environment: Path
) -> None:
    declare(clean_environment, (ONE, TWO, THREE))
    loaded = prepare(instance, FIRST)
    run_batch(instance, database.settings, loaded, FIRST, [TaskAttempt(TWO, 1)], retry_crashed=False)
    holes = [TaskAttempt(ONE, 1), TaskAttempt(THREE, 1)]
    result = run_batch(instance, database.settings, loaded, FIRST, holes, retry_crashed=False)
    assert sorted(ended.task_attempt for ended in result.results) == sorted(holes)
    # one range bridges the done cell: one Dagster run for the middle, one for both holes
    assert len(instance.get_runs(dg.RunsFilter(tags={"eval/retry_crashed": "false"}))) == 2


def test_a_crash_is_a_result_and_not_an_exception(
    instance: dg.DagsterInstance, database: Database, clean_environment: Path
) -> None:
    declare(clean_environment, (ONE, TWO))
    loaded = prepare(instance, FIRST)
    block_staging(ONE)
    cells = Selection().cells(loaded)
    result = run_batch(instance, database.settings, loaded, FIRST, cells, retry_crashed=False)
    assert [ended.task_attempt.task_id for ended in result.unfinished] == [ONE]
    assert result.line().endswith("planned=2 started=2 completed=1 crashed=1 skipped=0 retried=0")


def test_a_refused_launch_is_the_steps_own_line(
    instance: dg.DagsterInstance, database: Database, clean_environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(clean_environment, (TWO,))
    loaded = prepare(instance, FIRST)
    cells = Selection().cells(loaded)
    run_batch(instance, database.settings, loaded, FIRST, cells, retry_crashed=False)
    monkeypatch.setenv("EVAL_MAX_MESSAGES", "7")
    with pytest.raises(LaunchError, match="max_messages: then 30, now 7") as refused:
        run_batch(instance, load_settings(), loaded, FIRST, cells, retry_crashed=False)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("order", [(FIRST, SECOND), (SECOND, FIRST)])
def test_summaries_are_refreshed_whatever_the_order_they_are_asked_in(
    instance: dg.DagsterInstance, database: Database, clean_environment: Path, order: tuple[BatchTeam, BatchTeam]
) -> None:
    declare(clean_environment, (TWO,))
    loaded = prepare(instance, FIRST, BatchTeam.parse("between@v4-prompt-fix"), SECOND)
    for batch_team in (FIRST, SECOND):
        run_batch(instance, database.settings, loaded, batch_team, Selection().cells(loaded), retry_crashed=False)
    assert {stale.batch_team for stale in stale_batches(database.engine)} == {FIRST, SECOND}
    refresh_summaries(instance, loaded.suite, order)
    assert stale_batches(database.engine) == []
    for name in ("mv_batch_summary", "mv_passk", "mv_tool_summary"):
        assert instance.get_materialized_partitions(Family("mine").key(name)) == {FIRST.key, SECOND.key}
    for name in ("consistency", "contract", "trace_completeness"):
        check = dg.AssetCheckKey(Family("mine").key("runs"), name)
        (latest, *_) = instance.event_log_storage.get_asset_check_execution_history(check, limit=10)
        assert latest.status is AssetCheckExecutionRecordStatus.SUCCEEDED


@pytest.mark.parametrize(
    ("selection", "says"),
    [
        (Selection(task_ids=("sample-nowhere",)), "has no task sample-nowhere"),
        (Selection(attempts=2), "has 1 attempts per task, not 2"),
        (Selection(levels=(9,)), "fits --level"),
    ],
)
def test_a_selection_that_cannot_be_met_says_so(
    database: Database, clean_environment: Path, selection: Selection, says: str
) -> None:
    declare(clean_environment, (ONE, TWO))
    loaded = load_tasks(load_suites(database.settings)["mine"], database.settings)
    with pytest.raises(LaunchError, match=says):
        selection.cells(loaded)
