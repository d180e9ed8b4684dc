"""Logs many materializations at once, which Dagster's own context does one by one, at five statements each."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Sequence

import dagster as dg

# a batch has no public way in: with one, Dagster's step writes what a step yields, and ours yields nothing
from dagster._core.events import DagsterEvent, DagsterEventType, StepMaterializationData


def log_materializations(
    context: dg.AssetExecutionContext, materializations: Sequence[dg.AssetMaterialization]
) -> None:
    """Store ``materializations`` as events of the running step: all of one asset, then all of the next.

    An asset that another is made from must come first, or Dagster takes the other for out of date.
    """
    step = context.op_execution_context.get_step_execution_context()

    def entry(materialization: dg.AssetMaterialization) -> dg.EventLogEntry:
        event = DagsterEvent(
            event_type_value=DagsterEventType.ASSET_MATERIALIZATION.value,
            job_name=step.job_name,
            step_handle=step.step.handle,
            node_handle=step.step.node_handle,
            step_kind_value=step.step.kind.value,
            logging_tags=step.event_tags,
            event_specific_data=StepMaterializationData(materialization),
            message="Materialized value.",
            pid=os.getpid(),
        )
        return dg.EventLogEntry(  # type: ignore[no-untyped-call]
            error_info=None,
            level=logging.DEBUG,
            user_message="Materialized value.",
            run_id=context.run_id,
            timestamp=time.time(),
            step_key=step.step.key,
            job_name=step.job_name,
            dagster_event=event,
        )

    by_asset: dict[dg.AssetKey, list[dg.EventLogEntry]] = {}
    for materialization in materializations:
        by_asset.setdefault(materialization.asset_key, []).append(entry(materialization))
    # the stock storage takes the last event of a batch for the latest of its asset: a batch has to be of one asset
    for entries in by_asset.values():
        context.instance.event_log_storage.store_event_batch(entries)
