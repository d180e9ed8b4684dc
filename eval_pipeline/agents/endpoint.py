"""Answers from an OpenAI-compatible endpoint, whichever dialect it speaks.

The message format comes from AutoGen's client; the response is read here, because AutoGen's reading drops usage and
finish reasons of several servers and lets truncated and empty answers pass for whole ones. Retrying is not done here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import openai
from autogen_core import FunctionCall
from autogen_core.models import ModelInfo
from autogen_ext.models.openai import OpenAIChatCompletionClient
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.chat.chat_completion_chunk import ChoiceDeltaToolCall

from eval_pipeline.agents.completion import Completion, CompletionRequest, ModelFailure
from eval_pipeline.agents.failures import classify
from eval_pipeline.errors import ErrorClass
from eval_pipeline.settings import Settings
from eval_pipeline.tracing.items import Usage

_REASONING_FIELDS = ("reasoning_content", "reasoning")
_KEPT_CREATE_ARGS = ("temperature", "seed", "max_tokens", "parallel_tool_calls")


def model_info(settings: Settings) -> ModelInfo:
    """What AutoGen must know of a model whose name it does not know: all five fields, from the settings."""
    return ModelInfo(
        vision=settings.llm_vision,
        function_calling=settings.llm_function_calling,
        json_output=settings.llm_json_output,
        family=settings.llm_family,
        structured_output=settings.llm_structured_output,
    )


def _create_args(settings: Settings) -> dict[str, object]:
    values = {name: getattr(settings, f"llm_{name}") for name in _KEPT_CREATE_ARGS}
    return {name: value for name, value in values.items() if value is not None}


class EndpointPool:
    """The HTTP connections to one endpoint, shared by all runs of one event loop."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._timeout = openai.Timeout(settings.llm_timeout_s, connect=settings.llm_connect_timeout_s)
        self._sdk = openai.AsyncOpenAI(
            # a local endpoint without a key still needs some text in the header
            api_key=settings.llm_api_key.get_secret_value() if settings.llm_api_key else "none",
            base_url=settings.llm_base_url,
            timeout=self._timeout,
            # each attempt must be a row of its own, so ours is the only retry loop
            max_retries=0,
        )

    def source(self) -> EndpointSource:
        """A fresh source for one run."""
        return EndpointSource(self._sdk, self._settings)

    async def aclose(self) -> None:
        await self._sdk.close()


class EndpointSource:
    """One run's view of the endpoint; a :class:`~eval_pipeline.agents.completion.CompletionSource`."""

    def __init__(self, sdk: openai.AsyncOpenAI, settings: Settings) -> None:
        self._sdk = sdk
        self._stream = settings.llm_stream
        self._model = settings.llm_model or ""
        self._formatter = OpenAIChatCompletionClient(
            model=self._model,
            api_key="unused",
            base_url=settings.llm_base_url or "",
            model_info=model_info(settings),
            include_name_in_message=settings.llm_include_name,
            add_name_prefixes=not settings.llm_include_name,
            **_create_args(settings),  # type: ignore[arg-type]
        )

    async def complete(self, request: CompletionRequest) -> Completion:
        params = self._formatter._process_create_args(
            request.messages,
            request.tools,
            request.tool_choice,
            request.json_output,
            request.extra_create_args,
        )
        arguments: dict[str, object] = {"messages": params.messages, **params.create_args}
        if params.tools:
            arguments["tools"] = params.tools
        if self._stream:
            return await self._streamed(arguments)
        try:
            answer = await self._sdk.chat.completions.create(stream=False, **arguments)  # type: ignore[call-overload]
        except Exception as error:
            raise classify(error) from error
        return _whole(answer)

    async def _streamed(self, arguments: Mapping[str, object]) -> Completion:
        parts = _Parts()
        try:
            stream = await self._sdk.chat.completions.create(  # type: ignore[call-overload]
                stream=True, stream_options={"include_usage": True}, **arguments
            )
            async with stream:
                async for chunk in stream:
                    parts.add(chunk)
        except Exception as error:
            failure = classify(error)
            # what has been streamed is paid for: asking again would pay twice
            failure.retryable = failure.retryable and not parts.started
            failure.usage = parts.usage
            raise failure from error
        return parts.completion()


