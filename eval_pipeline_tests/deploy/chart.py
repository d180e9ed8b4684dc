"""What Dagster's Helm chart makes of our values, as far as tests need it: its ``dagster.yaml``, and its rules.

Written down from the chart's templates, which no registry that the tests may ask has. Where a copy of the chart is, set
``EVAL_TEST_CHART`` to its folder, and the values are held against the chart's own schema besides.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes.client
import yaml
from dagster_k8s.models import k8s_model_from_dict, k8s_snake_case_dict
from jsonschema.protocols import Validator

ROOT = Path(__file__).parents[2]
HELM = ROOT / "deploy" / "helm"
SCHEMA = Path(__file__).with_name("chart_values.schema.yaml")
RELEASE = "dagster"
NAMESPACE = "evaluation"

Values = dict[str, Any]


def our_values() -> Values:
    found: Values = yaml.safe_load((HELM / "values.yaml").read_text(encoding="utf-8"))
    # anchors share what they name: a test that changes one place would change others
    return copy.deepcopy(found)


def _kubernetes(
    validator: Validator, model: str, instance: Mapping[str, Any], schema: object
) -> Iterator[jsonschema.ValidationError]:
    del validator, schema
    kind = getattr(kubernetes.client, model)
    try:
        k8s_model_from_dict(kind, k8s_snake_case_dict(kind, instance))
    except Exception as error:  # the library raises whatever is at hand
        yield jsonschema.ValidationError(f"is no {model}: {error}")


def complaints(values: Mapping[str, Any]) -> list[str]:
    """What is wrong with ``values``, each with its place; empty for nothing."""
    schema = yaml.safe_load(SCHEMA.read_text(encoding="utf-8"))
    strict = jsonschema.validators.extend(jsonschema.Draft202012Validator, {"x-kubernetes": _kubernetes})
    return [f"{error.json_path}: {error.message}" for error in strict(schema).iter_errors(values)]


def image(values: Values) -> str:
    """The image of the code location, as its deployment tells Dagster."""
    found = values["dagster-user-deployments"]["deployments"][0]["image"]
    return f"{found['repository']}:{found['tag']}"


def instance_config(values: Values) -> dict[str, Any]:
    """The ``dagster.yaml`` that the chart mounts into webserver, daemon and the pods of runs."""
    postgres, daemon = values["postgresql"], values["dagsterDaemon"]
    monitoring = daemon["runMonitoring"]
    storage = {
        "postgres_db": {
            "username": postgres["postgresqlUsername"],
            "password": {"env": "DAGSTER_PG_PASSWORD"},
            "hostname": postgres["postgresqlHost"],
            "db_name": postgres["postgresqlDatabase"],
            "port": postgres["service"]["port"],
            "params": postgres["postgresqlParams"],
            "scheme": postgres["postgresqlScheme"],
        }
    }
    queue = daemon["runCoordinator"]["config"]["queuedRunCoordinator"]
    logs = values["computeLogManager"]["config"]["customComputeLogManager"]
    return {
        "scheduler": {"module": "dagster.core.scheduler", "class": "DagsterDaemonScheduler"},
        "run_storage": {"module": "dagster_postgres.run_storage", "class": "PostgresRunStorage", "config": storage},
        "event_log_storage": {
            "module": "dagster_postgres.event_log",
            "class": "PostgresEventLogStorage",
            "config": storage,
        },
        "schedule_storage": {
            "module": "dagster_postgres.schedule_storage",
            "class": "PostgresScheduleStorage",
            "config": storage,
        },
        "run_launcher": {"module": "dagster_k8s", "class": "K8sRunLauncher", "config": _run_launcher(values)},
        "run_coordinator": {
            "module": "dagster.core.run_coordinator",
            "class": "QueuedRunCoordinator",
            "config": {
                "max_concurrent_runs": queue["maxConcurrentRuns"],
                "dequeue_use_threads": queue["dequeueUseThreads"],
                "dequeue_num_workers": queue["dequeueNumWorkers"],
            },
        },
        "compute_logs": {"module": logs["module"], "class": logs["class"], "config": logs["config"]},
        "run_monitoring": {
            "enabled": monitoring["enabled"],
            "start_timeout_seconds": monitoring["startTimeoutSeconds"],
            "cancel_timeout_seconds": monitoring["cancelTimeoutSeconds"],
            "max_resume_run_attempts": monitoring["maxResumeRunAttempts"],
            "poll_interval_seconds": monitoring["pollIntervalSeconds"],
            "free_slots_after_run_end_seconds": monitoring["freeSlotsAfterRunEndSeconds"],
        },
        "sensors": {"use_threads": True, "num_workers": daemon["sensors"]["numWorkers"]},
        "telemetry": values["telemetry"],
        **values["additionalInstanceConfig"],
    }


def _run_launcher(values: Values) -> dict[str, Any]:
    launcher = values["runLauncher"]["config"]["k8sRunLauncher"]
    given = {
        "load_incluster_config": launcher["loadInclusterConfig"],
        "kubeconfig_file": launcher.get("kubeconfigFile"),
        "job_namespace": NAMESPACE,
        "image_pull_policy": launcher["imagePullPolicy"],
        "service_account_name": RELEASE,
        "dagster_home": values["global"]["dagsterHome"],
        "instance_config_map": f"{RELEASE}-instance",
        "postgres_password_secret": values["global"]["postgresqlSecretName"],
        "env_config_maps": [source["name"] for source in launcher["envConfigMaps"]],
        "volume_mounts": launcher["volumeMounts"],
        "volumes": launcher["volumes"],
        "labels": launcher["labels"],
        "resources": launcher["resources"],
        "security_context": launcher["securityContext"],
        "run_k8s_config": {
            "container_config": launcher["runK8sConfig"]["containerConfig"],
            "pod_spec_config": launcher["runK8sConfig"]["podSpecConfig"],
            "job_spec_config": launcher["runK8sConfig"]["jobSpecConfig"],
        },
    }
    return {name: value for name, value in given.items() if value is not None}
