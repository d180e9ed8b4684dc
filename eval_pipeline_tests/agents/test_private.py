"""Every private attribute of AutoGen that we need is still there, and we need no others than those we name."""

from __future__ import annotations

import ast
import importlib.metadata
from pathlib import Path
from typing import Any

import pytest
from autogen_agentchat.teams import SelectorGroupChat
from autogen_core import SingleThreadedAgentRuntime
from autogen_core.models import UserMessage
from autogen_ext.models.openai import OpenAIChatCompletionClient

from eval_pipeline.agents import private
from eval_pipeline.agents.call_log import CallLog
from eval_pipeline.agents.completion import CompletionRequest
from eval_pipeline.agents.ending import RunEnding
from eval_pipeline.agents.gate import EndpointGate
from eval_pipeline.agents.models import RunModels
from eval_pipeline.agents.retry import RetryPolicy
from eval_pipeline.agents.scripted import ScriptedSource
from eval_pipeline.agents.team import build_team
from eval_pipeline.agents.tool_adapter import ToolLedger
from eval_pipeline.clock import SystemClock
from eval_pipeline.sample_data.scripts import load_script
from eval_pipeline.teams.registry import load_teams

AGENTS = Path(private.__file__).parent
PINNED = ("autogen-agentchat", "autogen-core", "autogen-ext")


def _team() -> SelectorGroupChat:
    models = RunModels(
        {
            "vision": False,
            "function_calling": True,
            "json_output": True,
            "family": "unknown",
            "structured_output": False,
        },
        lambda ledger: ScriptedSource(load_script("v1-baseline", "sample-leaking-tank"), ledger),
        EndpointGate(1),
    )
    return build_team(
        load_teams(None)["v1-baseline"],
        models.source(ToolLedger()),
        CallLog(lambda _call: None),
        [],
        RunEnding(2, lambda: False),
        info=models.info,
        gate=models.gate,
        clock=SystemClock(),
        retry=RetryPolicy(),
    )


def _formatter() -> OpenAIChatCompletionClient:
    return OpenAIChatCompletionClient(model="gpt-4o", api_key="unused")


@pytest.mark.parametrize("name", private.NEEDED)
async def test_a_private_attribute_that_we_need_is_there(name: str) -> None:
    owner, _, attribute = name.partition(".")
    owners: dict[str, Any] = {
        "SelectorGroupChat": _team,
        "SingleThreadedAgentRuntime": SingleThreadedAgentRuntime,
        "OpenAIChatCompletionClient": _formatter,
    }
    assert hasattr(owners[owner](), attribute), f"AutoGen has no {name} any more; it {private.NEEDED[name]}"


async def test_the_tasks_of_a_team_are_reached_through_it() -> None:
    team = _team()
    assert private.background_tasks(team) == []
    stream = team.run_stream(task="[nobody will answer]")
    await anext(stream)
    assert private.background_tasks(team), "a team at work has message handlers under way"
    await stream.aclose()


async def test_a_request_is_written_down_as_the_sdk_takes_it() -> None:
    request = CompletionRequest("planner", [UserMessage(content="Hello", source="user")])
    arguments = private.request_arguments(_formatter(), request)
    assert arguments["messages"] == [{"role": "user", "content": "Hello", "name": "user"}]
    assert arguments["model"] == "gpt-4o"


def test_nobody_but_one_module_touches_a_private_attribute_of_another_object() -> None:
    touched = {
        f"{path.name}: .{node.attr}"
        for path in AGENTS.glob("*.py")
        if path.name != "private.py"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.endswith("__")
        if not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"))
    }
    assert touched == set()


@pytest.mark.parametrize("package", PINNED)
def test_autogen_is_the_version_that_we_know(package: str) -> None:
    assert importlib.metadata.version(package) == "0.7.5"
    required = importlib.metadata.requires("eval-pipeline") or []
    assert any(one.replace("[openai]", "") == f"{package}==0.7.5" for one in required)
