"""The Helm values say what the chart takes, hold no secret, and lead all parts to one image, database and volume."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes.client
import pytest
import yaml
from dagster_k8s.models import k8s_model_from_dict, k8s_snake_case_dict

from eval_pipeline.settings import Settings, env_name
from eval_pipeline_tests.deploy.chart import HELM, ROOT, Values, complaints, image, our_values

CHART = os.environ.get("EVAL_TEST_CHART", "")


def test_the_chart_takes_our_values() -> None:
    assert complaints(our_values()) == []


def _set(values: Values, place: str, value: object) -> None:
    *folders, name = place.split(".")
    found: Any = values
    for folder in folders:
        found = found[int(folder) if folder.isdigit() else folder]
    found[name] = value


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        ("dagsterDemon", {}, "dagsterDemon"),
        ("runLauncher.type", "KubernetesRunLauncher", "is not one of"),
        ("runLauncher.config.k8sRunLauncher.envFrom", [], "envFrom"),
        ("runLauncher.config.k8sRunLauncher.runK8sConfig.container_config", {}, "container_config"),
        ("dagsterDaemon.runCoordinator.config.queuedRunCoordinator.maxConcurrentRuns", "8", "is not of type"),
        ("dagsterDaemon.runMonitoring.startTimeout", 900, "startTimeout"),
        ("dagsterWebserver.resources", {"request": {"cpu": "1"}}, "V1ResourceRequirements"),
        ("dagsterWebserver.service.port", "3000", "is not of type"),
        ("dagster-user-deployments.deployments.0.readinessProbe", {"periodSeconds": 20}, "'enabled' is a required"),
        ("dagster-user-deployments.deployments.0.volumes", [{"name": "x", "pvc": {}}], "V1Volume"),
        ("dagster-user-deployments.deployments.0.image", {"repository": "x", "tag": "1"}, "'pullPolicy' is a required"),
        ("postgresql.service.port", "5432", "is not of type"),
    ],
)
def test_what_the_chart_does_not_take_is_seen(place: str, value: object, said: str) -> None:
    values = our_values()
    _set(values, place, value)
    (complaint,) = complaints(values)
    assert said in complaint


def _merged(onto: object, values: object) -> object:
    """As Helm lays values over those of a chart."""
    if isinstance(onto, dict) and isinstance(values, dict):
        return {**onto, **{name: _merged(onto.get(name), value) for name, value in values.items()}}
    return values


@pytest.mark.skipif(not CHART, reason="EVAL_TEST_CHART names no folder with the chart of dagster-io/dagster")
def test_the_charts_own_schema_takes_our_values() -> None:
    schema = json.loads(Path(CHART, "values.schema.json").read_text(encoding="utf-8"))
    defaults = yaml.safe_load(Path(CHART, "values.yaml").read_text(encoding="utf-8"))
    jsonschema.validate(_merged(defaults, our_values()), schema)
    if helm := shutil.which("helm"):
        subprocess.run([helm, "template", "dagster", CHART, "--values", str(HELM / "values.yaml")], check=True)


def _leaves(value: object, at: str = "") -> list[tuple[str, object]]:
    if isinstance(value, dict):
        return [leaf for name, inner in value.items() for leaf in _leaves(inner, f"{at}.{name}")]
    if isinstance(value, list):
        return [leaf for number, inner in enumerate(value) for leaf in _leaves(inner, f"{at}.{number}")]
    return [(at, value)]


def test_no_secret_is_in_the_values() -> None:
    suspicious = ("password", "apikey", "api_key", "token", "dsn")
    found = {
        at: value
        for at, value in _leaves(our_values())
        if any(word in at.rpartition(".")[2].lower() for word in suspicious) and not isinstance(value, bool)
    }
    assert found == {".postgresql.postgresqlPassword": ""}
    environment = our_values()["dagster-user-deployments"]["deployments"][0]["env"]
    assert {each["name"] for each in environment} == {"EVAL_PG_DSN", "EVAL_LLM_API_KEY"}
    assert all(set(each) == {"name", "valueFrom"} for each in environment)


def test_a_pod_without_the_address_of_the_database_does_not_start() -> None:
    launcher = our_values()["runLauncher"]["config"]["k8sRunLauncher"]["runK8sConfig"]["containerConfig"]
    code = our_values()["dagster-user-deployments"]["deployments"][0]
    for environment in (launcher["env"], code["env"]):
        address = next(each for each in environment if each["name"] == "EVAL_PG_DSN")
        assert not address["valueFrom"]["secretKeyRef"].get("optional", False)


def test_all_parts_have_one_image_and_the_user_that_it_has() -> None:
    values = our_values()
    code = values["dagster-user-deployments"]["deployments"][0]
    assert code["image"] == values["dagsterDaemon"]["image"] == values["dagsterWebserver"]["image"]
    pods = [code, values["dagsterDaemon"], values["dagsterWebserver"]]
    contexts = [pod["podSecurityContext"] for pod in pods]
    contexts.append(
        values["runLauncher"]["config"]["k8sRunLauncher"]["runK8sConfig"]["podSpecConfig"]["securityContext"]
    )
    assert all(context == contexts[0] for context in contexts)
    user = contexts[0]["runAsUser"]
    assert f"USER {user}:{contexts[0]['runAsGroup']}" in (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
    assert user == contexts[0]["fsGroup"] != 0


def test_every_claim_is_in_the_volumes_file_and_the_home_is_the_images() -> None:
    claims = {
        document["metadata"]["name"]
        for document in yaml.safe_load_all((HELM / "volumes.yaml").read_text(encoding="utf-8"))
    }
    named = {value for at, value in _leaves(our_values()) if at.endswith(".claimName")}
    assert named == claims
    home = our_values()["global"]["dagsterHome"]
    assert f"DAGSTER_HOME={home}" in (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
    mounts = {value for at, value in _leaves(our_values()) if at.endswith(".mountPath")}
    assert mounts == {f"{home}/.eval_pipeline", f"{home}/.eval_pipeline/stage", "/data"}


def test_the_job_before_the_chart_does_what_compose_does_and_looks_like_a_run() -> None:
    job = yaml.safe_load((HELM / "init.yaml").read_text(encoding="utf-8"))
    k8s_model_from_dict(kubernetes.client.V1Job, k8s_snake_case_dict(kubernetes.client.V1Job, job))
    pod = job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    values = our_values()
    launcher = values["runLauncher"]["config"]["k8sRunLauncher"]
    compose = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text(encoding="utf-8"))
    assert container["args"] == compose["services"]["init"]["command"]
    assert container["image"] == image(values)
    assert container["securityContext"] == launcher["securityContext"]
    assert container["env"][0] in launcher["runK8sConfig"]["containerConfig"]["env"]
    assert pod["securityContext"].items() <= launcher["runK8sConfig"]["podSpecConfig"]["securityContext"].items()


def test_the_volumes_are_objects_of_kubernetes() -> None:
    kind = kubernetes.client.V1PersistentVolumeClaim
    for document in yaml.safe_load_all((HELM / "volumes.yaml").read_text(encoding="utf-8")):
        k8s_model_from_dict(kind, k8s_snake_case_dict(kind, document))


def _names(path: Path, take: Callable[[str], str]) -> set[str]:
    lines = (take(line).strip() for line in path.read_text(encoding="utf-8").splitlines())
    return {line.partition("=")[0] for line in lines if line.startswith("EVAL_")}


def test_every_setting_in_the_example_is_one_and_no_secret() -> None:
    names = _names(HELM / "settings.env", lambda line: line.removeprefix("# "))
    known = {env_name(field) for field in Settings.model_fields}
    assert names
    assert names <= known - {"EVAL_PG_DSN", "EVAL_LLM_API_KEY"}
