"""Requests to an OpenAI-compatible endpoint, one at a time; each ends in an answer or a classified failure.

The message format comes from AutoGen's client; what comes back is read in :mod:`eval_pipeline.agents.answers`.
Retrying is not done here.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from typing import cast

import openai
from autogen_core.models import ModelFamily, ModelInfo
from autogen_ext.models.openai import OpenAIChatCompletionClient
from openai.types.chat import ChatCompletionChunk

from eval_pipeline.agents.answers import Parts, whole, whole_of_body
from eval_pipeline.agents.completion import Completion, CompletionRequest, Progress
from eval_pipeline.agents.failures import classify
from eval_pipeline.agents.gathering import read_gathered
from eval_pipeline.agents.private import request_arguments
from eval_pipeline.agents.sse import DONE, DataLines, values
from eval_pipeline.agents.tool_arguments import object_text
from eval_pipeline.settings import Settings

_KEPT_CREATE_ARGS = ("temperature", "seed", "max_tokens", "parallel_tool_calls")
_NO_STREAM = ("json", "html")

# below this level they log whole requests, which hold whatever a tool or a model has said
for _name in ("openai", "httpx2", "httpcore2"):
    logging.getLogger(_name).setLevel(logging.WARNING)


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
        self._sdk = openai.AsyncOpenAI(
            # a local endpoint without a key still needs some text in the header
            api_key=settings.llm_api_key.get_secret_value() if settings.llm_api_key else "none",
            base_url=settings.llm_base_url,
            timeout=openai.Timeout(settings.llm_timeout_s, connect=settings.llm_connect_timeout_s),
            # each attempt must be a row of its own, so ours is the only retry loop
            max_retries=0,
        )
        # it sends nothing and keeps nothing: only its way of writing messages down is used
        self._formatter = OpenAIChatCompletionClient(
            model=settings.llm_model or "",
            api_key="unused",
            base_url=settings.llm_base_url or "",
            model_info=model_info(settings),
            include_name_in_message=settings.llm_include_name,
            add_name_prefixes=not settings.llm_include_name,
            **_create_args(settings),  # type: ignore[arg-type]
        )

    @property
    def info(self) -> ModelInfo:
        """What AutoGen must know of the model."""
        return model_info(self._settings)

    def source(self) -> EndpointSource:
        """A fresh source for one run."""
        return EndpointSource(self._sdk, self._formatter, self._settings)

    async def aclose(self) -> None:
        await self._formatter.close()
        await self._sdk.close()


class EndpointSource:
    """One run's view of the endpoint; a :class:`~eval_pipeline.agents.completion.CompletionSource`."""

    def __init__(self, sdk: openai.AsyncOpenAI, formatter: OpenAIChatCompletionClient, settings: Settings) -> None:
        self._sdk = sdk
        self._formatter = formatter
        self._stream = settings.llm_stream
        self._silence_s = settings.llm_timeout_s
        self._split_reasoning = settings.llm_family == ModelFamily.R1

    async def complete(self, request: CompletionRequest) -> Completion:
        arguments = request_arguments(self._formatter, request)
        arguments["messages"] = [_sendable(message) for message in cast("list[object]", arguments["messages"])]
        if self._stream:
            return await self._streamed(arguments, request.progress)
        try:
            # the SDK's own time-out counts from byte to byte, which a server that drips never reaches
            async with asyncio.timeout(self._silence_s):
                answer = await self._sdk.chat.completions.create(stream=False, **arguments)  # type: ignore[call-overload]
            return whole(answer, split_reasoning=self._split_reasoning)
        except Exception as error:
            raise classify(error) from error

    async def _streamed(self, arguments: Mapping[str, object], progress: Progress) -> Completion:
        parts = Parts(progress)
        try:
            async with asyncio.timeout(self._silence_s):
                stream = await self._sdk.chat.completions.create(  # type: ignore[call-overload]
                    stream=True, stream_options={"include_usage": True}, **arguments
                )
            progress.http_status = 200
            async with stream:
                if any(kind in stream.response.headers.get("content-type", "") for kind in _NO_STREAM):
                    async with asyncio.timeout(self._silence_s):
                        body = await stream.response.aread()
                    return whole_of_body(body, split_reasoning=self._split_reasoning)
                await self._take(stream, parts)
        except Exception as error:
            # an answer that is whole stays so, whatever became of the connection afterwards
            if not parts.whole:
                failure = classify(error)
                # what has been streamed is paid for: asking again would pay twice
                failure.retryable = failure.retryable and not parts.started
                failure.usage = failure.usage or progress.usage
                failure.model = failure.model or progress.model
                failure.http_status = failure.http_status or progress.http_status
                raise failure from error
        return parts.completion(split_reasoning=self._split_reasoning)

    async def _take(self, stream: openai.AsyncStream[ChatCompletionChunk], parts: Parts) -> None:
        """Read the chunks of ``stream`` into ``parts``, to its end."""
        lines = DataLines()

        def take(payloads: Sequence[bytes]) -> bool:
            if payloads:
                parts.progress.heard_at_s = time.monotonic()
            for value in values([payload for payload in payloads if not payload.startswith(DONE)]):
                parts.add(value)
            return bool(payloads)

        pieces = aiter(stream.response.aiter_bytes())
        await read_gathered(pieces, lambda data: take(lines.feed(data)), lambda: parts.whole, self._silence_s)
        take(lines.end())


def _sendable(value: object) -> object:
    """A message without what breaks the request: lone surrogates, and calls whose arguments are no JSON object.

    Both are a model's own doing in an earlier answer; the trace has them as they were written.
    """
    match value:
        case str():
            return value.encode("utf-8", "replace").decode() if not value.isascii() else value
        case list():
            return [_sendable(part) for part in value]
        case dict():
            cleaned = {key: _sendable(part) for key, part in value.items()}
            arguments = cleaned.get("arguments")
            if isinstance(arguments, str):
                cleaned["arguments"] = object_text(arguments)
            return cleaned
        case _:
            return value
