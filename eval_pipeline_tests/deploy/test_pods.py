"""What holds a run together when its worker is on another host: time to begin, and a server that asks after it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import dagster as dg
import pytest
from dagster._core.storage.tags import DOCKER_IMAGE_TAG
from dagster._core.test_utils import create_run_for_test
from sqlalchemy import StaticPool, create_engine, text

from eval_pipeline.assets.kubernetes import pod_per_step_executor
from eval_pipeline.automation import reaper
from eval_pipeline.automation.jobs import runs_job_name
from eval_pipeline.automation.reaper import IMAGE_TAG, Ours, reap
from eval_pipeline.db.leases import lease
from eval_pipeline.definitions import build_defs
from eval_pipeline.settings import load_settings
from eval_pipeline_tests.conftest import Database
from eval_pipeline_tests.processes import start


def test_the_tag_of_a_run_in_a_container_is_the_one_that_dagster_sets() -> None:
    assert IMAGE_TAG == DOCKER_IMAGE_TAG


@pytest.mark.parametrize("age_s", [reaper.STARTING_S + 5, 600.0, reaper.IN_A_POD_S - 5])
def test_a_pod_that_waits_for_its_node_and_image_is_not_taken_for_dead(
    instance: dg.DagsterInstance, database: Database, age_s: float
) -> None:
    ours = Ours(frozenset(), frozenset({runs_job_name("sample")}))
    in_a_pod, here = (
        create_run_for_test(
            instance, job_name=runs_job_name("sample"), status=dg.DagsterRunStatus.STARTING, tags=tags
        ).run_id
        for tags in ({IMAGE_TAG: "eval-pipeline:0.1.0"}, {})
    )
    changed = datetime.now(UTC).replace(tzinfo=None) - timedelta(seconds=age_s)
    with database.engine.begin() as connection:
        connection.execute(text("update dagster.runs set update_timestamp = :changed"), {"changed": changed})
    assert reap(instance, database.engine, ours, {in_a_pod: 0.0, here: 0.0}).ended == [here]


def test_a_pod_that_never_comes_is_given_up_at_last(instance: dg.DagsterInstance, database: Database) -> None:
    ours = Ours(frozenset(), frozenset({runs_job_name("sample")}))
    run = create_run_for_test(
        instance, job_name=runs_job_name("sample"), status=dg.DagsterRunStatus.STARTING, tags={IMAGE_TAG: "x"}
    )
    changed = datetime.now(UTC).replace(tzinfo=None) - timedelta(seconds=reaper.IN_A_POD_S + 5)
    with database.engine.begin() as connection:
        connection.execute(text("update dagster.runs set update_timestamp = :changed"), {"changed": changed})
    assert reap(instance, database.engine, ours, {run.run_id: 0.0}).ended == [run.run_id]


def test_the_server_asks_after_the_holder_of_a_lease_so_that_a_lost_host_does_not_keep_it(database: Database) -> None:
    """Without it a session of a host that lost its power stands for two hours, and its run with it."""
    # one connection for everybody: what the holder has set for its session can be seen from here
    shared = create_engine(database.engine.url, poolclass=StaticPool, isolation_level="AUTOCOMMIT")
    asks = text("select name, source from pg_settings where name like 'tcp\\_%'")
    with shared.connect() as connection:
        assert {row.source for row in connection.execute(asks)} == {"default"}
    with lease(shared, "some run"), shared.connect() as connection:
        found = {row.name: row.source for row in connection.execute(asks)}
    shared.dispose()
    assert found == dict.fromkeys(
        ("tcp_keepalives_count", "tcp_keepalives_idle", "tcp_keepalives_interval", "tcp_user_timeout"), "session"
    )


def test_the_kubernetes_definitions_are_the_usual_ones_with_another_executor(database: Database) -> None:
    usual = build_defs(load_settings())
    other = build_defs(load_settings(), executor=pod_per_step_executor)
    assert (usual.executor, other.executor) == (dg.in_process_executor, pod_per_step_executor)
    names = [
        {job.name: job.executor_def.name for job in defs.get_repository_def().get_all_jobs()} for defs in (usual, other)
    ]
    assert names[0].keys() == names[1].keys()
    assert set(names[0].values()) == {"in_process"}
    assert set(names[1].values()) == {"k8s"}


def test_the_usual_definitions_do_not_import_kubernetes(database: Database) -> None:
    program = (
        "import sys, eval_pipeline.definitions, eval_pipeline.launcher\n"
        "print(sorted(name for name in sys.modules if name.partition('.')[0] in ('dagster_k8s', 'kubernetes')))"
    )
    out, err = start("-c", program).communicate(timeout=120)
    assert out.strip() == "[]", err
