"""Which model answers: the scripted one or an endpoint, chosen by the settings.

:class:`Models` lives as long as the event loop that runs a launch; each run gets a :class:`RunModels` of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from autogen_core.models import ModelInfo

from eval_pipeline.agents.completion import CompletionSource
from eval_pipeline.agents.gate import EndpointGate
from eval_pipeline.agents.scripted import ScriptedSource
from eval_pipeline.agents.tool_adapter import ToolLedger
from eval_pipeline.sample_data.scripts import load_script
from eval_pipeline.settings import Settings

if TYPE_CHECKING:
    from eval_pipeline.agents.endpoint import EndpointPool

_SCRIPTED_INFO = ModelInfo(
    vision=False, function_calling=True, json_output=True, family="unknown", structured_output=False
)


@dataclass(frozen=True, slots=True)
class RunModels:
    """What one run asks: ``source`` makes its source of answers, given the run's tool ledger.

    Every request of the run goes through ``gate``.
    """

    info: ModelInfo
    source: Callable[[ToolLedger], CompletionSource]
    gate: EndpointGate


class Models:
    """Makes the models of runs. Create and close it inside the event loop that uses it."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._pool: EndpointPool | None = None
        self.gate = EndpointGate(settings.concurrency)
        """Every request of the launch goes through it."""
        if settings.llm_provider == "openai":
            # the client of endpoints is large, and a worker of the scripted model never needs it
            from eval_pipeline.agents.endpoint import EndpointPool  # noqa: PLC0415

            settings.require_endpoint()
            self._pool = EndpointPool(settings)

    def for_run(self, team_id: str, task_id: str) -> RunModels:
        """The model of a run of ``team_id`` on ``task_id``.

        Raises:
            ScriptError: the scripted model has no script for this team and task.
        """
        if self._pool is not None:
            pool = self._pool
            return RunModels(pool.info, lambda _ledger: pool.source(), self.gate)
        script = load_script(team_id, task_id, self._settings.scripts_dir)
        latency_s = self._settings.scripted_latency_s
        return RunModels(_SCRIPTED_INFO, lambda ledger: ScriptedSource(script, ledger, latency_s), self.gate)

    async def aclose(self) -> None:
        if self._pool is not None:
            await self._pool.aclose()