def _usage(raw: object) -> Usage | None:
    """Token counts of a usage object; unknown, zero and nonsensical counts are ``None``."""

    def count(name: str) -> int | None:
        value = getattr(raw, name, None)
        return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None

    if raw is None:
        return None
    usage = Usage(count("prompt_tokens"), count("completion_tokens"))
    return None if usage == Usage(None, None) else usage


def _reasoning(part: object) -> str:
    extra = getattr(part, "model_extra", None) or {}
    for name in _REASONING_FIELDS:
        value = extra.get(name)
        if isinstance(value, str) and value:
            return value
    return ""


def _whole(answer: object) -> Completion:
    """Read an answer that came in one piece.

    Raises:
        ModelFailure: it is not a completion (a gateway's page, an error with status 200, no choices).
    """
    if not isinstance(answer, ChatCompletion) or not answer.choices:
        text = str(getattr(answer, "error", None) or answer)[:200]
        raise ModelFailure(
            ErrorClass.BAD_RESPONSE, f"HTTP 200 without a completion: {text}", retryable=True, http_status=200
        )
    choice = answer.choices[0]
    message = choice.message
    calls = [
        FunctionCall(
            id=call.id if isinstance(call.id, str) else "",
            name=call.function.name or "",
            arguments=call.function.arguments or "",
        )
        for call in message.tool_calls or []
        if call.type == "function"
    ]
    return Completion(
        content=calls or (message.content or ""),
        usage=_usage(answer.usage),
        finish_reason=choice.finish_reason,
        thought=_reasoning(message) or (message.content if calls else None) or None,
        model=answer.model,
    )


@dataclass
class _Call:
    id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass
class _Parts:
    """What a stream has delivered so far, over every dialect of deltas, usage and finish reason."""

    text: list[str] = field(default_factory=list)
    thought: list[str] = field(default_factory=list)
    calls: dict[int, _Call] = field(default_factory=dict)
    usage: Usage | None = None
    finish_reason: str | None = None
    model: str | None = None
    started: bool = False

    def add(self, chunk: ChatCompletionChunk) -> None:
        self.started = True
        self.model = chunk.model or self.model
        # the last non-empty usage counts, wherever it rides: own chunk, finish chunk, every chunk
        self.usage = _usage(chunk.usage) or self.usage
        if not chunk.choices:
            return
        choice = chunk.choices[0]
        self.finish_reason = choice.finish_reason or self.finish_reason
        if choice.delta is None:
            return
        self.thought.append(_reasoning(choice.delta))
        self.text.append(choice.delta.content or "")
        for delta in choice.delta.tool_calls or []:
            self._add_call(delta)

    def _add_call(self, delta: ChoiceDeltaToolCall) -> None:
        call = self.calls.setdefault(self._index(delta), _Call())
        # some servers send id and name with every delta: keep the first instead of joining them
        call.id = call.id or (delta.id or "")
        if delta.function is not None:
            call.name = call.name or (delta.function.name or "")
            call.arguments += delta.function.arguments or ""

    def _index(self, delta: ChoiceDeltaToolCall) -> int:
        last = max(self.calls, default=-1)
        known = self.calls.get(delta.index) if isinstance(delta.index, int) else self.calls.get(last)
        if known is None:
            return delta.index if isinstance(delta.index, int) else last + 1
        # servers that count every parallel call as index 0, or send no index, start a new one with a new id
        if delta.id and known.id and delta.id != known.id:
            same = [index for index, call in self.calls.items() if call.id == delta.id]
            return same[0] if same else last + 1
        return delta.index if isinstance(delta.index, int) else last

    def completion(self) -> Completion:
        """The whole answer.

        Raises:
            ModelFailure: the stream ended without a finish reason, so that nobody can tell whether it is whole.
        """
        if self.finish_reason is None:
            what = "ended without a finish reason" if self.started else "brought no event at all"
            raise ModelFailure(
                ErrorClass.BAD_RESPONSE,
                f"the stream {what}: the answer is cut off or is not a completion",
                retryable=not self.started,
                http_status=200,
                usage=self.usage,
                model=self.model,
            )
        text = "".join(self.text)
        calls = [FunctionCall(id=c.id, name=c.name, arguments=c.arguments) for c in self.calls.values()]
        return Completion(
            content=calls or text,
            usage=self.usage,
            finish_reason=self.finish_reason,
            thought="".join(self.thought) or (text if calls else None) or None,
            model=self.model,
        )
