"""Runs one team on one message, under a deadline, to a classified end.

The outcome is decided here; rows, scores and the database are other rooms' business. AutoGen does not stop for an
``asyncio.timeout``, and its own cancellation deadlocks while a tool runs, hence the escalation below.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from autogen_core import CancellationToken

from eval_pipeline.agents.completion import ModelFailure
from eval_pipeline.agents.ending import RunEnding
from eval_pipeline.agents.models import RunModels
from eval_pipeline.agents.private import background_tasks
from eval_pipeline.agents.role_client import CallLog, RetryPolicy
from eval_pipeline.agents.stream import StreamReader
from eval_pipeline.agents.team import build_team
from eval_pipeline.agents.tool_adapter import AdaptedTool, ToolFunction, ToolLedger
from eval_pipeline.clock import Clock
from eval_pipeline.errors import ErrorClass, ScriptError
from eval_pipeline.teams.spec import TeamSpec
from eval_pipeline.tracing.items import ModelCall, StreamItem

_GRACE_S = 0.3
_IDLE_STOP = "The group chat is stopped."

# AutoGen logs whole tracebacks and message dumps of ordinary failures, which may hold what must not be logged
for _name in ("autogen_core", "autogen_core.events", "autogen_core.trace", "autogen_agentchat"):
    logging.getLogger(_name).addHandler(logging.NullHandler())
    logging.getLogger(_name).propagate = False


@dataclass(frozen=True, slots=True)
class RunLimits:
    """Our own limits of a run; reaching one ends the run as completed. ``None`` is no limit.

    ``stall_s``: a request that alone has waited this long when time is up is a stalled endpoint, so the run crashed.
    """

    max_messages: int = 30
    timeout_s: float = 1800.0
    stall_s: float = 120.0
    max_tokens: int | None = None
    max_cost: float | None = None
    tool_timeout_s: float = 60.0


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """One tool for one run: what the model is told, and the coroutine function behind it."""

    name: str
    description: str
    function: ToolFunction


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """How a run ended. ``error_class`` is ``None`` exactly when the run completed, and ``terminated_by`` is then set.

    ``abandoned``: something of the run could not be stopped and may still be alive in this process.
    """

    terminated_by: str | None
    stop_reason: str | None = None
    error_class: ErrorClass | None = None
    error_message: str | None = None
    abandoned: bool = False


class TeamRun:
    """One run of a team. Everything in it is made for this run and used once.

    ``cost`` turns (prompt tokens, completion tokens) into money, for the cost limit; ``None`` where prices are unset.
    """

    def __init__(
        self,
        spec: TeamSpec,
        tools: Sequence[OfferedTool],
        models: RunModels,
        limits: RunLimits,
        *,
        clock: Clock,
        retry: RetryPolicy,
        on_item: Callable[[StreamItem], None],
        on_call: Callable[[ModelCall], None],
        cost: Callable[[int, int], float | None],
    ) -> None:
        self._limits = limits
        self._on_item = on_item
        self._cost = cost
        self.log = CallLog(on_call)
        self._ledger = ToolLedger()
        self._reader = StreamReader(self.log.selector_attempts, self._ledger)
        self._ending = RunEnding(limits.max_messages, self._out_of_tokens)
        adapted = [
            AdaptedTool(tool.name, tool.description, tool.function, self._ledger, limits.tool_timeout_s)
            for tool in tools
        ]
        self._team = build_team(
            spec,
            models.source(self._ledger),
            self.log,
            adapted,
            self._ending,
            info=models.info,
            clock=clock,
            retry=retry,
        )
        self._token = CancellationToken()
        self._stop_reason: str | None = None

    async def run(self, message: str) -> RunOutcome:
        """Run the team on ``message`` until it ends, time is up, or something breaks.

        Raises:
            asyncio.CancelledError: this run itself was cancelled; the team has been stopped before.
        """
        consumer = asyncio.ensure_future(self._consume(message))
        try:
            done, _ = await asyncio.wait({consumer}, timeout=self._limits.timeout_s)
        except asyncio.CancelledError:
            await self._stop(consumer)
            raise
        if done:
            return self._ended(consumer)
        stalled_s = self.log.longest_wait_s()
        abandoned = not await self._stop(consumer)
        if stalled_s >= min(self._limits.stall_s, self._limits.timeout_s / 2):
            text = f"the endpoint had not answered for {stalled_s:.0f} s when the run's {self._limits.timeout_s:g} s were over"
            return RunOutcome(None, error_class=ErrorClass.TIMEOUT, error_message=text, abandoned=abandoned)
        self._on_item(StreamItem("TaskResult", stop_reason="the run's time was over", terminated_by="timeout"))
        return RunOutcome("timeout", stop_reason="the run's time was over", abandoned=abandoned)

    async def _consume(self, message: str) -> None:
        async with aclosing(self._team.run_stream(task=message, cancellation_token=self._token)) as stream:
            async for thing in stream:
                item = self._reader.item(thing)
                if item.type != "TaskResult":
                    self._on_item(item)
                    continue
                self._stop_reason = item.stop_reason
                ending = self._ending.ended_by
                if ending is not None:
                    self._on_item(StreamItem(item.type, stop_reason=item.stop_reason, terminated_by=ending))

    def _ended(self, consumer: asyncio.Future[None]) -> RunOutcome:
        if consumer.cancelled():
            return RunOutcome(
                None,
                error_class=ErrorClass.TEAM,
                error_message="the team cancelled itself; no tool or model call asked it to",
            )
        error = consumer.exception()
        if error is not None:
            return self._crash(error)
        ending = self._ending.ended_by
        if ending is None:
            reason = self._stop_reason or _IDLE_STOP
            return RunOutcome(None, reason, ErrorClass.TEAM, f"the team stopped without a verdict or a limit: {reason}")
        return RunOutcome(ending, self._stop_reason)

    def _crash(self, error: BaseException) -> RunOutcome:
        # AutoGen hands on an agent's exception as text only; the client kept the real one
        real = self.log.last_error or error
        if isinstance(real, ModelFailure):
            return RunOutcome(None, error_class=real.error_class, error_message=str(real))
        if isinstance(real, ScriptError):
            return RunOutcome(None, error_class=ErrorClass.TEAM, error_message=str(real))
        first_line = (str(real) or type(real).__name__).split("\n", 1)[0]
        return RunOutcome(None, error_class=ErrorClass.TEAM, error_message=f"{type(real).__name__}: {first_line}")

    async def _stop(self, consumer: asyncio.Future[None]) -> bool:
        """Stop the team in two steps; whether it did stop. The order and the waits are those that left nothing behind."""
        self._token.cancel()
        if await _settled(consumer):
            return True
        for task in background_tasks(self._team):
            task.cancel()
        if await _settled(consumer):
            return True
        consumer.cancel()
        return await _settled(consumer)

    def _out_of_tokens(self) -> bool:
        limits, log = self._limits, self.log
        if limits.max_tokens is not None and log.tokens_in + log.tokens_out >= limits.max_tokens:
            return True
        cost = self._cost(log.tokens_in, log.tokens_out) if limits.max_cost is not None else None
        return cost is not None and limits.max_cost is not None and cost >= limits.max_cost


async def _settled(consumer: asyncio.Future[None]) -> bool:
    done, _ = await asyncio.wait({consumer}, timeout=_GRACE_S)
    if done and not consumer.cancelled():
        consumer.exception()  # marks it as seen, or the loop complains when it is collected
    return bool(done)
