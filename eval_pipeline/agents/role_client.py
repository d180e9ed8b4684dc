"""The model client that one role of one run sees: it records, retries and judges every request.

It is the only place where the selector's usage, the retries, the finish reasons and the real exceptions exist;
AutoGen's events have none of them. Where answers come from is a :class:`CompletionSource`.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from autogen_core import CancellationToken, FunctionCall
from autogen_core.models import (
    ChatCompletionClient,
    CreateResult,
    FunctionExecutionResultMessage,
    LLMMessage,
    ModelInfo,
    RequestUsage,
)
from autogen_core.tools import Tool, ToolSchema
from pydantic import BaseModel

from eval_pipeline.agents.completion import (
    Completion,
    CompletionRequest,
    CompletionSource,
    ModelFailure,
    ToolChoice,
)
from eval_pipeline.clock import Clock
from eval_pipeline.errors import ErrorClass
from eval_pipeline.tracing.items import ModelCall, Usage
from eval_pipeline.tracing.selector_json import parse_selector

SELECTOR = "selector"


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how long a request is tried again. Times are in seconds; the budget is per request."""

    retries: int = 4
    base_s: float = 1.0
    longest_s: float = 60.0
    budget_s: float = 300.0

    def wait_s(self, attempt: int, failure: ModelFailure) -> float:
        """The pause after ``attempt`` (from 1) failed: what the endpoint asked for, else exponential with full jitter."""
        if failure.retry_after_s is not None:
            return failure.retry_after_s
        return random.uniform(0.5, 1.0) * min(self.longest_s, self.base_s * 2.0 ** (attempt - 1))


@dataclass(frozen=True, slots=True)
class SelectorAttempt:
    """What the selector wrote once, and the participant's name that AutoGen was handed (empty for none)."""

    text: str
    chosen: str


@dataclass
class CallLog:
    """Every model call of one run, with its sums; the truth about what a run has spent."""

    on_call: Callable[[ModelCall], None]
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    last_error: Exception | None = None
    selector_attempts: deque[SelectorAttempt] = field(default_factory=deque)
    waiting_since: dict[int, float] = field(default_factory=dict)

    def add(self, call: ModelCall) -> None:
        self.calls += 1
        if call.usage is not None:
            self.tokens_in += call.usage.prompt_tokens or 0
            self.tokens_out += call.usage.completion_tokens or 0
        self.on_call(call)

    def longest_wait_s(self) -> float:
        """How long the oldest request that has not been answered yet has been waiting, in seconds."""
        return max((time.monotonic() - since for since in self.waiting_since.values()), default=0.0)


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
        clock: Clock,
        retry: RetryPolicy,
        participants: Sequence[str] = (),
    ) -> None:
        self._role = role
        self._source = source
        self._log = log
        self._info = info
        self._clock = clock
        self._retry = retry
        self._participants = {name.casefold(): name for name in participants}

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
        request = CompletionRequest(self._role, messages, tools, tool_choice, json_output, extra_create_args)
        work = asyncio.ensure_future(self._with_retries(request))
        if cancellation_token is not None:
            cancellation_token.link_future(work)
        try:
            completion = await work
        finally:
            if not work.done():
                work.cancel()
        return self._result(completion)

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
        begun = time.monotonic()
        attempt = 0
        while True:
            attempt += 1
            try:
                return await self._once(request, kind, attempt)
            except ModelFailure as failure:
                wait_s = self._retry.wait_s(attempt, failure)
                spent_s = time.monotonic() - begun
                if not failure.retryable or attempt > self._retry.retries or spent_s + wait_s > self._retry.budget_s:
                    self._log.last_error = failure
                    raise
                await asyncio.sleep(wait_s)

    async def _once(self, request: CompletionRequest, kind: str, attempt: int) -> Completion:
        started = time.monotonic()
        call = ModelCall(
            role=self._role,
            kind=kind,
            attempt=attempt,
            started_at=self._clock.now(),
            latency_ms=0,
            outcome="ok",
        )
        key = id(call)
        self._log.waiting_since[key] = started
        try:
            completion = _usable(await self._source.complete(request))
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
            call = replace(call, outcome="cancelled", error_class=ErrorClass.INTERRUPTED)
            raise
        except Exception as error:
            call = replace(call, outcome="error", error_class=ErrorClass.TEAM, error_message=str(error))
            self._log.last_error = error
            raise
        else:
            call = replace(
                call,
                usage=completion.usage,
                finish_reason=completion.finish_reason,
                model=completion.model,
            )
            return completion
        finally:
            del self._log.waiting_since[key]
            self._log.add(replace(call, latency_ms=max(0, round((time.monotonic() - started) * 1000))))

    def _kind(self, request: CompletionRequest) -> str:
        if self._role == SELECTOR:
            return "selection"
        if request.tool_choice == "none":
            return "reflection"
        last = request.messages[-1] if request.messages else None
        return "tool_loop" if isinstance(last, FunctionExecutionResultMessage) else "turn"

    def _result(self, completion: Completion) -> CreateResult:
        content = completion.content
        if self._role == SELECTOR:
            content = self._chosen(content)
        elif not isinstance(content, str):
            content = _joinable(content)
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
        return chosen

    @property
    def model_info(self) -> ModelInfo:
        return self._info

    @property
    def capabilities(self) -> ModelInfo:  # type: ignore[override]
        return self._info

    async def close(self) -> None:
        """Nothing to close: the connections belong to the pool."""

    def actual_usage(self) -> RequestUsage:
        return self.total_usage()

    def total_usage(self) -> RequestUsage:
        return RequestUsage(self._log.tokens_in, self._log.tokens_out)

    def count_tokens(self, messages: Sequence[LLMMessage], *, tools: Sequence[Tool | ToolSchema] = ()) -> int:
        # tiktoken would fetch its tables from the network at the first call
        return sum(len(str(message.content)) for message in messages) // 4

    def remaining_tokens(self, messages: Sequence[LLMMessage], *, tools: Sequence[Tool | ToolSchema] = ()) -> int:
        return 1_000_000 - self.count_tokens(messages, tools=tools)


def _usable(completion: Completion) -> Completion:
    """``completion`` if a team can go on with it.

    An answer cut by ``length`` is the model's own doing and goes on, marked by its finish reason.

    Raises:
        ModelFailure: the endpoint filtered it, or nothing was said and nothing called.
    """
    if completion.finish_reason == "content_filter":
        raise ModelFailure(
            ErrorClass.CONTENT_FILTER,
            "the endpoint filtered the answer",
            finish_reason=completion.finish_reason,
            usage=completion.usage,
            model=completion.model,
        )
    if not completion.content or (isinstance(completion.content, str) and not completion.content.strip()):
        raise ModelFailure(
            ErrorClass.BAD_RESPONSE,
            f"an empty answer without a tool call (finish reason {completion.finish_reason})",
            retryable=True,
            finish_reason=completion.finish_reason,
            usage=completion.usage,
            model=completion.model,
        )
    return completion


def _joinable(calls: list[FunctionCall]) -> list[FunctionCall]:
    """Calls that AutoGen can execute and pair: every id is there and single, and no argument text is empty.

    A null id makes AutoGen wait for ever, and an empty argument text is an error even for a tool without parameters.
    """
    seen: set[str] = set()
    joinable = []
    for number, call in enumerate(calls, start=1):
        call_id = call.id or f"call-without-id-{number}"
        while call_id in seen:
            call_id = f"{call_id}~{number}"
        seen.add(call_id)
        joinable.append(FunctionCall(id=call_id, name=call.name, arguments=call.arguments.strip() or "{}"))
    return joinable
