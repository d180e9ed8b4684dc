"""One round trip with the configured endpoint: what of tools, streaming, usage and JSON works."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from autogen_core.models import (
    AssistantMessage,
    FunctionExecutionResult,
    FunctionExecutionResultMessage,
    LLMMessage,
    SystemMessage,
    UserMessage,
)
from autogen_core.tools import ParametersSchema, ToolSchema

from eval_pipeline.agents.completion import Completion, CompletionRequest, ModelFailure
from eval_pipeline.agents.endpoint import EndpointPool
from eval_pipeline.settings import Settings

_A, _B = 17, 25
_ADD = ToolSchema(
    name="add_numbers",
    description="Adds two whole numbers and returns the sum.",
    parameters=ParametersSchema(
        type="object",
        properties={"a": {"type": "integer"}, "b": {"type": "integer"}},
        required=["a", "b"],
        additionalProperties=False,
    ),
)


@dataclass(frozen=True, slots=True)
class SmokeResult:
    """One thing that was tried. ``detail`` says what came back, or why it failed."""

    name: str
    works: bool
    detail: str
    seconds: float


async def smoke(settings: Settings) -> list[SmokeResult]:
    """Try the endpoint that ``settings`` name; an endpoint's failure is a result, not an exception.

    Raises:
        SettingsError: no endpoint is configured.
    """
    settings.require_endpoint()
    results = []
    for name, trial, changed in (
        ("text", _text, {"llm_stream": False}),
        ("tools", _tools, {}),
        ("streaming", _text, {"llm_stream": True}),
        ("JSON", _json, {}),
    ):
        pool = EndpointPool(settings.model_copy(update=changed))
        try:
            results.append(await _tried(name, trial, pool))
        finally:
            await pool.aclose()
    return results


async def _tried(name: str, trial: Callable[[EndpointPool], Awaitable[str]], pool: EndpointPool) -> SmokeResult:
    started = time.monotonic()
    try:
        detail, works = await trial(pool), True
    except ModelFailure as failure:
        detail, works = f"{failure.error_class}: {failure}", False
    except ValueError as error:
        detail, works = str(error), False
    return SmokeResult(name, works, detail, time.monotonic() - started)


def _usage(completion: Completion) -> str:
    usage = completion.usage
    if usage is None or usage.prompt_tokens is None or usage.completion_tokens is None:
        return "usage NOT reported, so costs will be unknown"
    return f"usage {usage.prompt_tokens}+{usage.completion_tokens} tokens"


async def _text(pool: EndpointPool) -> str:
    messages: list[LLMMessage] = [UserMessage(content="Answer with the single word: ready", source="user")]
    completion = await pool.source().complete(CompletionRequest("planner", messages))
    if not isinstance(completion.content, str) or not completion.content.strip():
        raise ValueError("the answer is empty")
    return f"model {completion.model}, finish reason {completion.finish_reason}, {_usage(completion)}"


async def _tools(pool: EndpointPool) -> str:
    source = pool.source()
    messages: list[LLMMessage] = [
        SystemMessage(content="Use the tool for every sum; never add in your head."),
        UserMessage(content=f"What is {_A} + {_B}?", source="user"),
    ]
    asked = await source.complete(CompletionRequest("executor", messages, tools=[_ADD]))
    if isinstance(asked.content, str):
        raise ValueError("the model answered with text instead of calling the tool")
    call = asked.content[0]
    try:
        arguments = json.loads(call.arguments or "{}")
        total = int(arguments["a"]) + int(arguments["b"])
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"the call's arguments are not the two numbers: {call.arguments[:100]!r}") from None
    result = FunctionExecutionResult(content=str(total), name=call.name, call_id=call.id, is_error=False)
    messages += [
        AssistantMessage(content=[call], source="executor"),
        FunctionExecutionResultMessage(content=[result]),
    ]
    final = await source.complete(CompletionRequest("executor", messages, tools=[_ADD]))
    if not isinstance(final.content, str) or str(_A + _B) not in final.content:
        raise ValueError("the model did not use the tool's result")
    return f"called {call.name}({call.arguments}) and used its result, {_usage(final)}"


async def _json(pool: EndpointPool) -> str:
    prompt = 'Answer only with one JSON object of the form {"next": "planner", "reason_code": "NEEDS_PLANNING"}.'
    messages: list[LLMMessage] = [UserMessage(content=prompt, source="user")]
    completion = await pool.source().complete(CompletionRequest("selector", messages))
    text = completion.content if isinstance(completion.content, str) else ""
    try:
        answer = json.loads(text[text.find("{") : text.rfind("}") + 1])
    except json.JSONDecodeError:
        raise ValueError(f"not a JSON object: {text[:100]!r}") from None
    return f"an object with the keys {', '.join(answer)}, {_usage(completion)}"
