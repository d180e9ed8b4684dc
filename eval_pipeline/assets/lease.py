"""The lease as a Dagster resource: every asset needs it, so that every run of ours shows that its process lives.

A resource and not a step's body: a step that waits for a pool slot has not entered its body yet.
"""

# no postponed annotations here: Dagster reads a resource's fields at import
from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg

from eval_pipeline.assets.common import database
from eval_pipeline.db.leases import lease
from eval_pipeline.settings import load_settings

LEASE = "run_lease"
"""The resource's key."""
LAUNCHED_BY_TAG = "eval/launched_by"
"""On Dagster runs that the command line launches: host and process, for people, and a sign that the run has a lease."""


class RunLease(dg.ConfigurableResource):  # type: ignore[type-arg]
    """Holds the lease of the Dagster run while the run's process works."""

    @contextmanager
    def yield_for_execution(self, context: dg.InitResourceContext) -> Iterator["RunLease"]:
        if context.run_id is None:
            yield self
            return
        with lease(database(load_settings()), context.run_id):
            yield self
