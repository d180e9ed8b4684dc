"""Builds the AutoGen team of one run out of a team spec. Running it belongs to :mod:`eval_pipeline.agents.run`."""

from __future__ import annotations

from collections.abc import Sequence

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.teams import SelectorGroupChat
from autogen_core.models import ModelInfo

from eval_pipeline.agents.call_log import CallLog
from eval_pipeline.agents.completion import CompletionSource
from eval_pipeline.agents.ending import RunEnding
from eval_pipeline.agents.gate import EndpointGate
from eval_pipeline.agents.private import lighten
from eval_pipeline.agents.retry import RetryPolicy
from eval_pipeline.agents.role_client import SELECTOR, RoleClient
from eval_pipeline.agents.tool_adapter import AdaptedTool
from eval_pipeline.clock import Clock
from eval_pipeline.teams.spec import ROLES, TeamSpec


def build_team(
    spec: TeamSpec,
    source: CompletionSource,
    log: CallLog,
    tools: Sequence[AdaptedTool],
    ending: RunEnding,
    *,
    info: ModelInfo,
    gate: EndpointGate,
    clock: Clock,
    retry: RetryPolicy,
) -> SelectorGroupChat:
    """A new team: new agents, new clients, new termination. Nothing of it outlives the run."""

    def client(role: str) -> RoleClient:
        participants = ROLES if role == SELECTOR else ()
        return RoleClient(role, source, log, info=info, gate=gate, clock=clock, retry=retry, participants=participants)

    agents = [
        AssistantAgent(
            role,
            model_client=client(role),
            tools=list(tools) if role == "executor" else None,
            description=spec.descriptions[role],
            system_message=spec.prompts[role],
            reflect_on_tool_use=False,
            max_tool_iterations=1,
            model_client_stream=True,
        )
        for role in ROLES
    ]
    team = SelectorGroupChat(
        list(agents),
        model_client=client(SELECTOR),
        termination_condition=ending,
        selector_prompt=spec.prompts["selector"],
        allow_repeated_speaker=spec.allow_repeated_speaker,
        max_selector_attempts=spec.max_selector_attempts,
        emit_team_events=True,
        model_client_streaming=True,
    )
    lighten(team)
    return team
