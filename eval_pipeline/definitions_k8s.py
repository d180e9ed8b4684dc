"""The same definitions for Dagster's Kubernetes executor: every step in a pod of its own.

``-m eval_pipeline.definitions_k8s`` in place of ``-m eval_pipeline.definitions``; needs the extra ``k8s``. Under the
Kubernetes run launcher alone, a Dagster run is a pod already, and the usual module is right.
"""

from __future__ import annotations

from eval_pipeline.assets.kubernetes import pod_per_step_executor
from eval_pipeline.definitions import build_defs
from eval_pipeline.settings import load_settings

defs = build_defs(load_settings(), executor=pod_per_step_executor)
