"""Paused batches are resumed after a while and old nights leave the pages, if one wants; coming months are made."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.execution.backfill import BulkActionStatus, PartitionBackfill
from dagster._core.test_utils import create_run_for_test
from sqlalchemy import text

from eval_pipeline.assets.partitions import Family
from eval_pipeline.assets.ranges import batch_teams_of, range_tags
from eval_pipeline.automation.upkeep import retired
from eval_pipeline.db.checks import run_checks
from eval_pipeline.db.event_partitions import AHEAD, months_present
from eval_pipeline.definitions import build_defs
from eval_pipeline.settings import load_settings
from eval_pipeline_tests.automation.daemon import Daemon
from eval_pipeline_tests.conftest import Database
from eval_pipeline_tests.endpoint_suite import SUITE, Endpoint, endpoint_with, run_arguments
from eval_pipeline_tests.execution.test_circuit import QUOTA
from eval_pipeline_tests.stub_openai import Reply, Request, error
from eval_pipeline_tests.test_cli import command

TASKS = 9


@pytest.fixture
def endpoint(database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    with endpoint_with(tmp_path, TASKS) as endpoint:
        for name, value in endpoint.environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("EVAL_CONCURRENCY", "1")
        yield endpoint


def _counts(database: Database, query: str) -> dict[str, int]:
    with database.engine.connect() as connection:
        return dict(connection.execute(text(query)).all())


def test_a_paused_batch_goes_on_after_the_set_time_and_only_it(
    instance: dg.DagsterInstance, database: Database, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint.solver.meddler = lambda _task, _request: error(400)
    # crashed for a reason of its own, and given up
    assert command(*run_arguments("given-up", "--task-ids", "task-008")).code == 1

    def quota_is_gone(task_id: str, request: Request) -> Reply | None:
        return None if task_id == "task-000" else QUOTA

    endpoint.solver.meddler = quota_is_gone
    stopped = command(*run_arguments("paused"))
    assert stopped.code == 1
    of_batch = "select status, count(*) from runs where batch_id = 'paused' and live group by 1"
    assert _counts(database, of_batch) == {"completed": 1, "crashed": 5}
    status = command("status", "paused")
    assert "wait until the quota is renewed" in status.out

    daemon = Daemon(instance)
    assert daemon.look("resume_paused_batches") == []
    monkeypatch.setenv("EVAL_RESUME_PAUSED_AFTER_S", "0.01")
    endpoint.solver.meddler = None
    (request,) = daemon.look("resume_paused_batches")
    assert request.run_key
    assert "paused@" in request.run_key
    assert _counts(database, of_batch) == {"completed": TASKS}
    assert daemon.look("resume_paused_batches") == []
    assert all(check.passed for check in run_checks(database.engine))


def test_a_batch_that_is_still_refused_is_asked_again_only_after_the_set_time(
    instance: dg.DagsterInstance, database: Database, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint.solver.meddler = lambda _task, _request: QUOTA
    command(*run_arguments("paused"))
    monkeypatch.setenv("EVAL_RESUME_PAUSED_AFTER_S", "0.01")
    daemon = Daemon(instance)
    for _ in range(2):
        with pytest.raises(AssertionError):
            daemon.look("resume_paused_batches")
        assert _counts(database, "select 'rows', count(*) from pauses") == {"rows": 1}
    assert len(endpoint.solver.asked) == 3 * 5
    monkeypatch.setenv("EVAL_RESUME_PAUSED_AFTER_S", "3600")
    assert daemon.look("resume_paused_batches") == []

    # without its key there is no cell to launch
    monkeypatch.setenv("EVAL_RESUME_PAUSED_AFTER_S", "0.01")
    name = Family(SUITE).batch_team_name
    for key in instance.get_dynamic_partitions(name):
        instance.delete_dynamic_partition(name, key)
    assert daemon.look("resume_paused_batches") == []


def test_the_newest_nights_stay_and_a_persons_batches_are_never_retired() -> None:
    nights = [f"nightly-2026-11-{day:02}@{team}" for day in (1, 2, 3) for team in ("v1", "v2")]
    keys = ["first@v1", *nights, "nightlyish@v1"]
    assert retired(keys, 2) == nights[:2]
    assert retired(keys, 9) == []
    assert retired([], 1) == []


def retire(instance: dg.DagsterInstance) -> str:
    defs = build_defs(load_settings())
    (sensor,) = [one for one in defs.sensors or () if one.name == "retire_nightly_keys"]
    assert sensor.default_status is dg.DefaultSensorStatus.STOPPED
    with dg.build_sensor_context(instance=instance, definitions=defs) as context:
        found = sensor(context)
    assert isinstance(found, dg.SkipReason)
    return str(found.skip_message)


def test_old_nights_leave_the_pages_and_the_data_stay_unless_something_is_under_way(
    instance: dg.DagsterInstance, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVAL_KEEP_NIGHTLY", "1")
    name = Family("sample").batch_team_name
    keys = [f"nightly-2026-11-{day:02}@v4-prompt-fix" for day in (1, 2, 3)]
    instance.add_dynamic_partitions(name, keys)
    backfill = PartitionBackfill(
        backfill_id="b", status=BulkActionStatus.REQUESTED, from_failure=False, tags={}, backfill_timestamp=0.0
    )
    instance.add_backfill(backfill)
    assert "backfill is under way" in retire(instance)
    assert instance.get_dynamic_partitions(name) == keys
    instance.update_backfill(backfill.with_status(BulkActionStatus.COMPLETED_FAILED))

    family = Family("sample")
    tags = range_tags(family.cell_key(keys[1], "a#1"), family.cell_key(keys[1], "z#1"))
    run = create_run_for_test(instance, job_name="sample_runs", status=dg.DagsterRunStatus.STARTED, tags=tags)
    assert f"retired: {keys[0]}; still in use: {keys[1]}" in retire(instance)
    assert instance.get_dynamic_partitions(name) == keys[1:]

    instance.report_run_canceled(run)
    assert f"retired: {keys[1]}" in retire(instance)
    assert instance.get_dynamic_partitions(name) == keys[2:]


def test_a_run_may_work_at_every_key_between_the_ends_of_its_range() -> None:
    known = ["a@v", "b@v", "c@v", "d@v"]
    assert batch_teams_of(range_tags("b@v|t#1", "d@v|t#1"), known) == {"b@v", "c@v", "d@v"}
    assert batch_teams_of(range_tags("b@v|t#1", "b@v|u#1"), known) == {"b@v"}
    assert batch_teams_of({"dagster/partition": "c@v"}, known) == {"c@v"}
    assert batch_teams_of(range_tags("x@v|t#1", "x@v|t#2"), known) == set()
    assert batch_teams_of({}, known) == set()


def test_the_coming_months_are_made_by_a_sensor_that_is_on(instance: dg.DagsterInstance, database: Database) -> None:
    defs = build_defs(load_settings())
    (sensor,) = [one for one in defs.sensors or () if one.name == "make_trace_months"]
    assert sensor.default_status is dg.DefaultSensorStatus.RUNNING
    with database.engine.begin() as connection:
        for month in months_present(connection):
            connection.execute(text("select drop_trace_month(to_date(:month, 'YYYY-MM'))"), {"month": str(month)})

    def look() -> str:
        with dg.build_sensor_context(instance=instance, definitions=defs) as context:
            found = sensor(context)
        assert isinstance(found, dg.SkipReason)
        return str(found.skip_message)

    assert look().startswith("made: 20")
    with database.engine.connect() as connection:
        assert len(months_present(connection)) == 1 + AHEAD
    assert look() == "made: none, the coming months are there"
