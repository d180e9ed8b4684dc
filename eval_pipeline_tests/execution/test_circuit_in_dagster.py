"""Several Dagster runs of one launch share its circuit: the second does not begin where the first has stopped."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.execution.backfill import BulkActionStatus, PartitionBackfill

from eval_pipeline.assets.partitions import Family
from eval_pipeline.assets.ranges import range_tags
from eval_pipeline.assets.runs import asked_tag
from eval_pipeline.automation.jobs import runs_job_name
from eval_pipeline.definitions import build_defs
from eval_pipeline.settings import load_settings
from eval_pipeline_tests.conftest import Database
from eval_pipeline_tests.endpoint_suite import SUITE, TEAM, Endpoint, endpoint_with, run_arguments, task_ids
from eval_pipeline_tests.execution.test_circuit import QUOTA
from eval_pipeline_tests.test_cli import command

TASKS = 12


@pytest.fixture
def refusing(database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    with endpoint_with(tmp_path, TASKS) as endpoint:
        for name, value in endpoint.environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("EVAL_CONCURRENCY", "1")
        endpoint.solver.meddler = lambda _task, _request: QUOTA
        yield endpoint


def launch(instance: dg.DagsterInstance, first: int, last: int, **tags: str) -> str | None:
    """One Dagster run over a part of the tasks; why it failed."""
    family, keys = Family(SUITE), [f"{name}#1" for name in task_ids(TASKS)]
    ends = (str(family.cell_key(f"b@{TEAM}", keys[place])) for place in (first, last))
    outcome = (
        build_defs(load_settings())
        .resolve_job_def(runs_job_name(SUITE))
        .execute_in_process(
            instance=instance,
            tags=range_tags(*ends) | {name.replace("__", "/"): value for name, value in tags.items()},
            run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
            raise_on_error=False,
        )
    )
    failures = [event.step_failure_data.user_failure_data for event in outcome.all_events if event.is_step_failure]
    return failures[0].description if failures and failures[0] else None


@pytest.fixture
def keys(instance: dg.DagsterInstance, refusing: Endpoint) -> None:
    instance.add_dynamic_partitions(Family(SUITE).task_attempt_name, [f"{name}#1" for name in task_ids(TASKS)])
    instance.add_dynamic_partitions(Family(SUITE).batch_team_name, [f"b@{TEAM}"])


def test_the_runs_of_a_backfill_leave_the_circuit_open_and_say_so_in_one_line(
    instance: dg.DagsterInstance, refusing: Endpoint, keys: None
) -> None:
    instance.add_backfill(
        PartitionBackfill(
            backfill_id="bf",
            status=BulkActionStatus.REQUESTED,
            from_failure=False,
            tags={},
            backfill_timestamp=datetime.now(UTC).timestamp(),
        )
    )
    for first, last in ((0, 6), (7, 9), (10, 11)):
        said = launch(instance, first, last, dagster__backfill="bf")
        assert said is not None
        assert "\n" not in said
        assert "quota" in said
        assert "launch the batch again" in said
    assert len(refusing.solver.asked) == 5

    # one by hand closes it
    refusing.solver.meddler = None
    assert launch(instance, 0, 11) is None


def test_what_is_tagged_as_asked_for_together_is_one_launch(
    instance: dg.DagsterInstance, refusing: Endpoint, keys: None
) -> None:
    (name, moment), *_ = asked_tag(datetime.now(UTC)).items()
    for first, last in ((0, 6), (7, 9)):
        launch(instance, first, last, **{name.replace("/", "__"): moment})
    assert len(refusing.solver.asked) == 5
    # a tag that is no date is none
    launch(instance, 10, 11, **{name.replace("/", "__"): "yesterday"})
    assert len(refusing.solver.asked) > 5


def test_a_command_for_several_teams_stops_with_the_first_that_is_refused(
    instance: dg.DagsterInstance, refusing: Endpoint
) -> None:
    outcome = command(*run_arguments("b", "--team", "v2-attach-path"))
    assert outcome.code == 1
    assert len(refusing.solver.asked) == 5
    assert f"team=v2-attach-path planned={TASKS} started=0 completed=0 crashed=0" in outcome.out
