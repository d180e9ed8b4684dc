"""Every partitions definition and asset key of a suite's family, once.

Keys are registered in the suite's order, tasks outside and attempts inside, because Dagster runs contiguous ranges in
the order of registration. No statically partitioned asset may feed ``runs``: Dagster would map its keys by identity and
break backfills.
"""

from __future__ import annotations

from dataclasses import dataclass

import dagster as dg

BATCH_TEAM = "batch_team"
TASK_ATTEMPT = "task_attempt"
TEAMS_KEY = dg.AssetKey(["teams"])


@dataclass(frozen=True)
class Family:
    """The keys and partitions of one suite."""

    suite: str

    def key(self, name: str) -> dg.AssetKey:
        return dg.AssetKey([self.suite, name])

    @property
    def batch_team_name(self) -> str:
        """Under which Dagster keeps the keys of :attr:`batch_team`."""
        return f"{self.suite}__{BATCH_TEAM}"

    @property
    def task_attempt_name(self) -> str:
        """Under which Dagster keeps the keys of :attr:`task_attempt`."""
        return f"{self.suite}__{TASK_ATTEMPT}"

    @property
    def comparison(self) -> dg.DynamicPartitionsDefinition:
        """Keys such as ``first@v4-prompt-fix>first@v5-multitool``."""
        return dg.DynamicPartitionsDefinition(name=self.comparison_name)

    @property
    def comparison_name(self) -> str:
        """Under which Dagster keeps the keys of :attr:`comparison`."""
        return f"{self.suite}__comparison"

    @property
    def batch_team(self) -> dg.DynamicPartitionsDefinition:
        """Keys such as ``first@v5-multitool``."""
        return dg.DynamicPartitionsDefinition(name=self.batch_team_name)

    @property
    def task_attempt(self) -> dg.DynamicPartitionsDefinition:
        """Keys such as ``sample-cafe-food-total#1``."""
        return dg.DynamicPartitionsDefinition(name=self.task_attempt_name)

    @property
    def cells(self) -> dg.MultiPartitionsDefinition:
        return dg.MultiPartitionsDefinition({BATCH_TEAM: self.batch_team, TASK_ATTEMPT: self.task_attempt})

    def cell_key(self, batch_team: str, task_attempt: str) -> dg.MultiPartitionKey:
        return dg.MultiPartitionKey({BATCH_TEAM: batch_team, TASK_ATTEMPT: task_attempt})
