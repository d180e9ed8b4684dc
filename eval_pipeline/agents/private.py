"""The private attributes of AutoGen 0.7.5 that we cannot do without, each with its reason; nobody else touches any.

A test names every one that disappears, so that a new version of AutoGen fails there and not in a user's run.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from autogen_agentchat.teams import SelectorGroupChat
from autogen_core import EVENT_LOGGER_NAME
from opentelemetry import trace

from eval_pipeline.agents.completion import CompletionRequest

if TYPE_CHECKING:
    from autogen_ext.models.openai import OpenAIChatCompletionClient

NEEDED: Mapping[str, str] = {
    "SelectorGroupChat._runtime": "leads to the tasks that must be cancelled when a team is stuck",
    "SingleThreadedAgentRuntime._background_tasks": "are these tasks; nothing else ends a stuck tool call",
    "SingleThreadedAgentRuntime._tracer_helper": "opens a span per message, a tenth of a run's CPU, for nobody to see",
    "SingleThreadedAgentRuntime._create_otel_attributes": "gathers what such a span would say",
    "SingleThreadedAgentRuntime._try_serialize": "writes out each message for a log, whether or not anybody keeps it",
    "OpenAIChatCompletionClient._process_create_args": "turns AutoGen's messages and tools into a request",
}
"""Every attribute, as ``class._name``, and what it is needed for."""


def background_tasks(team: SelectorGroupChat) -> list[asyncio.Task[object]]:
    """The runtime's message handlers still under way. Cancelling them is the only way out of a stuck tool call."""
    return list(team._runtime._background_tasks)  # type: ignore[attr-defined]


class _NoSpans:
    """Stands in for AutoGen's helper that opens a span of OpenTelemetry around each message."""

    _nothing = contextlib.nullcontext()

    def trace_block(self, *_: object, **__: object) -> contextlib.nullcontext[None]:
        return self._nothing


async def _no_attributes(**_: object) -> dict[str, str]:
    return {}


def lighten(team: SelectorGroupChat) -> None:
    """Spare the team what is made for spans and logs that nobody has asked for; with a taker they are made as ever."""
    runtime = team._runtime
    if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        runtime._tracer_helper = _NoSpans()  # type: ignore[attr-defined]
        runtime._create_otel_attributes = _no_attributes  # type: ignore[attr-defined]
    if not logging.getLogger(EVENT_LOGGER_NAME).isEnabledFor(logging.INFO):
        runtime._try_serialize = lambda _message: ""  # type: ignore[attr-defined]


def request_arguments(client: OpenAIChatCompletionClient, request: CompletionRequest) -> dict[str, object]:
    """``request`` as the arguments of the SDK's ``chat.completions.create``.

    Raises:
        ValueError: the request asks for what the client's model cannot do.
    """
    params = client._process_create_args(
        request.messages,
        request.tools,
        request.tool_choice,
        request.json_output,
        request.extra_create_args,
    )
    arguments: dict[str, object] = {"messages": params.messages, **params.create_args}
    if params.tools:
        arguments["tools"] = params.tools
    return arguments
