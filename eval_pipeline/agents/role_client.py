"""The model client that one role of one run sees: it records, retries and judges every request.

It is the only place where the selector's usage, the retries, the finish reasons and the real exceptions exist;
AutoGen's events have none of them. Where answers come from is a :class:`CompletionSource`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from autogen_core import CancellationToken, FunctionCall
from autogen_core.models import (
    AssistantMessage,
    ChatCompletionClient,
    CreateResult,
    FunctionExecutionResultMessage,
    LLMMessage,
    ModelInfo,
    RequestUsage,
)
from autogen_core.tools import Tool, ToolSchema
from pydantic import BaseModel

from eval_pipeline.agents.call_log import CallLog, OpenRequest, SelectorAttempt
from eval_pipeline.agents.completion import (
    Completion,
    CompletionRequest,
    CompletionSource,
    ModelFailure,
    Progress,
    ToolChoice,
)
from eval_pipeline.agents.gate import EndpointGate
from eval_pipeline.agents.retry import RetryPolicy
from eval_pipeline.agents.tool_arguments import executable
from eval_pipeline.clock import Clock
from eval_pipeline.errors import ErrorClass
from eval_pipeline.tracing.items import ModelCall, Usage
from eval_pipeline.tracing.selector_json import parse_selector

SELECTOR = "selector"

_NOTHING_SAID = "(an empty answer)"


class RoleClient(ChatCompletionClient):
    """A ``ChatCompletionClient`` for one role (``planner``, ``executor``, ``critic`` or ``selector``)."""

    component_type = "model"

    def __init__(
        self,
        role: str,
        source: CompletionSource,
        log: CallLog,
        *,
        info: ModelInfo,
        gate: EndpointGate,
        clock: Clock,
        retry: RetryPolicy,
        participants: Sequence[str] = (),
    ) -> None:
        self._role = role
        self._source = source
        self._log = log
        self._info = info
        self._gate = gate
        self._clock = clock
        self._retry = retry
        self._participants = {name.casefold(): name for name in participants}
        self._written: list[str] = []
        """What the selector wrote for the choice that is being made, attempt by attempt."""
        self._answers = 0

    async def create(
        self,
        messages: Sequence[LLMMessage],
        *,
        tools: Sequence[Tool | ToolSchema] = (),
        tool_choice: ToolChoice = "auto",
        json_output: bool | type[BaseModel] | None = None,
        extra_create_args: Mapping[str, Any] = {},
        cancellation_token: CancellationToken | None = None,
    ) -> CreateResult:
        """Answer a request, after as many tries as the policy allows.

        Raises:
            ModelFailure: no usable answer; it is also kept as the log's ``last_error``.
        """
        if self._role == SELECTOR:
            messages = self._with_own_words(messages)
        request = CompletionRequest(self._role, messages, tools, tool_choice, json_output, extra_create_args)
        work: asyncio.Task[Completion] = asyncio.create_task(self._with_retries(request))
        self._log.tasks.add(work)
        work.add_done_callback(self._log.tasks.discard)
        if cancellation_token is not None:
            cancellation_token.link_future(work)
        return self._result(await work)

    async def create_stream(
        self,
        messages: Sequence[LLMMessage],
        *,
        tools: Sequence[Tool | ToolSchema] = (),
        tool_choice: ToolChoice = "auto",
        json_output: bool | type[BaseModel] | None = None,
        extra_create_args: Mapping[str, Any] = {},
        cancellation_token: CancellationToken | None = None,
    ) -> AsyncGenerator[str | CreateResult, None]:
        """One whole answer. Chunks are not handed on: each would cost an event that no row is made of."""
        yield await self.create(
            messages,
            tools=tools,
            tool_choice=tool_choice,
            json_output=json_output,
            extra_create_args=extra_create_args,
            cancellation_token=cancellation_token,
        )

    async def _with_retries(self, request: CompletionRequest) -> Completion:
        kind = self._kind(request)
        waited_s = 0.0
        attempt = 0
        opened = OpenRequest(request.progress)
        self._log.open_requests.append(opened)
        try:
            while True:
                attempt += 1
                try:
                    opened.held = True
                    async with self._gate.passing() as passage:
                        opened.held = False
                        opened.progress = Progress()
                        opened.since_s = time.monotonic()
                        completion = await self._once(replace(request, progress=opened.progress), kind, attempt)
                except ModelFailure as failure:
                    opened.failure = failure
                    wait_s = self._retry.wait_s(attempt, failure, waited_s)
                    if failure.error_class is ErrorClass.RATE_LIMIT:
                        self._gate.refused(passage, failure.retry_after_s, bearable_s=self._retry.budget_s)
                    if wait_s is None:
                        raise
                    waited_s += wait_s
                    await asyncio.sleep(wait_s)
                else:
                    self._gate.answered(passage)
                    return completion
        except Exception as error:
            self._log.last_error = error
            raise
        finally:
            self._log.open_requests.remove(opened)

    async def _once(self, request: CompletionRequest, kind: str, attempt: int) -> Completion:
        started_s = time.monotonic()
        call = ModelCall(
            role=self._role,
            kind=kind,
            attempt=attempt,
            started_at=self._clock.now(),
            latency_ms=0,
            outcome="ok",
        )
        try:
            completion = self._usable(await self._source.complete(request))
        except ModelFailure as failure:
            call = replace(
                call,
                outcome="error",
                usage=failure.usage,
                finish_reason=failure.finish_reason,
                http_status=failure.http_status,
                error_class=failure.error_class,
                error_message=str(failure),
                model=failure.model,
            )
            raise
        except asyncio.CancelledError:
            arrived = request.progress
            call = replace(
                call,
                outcome="cancelled",
                usage=arrived.usage,
                finish_reason=arrived.finish_reason,
                http_status=arrived.http_status,
                error_class=ErrorClass.INTERRUPTED,
                model=arrived.model,
            )
            raise
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            call = replace(call, outcome="error", error_class=ErrorClass.TEAM, error_message=text)
            raise
        else:
            call = replace(
                call,
                usage=completion.usage,
                finish_reason=completion.finish_reason,
                http_status=completion.http_status,
                model=completion.model,
            )
            return completion
        finally:
            self._log.add(replace(call, latency_ms=max(0, round((time.monotonic() - started_s) * 1000))))

    def _kind(self, request: CompletionRequest) -> str:
        if self._role == SELECTOR:
            return "selection"
        if request.tool_choice == "none":
            return "reflection"
        last = request.messages[-1] if request.messages else None
        return "tool_loop" if isinstance(last, FunctionExecutionResultMessage) else "turn"

    def _usable(self, completion: Completion) -> Completion:
        """``completion`` if a team can go on with it.

        An answer cut by ``length`` is the model's own doing and goes on, marked by its finish reason. The selector's
        empty answer is one that names nobody: it is asked again with the reason.

        Raises:
            ModelFailure: the endpoint filtered it, or nothing was said and nothing called.
        """
        reason = completion.finish_reason
        said = completion.content.strip() if isinstance(completion.content, str) else completion.content
        if reason == "content_filter":
            error_class, message = ErrorClass.CONTENT_FILTER, "the endpoint filtered the answer"
        elif said or self._role == SELECTOR:
            return completion
        elif reason == "length":
            error_class = ErrorClass.BAD_RESPONSE
            message = "the answer was cut before a word was said (finish reason length); raise EVAL_LLM_MAX_TOKENS"
        else:
            error_class = ErrorClass.BAD_RESPONSE
            message = f"an empty answer without a tool call (finish reason {reason})"
        raise ModelFailure(
            error_class,
            message,
            retryable=reason not in ("content_filter", "length"),
            http_status=completion.http_status,
            finish_reason=reason,
            usage=completion.usage,
            model=completion.model,
        )

    def _result(self, completion: Completion) -> CreateResult:
        self._answers += 1
        content = completion.content
        if self._role == SELECTOR:
            content = self._chosen(content)
        elif not isinstance(content, str):
            content = executable(content, f"{self._role}-{self._answers}")
        usage = completion.usage or Usage(None, None)
        return CreateResult(
            # AutoGen knows five words only; the endpoint's own is in model_calls
            finish_reason="stop" if isinstance(content, str) else "function_calls",
            content=content,
            usage=RequestUsage(usage.prompt_tokens or 0, usage.completion_tokens or 0),
            cached=False,
            thought=completion.thought,
        )

    def _chosen(self, content: str | list[FunctionCall]) -> str:
        """The bare name out of the selector's answer: AutoGen counts every name that it mentions."""
        text = content if isinstance(content, str) else "; ".join(f"{c.name}({c.arguments})" for c in content)
        decision = parse_selector(text) if isinstance(content, str) else None
        wanted = (decision.next or "").strip().casefold() if decision else ""
        chosen = self._participants.get(wanted, "")
        self._log.selector_attempts.append(SelectorAttempt(text, chosen))
        self._written.append(text)
        return chosen

    def _with_own_words(self, messages: Sequence[LLMMessage]) -> list[LLMMessage]:
        """The selector's request with what it really wrote, where AutoGen only knows the name that it was handed.

        AutoGen asks again by adding its answer and a complaint; without its words the model could not tell what of
        them is meant.
        """
        asked_again = sum(isinstance(message, AssistantMessage) for message in messages)
        self._written = self._written[-asked_again:] if asked_again else []
        words = iter(self._written)
        return [
            AssistantMessage(content=next(words, "") or _NOTHING_SAID, source=message.source)
            if isinstance(message, AssistantMessage)
            else message
            for message in messages
        ]

    @property
    def model_info(self) -> ModelInfo:
        return self._info

    @property
    def capabilities(self) -> ModelInfo:
        return self._info

    async def close(self) -> None:
        """Nothing to close: the connections belong to the pool."""

    def actual_usage(self) -> RequestUsage:
        return self.total_usage()

    def total_usage(self) -> RequestUsage:
        return RequestUsage(self._log.tokens_in or 0, self._log.tokens_out or 0)

    def count_tokens(self, messages: Sequence[LLMMessage], *, tools: Sequence[Tool | ToolSchema] = ()) -> int:
        # tiktoken would fetch its tables from the network at the first call
        return sum(len(str(message.content)) for message in messages) // 4

    def remaining_tokens(self, messages: Sequence[LLMMessage], *, tools: Sequence[Tool | ToolSchema] = ()) -> int:
        return 1_000_000 - self.count_tokens(messages, tools=tools)
