"""Dagster's Kubernetes executor, with a sign of life for the process that waits for its pods.

Steps in this process need none of it: their lease is a resource. Which executor a code location has is decided in the
module that makes its definitions. Needs the extra ``k8s``.
"""

from __future__ import annotations

from collections.abc import Iterator

import dagster as dg
from dagster._core.definitions.executor_definition import multiple_process_executor_requirements
from dagster._core.execution.context.system import PlanOrchestrationContext
from dagster._core.execution.plan.plan import ExecutionPlan
from dagster._core.execution.retries import RetryMode
from dagster._core.execution.step_dependency_config import StepDependencyConfig
from dagster_k8s import k8s_job_executor

from eval_pipeline.assets.common import database
from eval_pipeline.db.leases import lease
from eval_pipeline.settings import load_settings


class _Leased(dg.Executor):
    """Executes as ``inner`` does, and holds the lease of the Dagster run while it does.

    A step's pod holds the lease, too, but only while it runs: before it, between two steps and in the queue for a slot
    of the pool nobody else would, and the run would be taken for dead.
    """

    def __init__(self, inner: dg.Executor) -> None:
        self._inner = inner

    @property
    def retries(self) -> RetryMode:
        return self._inner.retries

    @property
    def step_dependency_config(self) -> StepDependencyConfig:
        return self._inner.step_dependency_config

    def execute(
        self, plan_context: PlanOrchestrationContext, execution_plan: ExecutionPlan
    ) -> Iterator[dg.DagsterEvent]:
        with lease(database(load_settings()), plan_context.run_id):
            yield from self._inner.execute(plan_context, execution_plan)


def _leased_pods(init_context: dg.InitExecutorContext) -> dg.Executor:
    creation = k8s_job_executor.executor_creation_fn
    if creation is None:
        raise dg.DagsterInvariantViolationError("dagster_k8s.k8s_job_executor makes no executor")
    return _Leased(creation(init_context))


pod_per_step_executor = dg.ExecutorDefinition(
    name="k8s",
    config_schema=k8s_job_executor.config_schema.as_field(),
    requirements=multiple_process_executor_requirements(),
    executor_creation_fn=_leased_pods,
    description="A Kubernetes Job for each step; takes the configuration of dagster_k8s.k8s_job_executor.",
)
"""What a code location is given whose steps are to run in pods of their own."""
