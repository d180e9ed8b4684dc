"""Our code location under Dagster's Kubernetes run launcher and executor, as deploy/helm/values.yaml sets them up.

The Jobs are those that Dagster really asks a cluster for, and their commands are really executed; see ``cluster.py``.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml
from sqlalchemy import make_url, select

from eval_pipeline.automation import reaper
from eval_pipeline.automation.jobs import runs_job_name
from eval_pipeline.automation.reaper import Ours, reap
from eval_pipeline.db import tables
from eval_pipeline_tests import processes
from eval_pipeline_tests.conftest import Database
from eval_pipeline_tests.deploy.chart import RELEASE, Values, image, instance_config, our_values
from eval_pipeline_tests.deploy.cluster import RUN, STEP, Cluster, cluster
from eval_pipeline_tests.endpoint_suite import SUITE, TEAM, endpoint_with, task_ids

CANARIES = {"EVAL_LLM_API_KEY": "canary-key-5f1c", "DAGSTER_PG_PASSWORD": "canary-password-77ab"}
BATCH = f"pods@{TEAM}"
CELLS = 3

pytestmark = pytest.mark.slow


@dataclass
class Deployment:
    """A release of the chart: its values, its cluster, and the environment of a process of it."""

    values: Values
    cluster: Cluster
    environment: Mapping[str, str]

    def launch(self, module: str = "eval_pipeline.definitions") -> None:
        """Launch all cells of the batch as a range, in the way of webserver and daemon: the launcher decides where."""
        first, last = (f"{BATCH}|{name}#1" for name in (task_ids(CELLS)[0], task_ids(CELLS)[-1]))
        tags = {"dagster/asset_partition_range_start": first, "dagster/asset_partition_range_end": last}
        arguments = ("-m", module, "-j", runs_job_name(SUITE), "--tags", json.dumps(tags))
        self.run("-m", "dagster", "job", "launch", *arguments)

    def run(self, *arguments: str, **environment: str) -> str:
        process = processes.start(*arguments, environment={**self.environment, **environment})
        out, err = process.communicate(timeout=180)
        assert process.returncode == 0, out + err
        return out


@contextmanager
def deployed(tmp_path: Path, database: Database, **pod_spec: object) -> Iterator[Deployment]:
    """The chart's release on the test's PostgreSQL; ``pod_spec`` is laid over that of runs."""
    home = tmp_path / "dagster_home"
    home.mkdir()
    url = make_url(database.dsn)
    values = our_values()
    values["global"]["dagsterHome"] = str(home)
    # the test's server has a socket and no port of the network
    values["postgresql"] |= {"postgresqlUsername": url.username, "postgresqlDatabase": url.database}
    values["postgresql"]["postgresqlParams"]["host"] = url.query["host"]
    values["postgresql"]["service"]["port"] = int(str(url.query["port"]))
    launcher = values["runLauncher"]["config"]["k8sRunLauncher"]
    launcher["runK8sConfig"]["podSpecConfig"] |= pod_spec
    with endpoint_with(tmp_path, CELLS) as endpoint:
        objects = {
            "eval-pipeline": {
                **endpoint.environment,
                "EVAL_PG_DSN": database.dsn,
                "EVAL_LLM_API_KEY": CANARIES["EVAL_LLM_API_KEY"],
                "postgresql-password": CANARIES["DAGSTER_PG_PASSWORD"],
            }
        }
        with cluster(tmp_path, objects) as made:
            launcher |= {"loadInclusterConfig": False, "kubeconfigFile": str(made.kubeconfig)}
            config = instance_config(values)
            # without a daemon nobody would take it from the queue
            config["run_coordinator"] = {"module": "dagster.core.run_coordinator", "class": "DefaultRunCoordinator"}
            (home / "dagster.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
            environment = {
                **endpoint.environment,
                **CANARIES,
                "EVAL_PG_DSN": database.dsn,
                "DAGSTER_HOME": str(home),
                "DAGSTER_CURRENT_IMAGE": image(values),
            }
            found = Deployment(values, made, environment)
            # through our own storage: the chart's parameters must lead to the same schema
            load = ("-m", "eval_pipeline.cli", "load", "--suite", SUITE, "--batch", "pods", "--team", TEAM)
            found.run(*load, DAGSTER_HOME=os.environ["DAGSTER_HOME"])
            yield found


def troubles(instance: dg.DagsterInstance, run_id: str) -> list[str]:
    """What Dagster has to say of a run that failed."""
    events = instance.all_logs(run_id)
    return [event.message for event in events if event.level == logging.ERROR] or [events[-1].message]


def completed(database: Database) -> list[str]:
    runs = tables.runs
    with database.engine.connect() as connection:
        return list(connection.execute(select(runs.c.task_id).where(runs.c.status == "completed")).scalars())


def check_container(job: dict[str, Any], values: Values) -> None:
    """What every pod that executes something of ours must have."""
    spec = job["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    launcher = values["runLauncher"]["config"]["k8sRunLauncher"]
    assert container["image"] == image(values)
    assert container["resources"] == launcher["resources"]
    assert container["securityContext"] == launcher["securityContext"]
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert (spec["restartPolicy"], job["spec"]["backoffLimit"]) == ("Never", 0)
    assert spec["serviceAccountName"] == RELEASE
    assert spec["terminationGracePeriodSeconds"] == 60
    assert job["spec"]["ttlSecondsAfterFinished"] == 86400
    assert job["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/part-of"] == "eval-pipeline"
    mounted = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert mounted["state"] == "/opt/dagster/dagster_home/.eval_pipeline"
    assert mounted["data"] == "/data"
    assert set(mounted) == {volume["name"] for volume in spec["volumes"]}
    secret = {each["name"]: each["valueFrom"]["secretKeyRef"] for each in container["env"] if "valueFrom" in each}
    assert {name: (key["name"], key["key"]) for name, key in secret.items()} == {
        "DAGSTER_PG_PASSWORD": ("eval-pipeline", "postgresql-password"),
        "EVAL_PG_DSN": ("eval-pipeline", "EVAL_PG_DSN"),
        "EVAL_LLM_API_KEY": ("eval-pipeline", "EVAL_LLM_API_KEY"),
    }
    assert container["envFrom"] == [{"configMapRef": {"name": "eval-pipeline"}}]
    written = json.dumps(job)
    for value in CANARIES.values():
        assert value not in written


def test_a_dagster_run_is_a_pod_that_runs_its_range_of_cells(
    instance: dg.DagsterInstance, database: Database, tmp_path: Path
) -> None:
    with deployed(tmp_path, database) as found:
        found.launch()
        (job,) = found.cluster.of(RUN)
        check_container(job, found.values)
        assert job["spec"]["template"]["spec"]["automountServiceAccountToken"] is False
        (container,) = job["spec"]["template"]["spec"]["containers"]
        assert container["args"][:3] == ["dagster", "api", "execute_run"]
        said = found.cluster.ended(RUN)
        (run,) = instance.get_runs(dg.RunsFilter(tags={reaper.IMAGE_TAG: image(found.values)}))
        assert run.status is dg.DagsterRunStatus.SUCCESS, (said, troubles(instance, run.run_id))
        assert run.run_id in container["args"][3]
        assert run.run_id in job["metadata"]["labels"]["dagster/run-id"]
        assert sorted(completed(database)) == task_ids(CELLS)
        assert found.cluster.of(STEP) == []


def test_under_the_kubernetes_executor_a_step_is_a_pod_and_its_run_is_alive_while_it_waits_for_one(
    instance: dg.DagsterInstance, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reaper, "YOUNG_S", 0.0)
    monkeypatch.setattr(reaper, "SURE_AFTER_S", 1.0)
    ours = Ours(frozenset(), frozenset({runs_job_name(SUITE)}))
    with deployed(tmp_path, database, automountServiceAccountToken=True) as found:
        found.launch("eval_pipeline.definitions_k8s")
        deadline = time.monotonic() + 120
        while not found.cluster.of(STEP):
            assert time.monotonic() < deadline, "no step was launched"
            time.sleep(0.2)
        (run,) = instance.get_runs(dg.RunsFilter(job_name=runs_job_name(SUITE)))
        assert run.status is dg.DagsterRunStatus.STARTED
        # nobody executes the step yet
        for _ in range(3):
            look = reap(instance, database.engine, ours, {run.run_id: 0.0})
            assert (look.ended, look.suspects) == ([], {})
            time.sleep(0.3)
        found.cluster.nodes_are_free.set()
        said = found.cluster.ended(RUN)
        ended = instance.get_run_by_id(run.run_id)
        assert ended is not None
        assert ended.status is dg.DagsterRunStatus.SUCCESS, (said, troubles(instance, run.run_id))
        (step,) = found.cluster.of(STEP)
        check_container(step, found.values)
        (container,) = step["spec"]["template"]["spec"]["containers"]
        assert container["args"][:3] == ["dagster", "api", "execute_step"]
        assert sorted(completed(database)) == task_ids(CELLS)
