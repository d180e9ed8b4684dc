"""How a launch in this process is watched from outside the step: the command line listens, the UI does not."""

from __future__ import annotations

from typing import Protocol

from eval_pipeline.execution.cells import CellResult
from eval_pipeline.execution.run_many import LaunchPlan, LaunchResult
from eval_pipeline.ids import BatchTeam, TaskAttempt

LISTENER = "launch_listener"
"""The resource's key."""


class LaunchListener(Protocol):
    def planned(self, batch_team: BatchTeam, plan: LaunchPlan) -> None: ...

    def begun(self, cell: TaskAttempt) -> None: ...

    def ended(self, result: CellResult) -> None: ...

    def finished(self, result: LaunchResult) -> None: ...


class NobodyListens:
    """The listener of a code location: Dagster's own events are all that is wanted there."""

    def planned(self, batch_team: BatchTeam, plan: LaunchPlan) -> None:
        return

    def begun(self, cell: TaskAttempt) -> None:
        return

    def ended(self, result: CellResult) -> None:
        return

    def finished(self, result: LaunchResult) -> None:
        return
