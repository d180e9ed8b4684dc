"""What a dead process leaves is ended without hands, and nothing that lives is touched."""

from __future__ import annotations

import os
import signal
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.test_utils import create_run_for_test
from sqlalchemy import select, text, update

from eval_pipeline.assets.lease import LAUNCHED_BY_TAG, LEASE
from eval_pipeline.assets.partitions import Family
from eval_pipeline.assets.pool import POOL, SLOTS, free_slots_of_the_ended, set_limit_once
from eval_pipeline.automation import reaper
from eval_pipeline.automation.jobs import runs_job_name
from eval_pipeline.automation.reaper import Look, Ours, reap, reap_at_start, reap_dead_runs
from eval_pipeline.db import tables
from eval_pipeline.db.checks import run_checks
from eval_pipeline.db.leases import lease
from eval_pipeline.definitions import build_defs
from eval_pipeline.execution import store
from eval_pipeline.settings import load_settings
from eval_pipeline_tests.conftest import Database
from eval_pipeline_tests.endpoint_suite import endpoint_with, run_arguments
from eval_pipeline_tests.execution.launching import TILES, opened, tries
from eval_pipeline_tests.processes import eval_pipeline

STATUS = dg.DagsterRunStatus
GRACE_S = 1.0


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two looks a second apart, and no run is young."""
    monkeypatch.setattr(reaper, "SURE_AFTER_S", GRACE_S)
    for name in ("YOUNG_S", "STARTING_S", "NEVER_STARTED_S"):
        monkeypatch.setattr(reaper, name, 0.0)


@pytest.fixture
def ours(instance: dg.DagsterInstance) -> Ours:
    return Ours.of(build_defs(load_settings()).get_repository_def())


def our_run(instance: dg.DagsterInstance, status: dg.DagsterRunStatus = STATUS.STARTED) -> str:
    """A run of ours that Dagster takes for alive and that no process works at."""
    return create_run_for_test(instance, job_name=runs_job_name("sample"), status=status).run_id


def look_twice(instance: dg.DagsterInstance, database: Database, ours: Ours) -> Look:
    first = reap(instance, database.engine, ours, {})
    assert first.ended == []
    time.sleep(GRACE_S)
    return reap(instance, database.engine, ours, first.suspects)


def status_of(instance: dg.DagsterInstance, run_id: str) -> dg.DagsterRunStatus:
    run = instance.get_run_by_id(run_id)
    assert run is not None
    return run.status


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (STATUS.STARTED, STATUS.FAILURE),
        (STATUS.STARTING, STATUS.FAILURE),
        (STATUS.NOT_STARTED, STATUS.FAILURE),
        (STATUS.CANCELING, STATUS.CANCELED),
    ],
)
def test_a_run_that_nobody_works_at_is_ended_at_the_second_look(
    instance: dg.DagsterInstance,
    database: Database,
    ours: Ours,
    hurried: None,
    before: dg.DagsterRunStatus,
    after: dg.DagsterRunStatus,
) -> None:
    run_id = our_run(instance, before)
    assert look_twice(instance, database, ours).ended == [run_id]
    assert status_of(instance, run_id) is after
    assert reap(instance, database.engine, ours, {}).suspects == {}


def test_a_run_whose_process_lives_is_never_ended(
    instance: dg.DagsterInstance, database: Database, ours: Ours, hurried: None
) -> None:
    run_id = our_run(instance)
    with lease(database.engine, run_id):
        for _ in range(4):
            look = reap(instance, database.engine, ours, {run_id: 0.0})
            assert (look.ended, look.suspects) == ([], {})
            time.sleep(0.2)
    assert reap(instance, database.engine, ours, {run_id: 0.0}).ended == [run_id]


def test_one_free_look_is_not_enough(instance: dg.DagsterInstance, database: Database, ours: Ours) -> None:
    run_id = our_run(instance)
    long_ago = {run_id: 0.0}
    # young as it is, not even a second one is
    assert reap(instance, database.engine, ours, long_ago).ended == []
    assert set(reap(instance, database.engine, ours, {}).suspects) == {run_id}


@pytest.mark.parametrize(
    ("status", "age_s"),
    [
        (STATUS.STARTED, reaper.YOUNG_S),
        (STATUS.STARTING, reaper.STARTING_S),
        (STATUS.NOT_STARTED, reaper.NEVER_STARTED_S),
    ],
)
def test_a_run_has_as_long_as_it_may_take_to_get_its_lease(
    instance: dg.DagsterInstance, database: Database, ours: Ours, status: dg.DagsterRunStatus, age_s: float
) -> None:
    """A run that waited in the queue for hours is as young as its launch."""
    run_id = our_run(instance, status)
    for seconds, ended in ((age_s - 5, []), (age_s + 5, [run_id])):
        now, created = datetime.now(UTC).replace(tzinfo=None), timedelta(hours=9)
        with database.engine.begin() as connection:
            connection.execute(
                text("update dagster.runs set create_timestamp = :created, update_timestamp = :changed"),
                {"created": now - created, "changed": now - timedelta(seconds=seconds)},
            )
        assert reap(instance, database.engine, ours, {run_id: 0.0}).ended == ended


def test_runs_of_other_code_on_the_same_instance_are_left_alone(
    instance: dg.DagsterInstance, database: Database, ours: Ours, hurried: None
) -> None:
    create_run_for_test(instance, job_name="somebody_elses", status=STATUS.STARTED)
    create_run_for_test(
        instance,
        job_name="__ASSET_JOB",
        status=STATUS.STARTED,
        asset_selection=frozenset({dg.AssetKey(["somebody", "else"])}),
    )
    look = look_twice(instance, database, ours)
    assert (look.ended, look.suspects) == ([], {})


@pytest.mark.parametrize("how", ["assets", "tag", "check"])
def test_runs_of_ours_are_known_however_they_were_launched(
    instance: dg.DagsterInstance, database: Database, ours: Ours, hurried: None, how: str
) -> None:
    runs = Family("sample").key("runs")
    run = {
        "assets": lambda: create_run_for_test(
            instance, job_name="__ASSET_JOB", status=STATUS.STARTED, asset_selection=frozenset({runs})
        ),
        "tag": lambda: create_run_for_test(
            instance, job_name="__ephemeral", status=STATUS.STARTED, tags={LAUNCHED_BY_TAG: "host:1"}
        ),
        "check": lambda: create_run_for_test(
            instance,
            job_name="__ASSET_JOB",
            status=STATUS.STARTED,
            asset_check_selection=frozenset({dg.AssetCheckKey(runs, "consistency")}),
        ),
    }[how]()
    assert look_twice(instance, database, ours).ended == [run.run_id]


def test_every_asset_and_check_holds_the_lease(instance: dg.DagsterInstance) -> None:
    """What holds none would be taken for dead while it works."""
    repository = build_defs(load_settings()).get_repository_def()
    assets = {
        graph.assets_def for graph in map(repository.asset_graph.get, repository.asset_graph.get_all_asset_keys())
    }
    assert len(assets) > 5
    assert [asset.keys for asset in assets if LEASE not in asset.required_resource_keys] == []
    checks = repository.asset_checks_defs_by_key.values()
    assert checks
    assert all(LEASE in check.required_resource_keys for check in checks)


def test_a_process_that_ends_between_two_looks_is_not_ended_again(
    instance: dg.DagsterInstance, database: Database, ours: Ours, hurried: None
) -> None:
    run_id = our_run(instance)
    first = reap(instance, database.engine, ours, {})
    run = instance.get_run_by_id(run_id)
    assert run is not None
    instance.report_run_canceled(run)
    time.sleep(GRACE_S)
    assert reap(instance, database.engine, ours, first.suspects).ended == []
    assert status_of(instance, run_id) is STATUS.CANCELED


def begun(database: Database, dagster_run_id: str | None, heartbeat_age_s: float = 0.0) -> None:
    launch = opened(database, "first@v5-multitool")
    with database.engine.begin() as connection:
        store.plan_cells(connection, launch.batch_team, [launch.cell(TILES)])
        try_ = store.begin_try(connection, launch.cell(TILES), retry_crashed=True, dagster_run_id=dagster_run_id)
        connection.execute(
            update(tables.runs)
            .where(tables.runs.c.run_id == try_.run_id)
            .values(heartbeat_at=datetime.now(UTC) - timedelta(seconds=heartbeat_age_s))
        )


def test_a_try_whose_dagster_run_was_ended_by_dagster_is_closed_too(
    instance: dg.DagsterInstance, database: Database, ours: Ours, hurried: None
) -> None:
    """The code server sees a killed worker at once and ends its run, but knows nothing of our rows."""
    run_id = our_run(instance, STATUS.FAILURE)
    begun(database, run_id)
    set_limit_once(instance)
    storage = instance.event_log_storage
    storage.claim_concurrency_slot(POOL, run_id, "step")
    # its slot is given back with its cells, or the next run would find them busy
    assert set(reap(instance, database.engine, ours, {}).suspects) == {run_id}
    assert storage.get_concurrency_info(POOL).active_run_ids == {run_id}
    assert look_twice(instance, database, ours).ended == [run_id]
    assert storage.get_concurrency_info(POOL).active_run_ids == set()
    (closed,) = tries(database, TILES)
    assert (closed.status, closed.error_class) == ("crashed", "interrupted")
    assert status_of(instance, run_id) is STATUS.FAILURE


@pytest.mark.parametrize(("age_s", "status"), [(store.HEARTBEAT_DEAD_AFTER_S + 5, "crashed"), (5.0, "running")])
def test_a_try_without_a_dagster_run_goes_by_its_heartbeat(
    instance: dg.DagsterInstance, database: Database, ours: Ours, age_s: float, status: str
) -> None:
    begun(database, None, age_s)
    reap(instance, database.engine, ours, {})
    assert tries(database, TILES)[0].status == status


def test_slots_of_runs_that_have_ended_are_freed_and_others_kept(instance: dg.DagsterInstance) -> None:
    set_limit_once(instance)
    storage = instance.event_log_storage
    storage.set_concurrency_slots(POOL, 2)
    set_limit_once(instance)
    assert storage.get_concurrency_info(POOL).slot_count == 2
    alive, dead = our_run(instance), our_run(instance, STATUS.FAILURE)
    for run_id in (alive, dead):
        storage.claim_concurrency_slot(POOL, run_id, "step")
    free_slots_of_the_ended(instance)
    assert storage.get_concurrency_info(POOL).active_run_ids == {alive}


def test_the_pool_lets_one_step_through_unless_somebody_says_otherwise(instance: dg.DagsterInstance) -> None:
    set_limit_once(instance)
    assert instance.event_log_storage.get_concurrency_info(POOL).slot_count == SLOTS == 1


def test_the_sensor_remembers_its_suspects(instance: dg.DagsterInstance, database: Database, hurried: None) -> None:
    run_id = our_run(instance)
    defs = build_defs(load_settings())
    with dg.build_sensor_context(instance=instance, definitions=defs) as context:
        reap_dead_runs(context)
        cursor = context.cursor
    assert cursor
    assert run_id in cursor
    time.sleep(GRACE_S)
    with dg.build_sensor_context(instance=instance, definitions=defs, cursor=cursor) as context:
        found = reap_dead_runs(context)
    assert isinstance(found, dg.SkipReason)
    assert run_id in str(found.skip_message)
    assert status_of(instance, run_id) is STATUS.FAILURE


def test_a_command_waits_only_where_a_process_seems_to_have_died(
    instance: dg.DagsterInstance, database: Database, ours: Ours, hurried: None
) -> None:
    told: list[str] = []

    def never() -> Ours:
        raise AssertionError("nothing is alive, so no definition needs to be loaded")

    assert reap_at_start(instance, database.engine, never, told.append) == []

    living = our_run(instance)
    with lease(database.engine, living):
        begun_s = time.monotonic()
        assert reap_at_start(instance, database.engine, lambda: ours, told.append) == []
        assert time.monotonic() - begun_s < 2
    assert told == []
    assert reap_at_start(instance, database.engine, lambda: ours, told.append) == [living]
    assert "gone" in told[0]


def test_a_killed_command_leaves_its_last_second_and_what_it_held_is_given_back(
    instance: dg.DagsterInstance,
    database: Database,
    tmp_path: Path,
    hurried: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """``kill -9`` of ``eval-pipeline run`` in the middle of its work."""
    with endpoint_with(tmp_path, 8, delay_s=0.2) as endpoint:
        command = eval_pipeline(*run_arguments("b"), environment={**endpoint.environment, "EVAL_CONCURRENCY": "3"})
        _wait_for(database, "completed", 2)
        # runs end together and begin together: this is neither
        _wait_for(database, "running", 3)
        time.sleep(0.5)
        killed_s = time.monotonic()
        os.killpg(command.pid, signal.SIGKILL)
        command.communicate(timeout=30)

        (dagster_run,) = instance.get_runs(dg.RunsFilter(statuses=[STATUS.STARTED]))
        assert instance.event_log_storage.get_concurrency_info(POOL).active_run_ids == {dagster_run.run_id}
        left = _rows(database, "running")
        assert left
        # every answer that came in more than a second before is in the trace
        calls = tables.model_calls
        with database.engine.connect() as connection:
            for task_id, run_id in left.items():
                known = connection.execute(select(calls.c.call_no).where(calls.c.run_id == run_id)).all()
                answered = [asked for asked in endpoint.solver.of(task_id) if asked.request.at_s + 0.3 < killed_s - 1.0]
                assert len(known) >= len(answered)

        monkeypatch.setenv("EVAL_SUITES_FILE", str(endpoint.suites_file))
        ours = Ours.of(build_defs(load_settings()).get_repository_def())
        assert look_twice(instance, database, ours).ended == [dagster_run.run_id]
        assert status_of(instance, dagster_run.run_id) is STATUS.FAILURE
        assert instance.event_log_storage.get_concurrency_info(POOL).active_run_ids == set()
        assert _rows(database, "running") == {}
        assert set(_rows(database, "crashed")) == set(left)
        assert all(check.passed for check in run_checks(database.engine))


def _rows(database: Database, status: str) -> dict[str, object]:
    runs = tables.runs
    with database.engine.connect() as connection:
        found = connection.execute(select(runs.c.task_id, runs.c.run_id).where(runs.c.status == status)).all()
    return dict(found)


def _wait_for(database: Database, status: str, runs: int) -> None:
    deadline = time.monotonic() + 90
    while len(_rows(database, status)) < runs:
        assert time.monotonic() < deadline
        time.sleep(0.05)
