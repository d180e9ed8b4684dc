"""The pool of Dagster that every step with model calls takes a slot of: how many such steps go on at once."""

from __future__ import annotations

from collections.abc import Collection

import dagster as dg

POOL = "llm"
"""One slot per step, however many runs it holds: two batches do not hammer one endpoint."""
SLOTS = 1
"""Where nobody has set another limit; the page *Deployment, Concurrency* and ``dagster instance concurrency`` do."""


def set_limit_once(instance: dg.DagsterInstance) -> None:
    """Give the pool its limit unless it has one. Without any, Dagster lets everything through."""
    storage = instance.event_log_storage
    if POOL not in storage.get_concurrency_keys():
        storage.set_concurrency_slots(POOL, SLOTS)


def free_slots_of_the_ended(instance: dg.DagsterInstance, but_of: Collection[str] = ()) -> None:
    """Free the slots of runs that have ended: a killed worker has not given its own back.

    ``but_of``: run ids whose slots stay, since something of theirs is still to be closed before others begin.
    """
    storage = instance.event_log_storage
    found = storage.get_concurrency_info(POOL)
    for run_id in (found.active_run_ids | found.pending_run_ids | found.assigned_run_ids).difference(but_of):
        run = instance.get_run_by_id(run_id)
        if run is None or run.is_finished:
            storage.free_concurrency_slots_for_run(run_id)
