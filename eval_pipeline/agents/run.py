"""Runs one team on one message, under a deadline, to a classified end.

The outcome is decided here; rows, scores and the database are other rooms' business. AutoGen does not stop for an
``asyncio.timeout``, and its own cancellation deadlocks while a tool runs, hence the escalation below.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence, Set
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

from autogen_core import CancellationToken

from eval_pipeline.agents.call_log import CallLog, OpenRequest
from eval_pipeline.agents.completion import ModelFailure
from eval_pipeline.agents.ending import RunEnding
from eval_pipeline.agents.models import RunModels
from eval_pipeline.agents.private import background_tasks
from eval_pipeline.agents.retry import RetryPolicy
from eval_pipeline.agents.stream import StreamReader
from eval_pipeline.agents.team import build_team
from eval_pipeline.agents.tool_adapter import AdaptedTool, ToolFunction, ToolLedger
from eval_pipeline.clock import Clock
from eval_pipeline.errors import ErrorClass, ScriptError
from eval_pipeline.teams.spec import TeamSpec
from eval_pipeline.tracing.items import ModelCall, StreamItem

_GRACE_S = 0.25
"""How long each step of stopping a team may take; four of them, and the run is over within a second of its deadline."""
_IDLE_STOP = "The group chat is stopped."
_TIME_OVER = "the run's time was over"

# AutoGen logs whole tracebacks and message dumps of ordinary failures, which may hold what must not be logged; what
# there is to know of a run is in its rows
for _name in ("autogen_core", "autogen_agentchat", "autogen_ext"):
    logging.getLogger(_name).setLevel(logging.CRITICAL + 1)


@dataclass(frozen=True, slots=True)
class RunLimits:
    """Our own limits of a run; reaching one ends the run as completed. ``None`` is no limit.

    ``stall_s``: an endpoint that has said nothing for this long when time is up has stalled, so the run crashed.
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
        self._reader = StreamReader(
            self.log.selector_attempts, self._ledger, allow_repeated_speaker=spec.allow_repeated_speaker
        )
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
            gate=models.gate,
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
        # AutoGen shows the task only after the first choice of a speaker, and not at all if that fails
        self._on_item(StreamItem("TextMessage", "user", text=message))
        consumer = asyncio.ensure_future(self._consume(message))
        try:
            done, _ = await asyncio.wait({consumer}, timeout=self._limits.timeout_s)
        except asyncio.CancelledError:
            await _to_its_end(self._stop(consumer))
            raise
        failed, waiting = self.log.last_error, self.log.oldest_request()
        stalled = self._stalled(waiting) if waiting else None
        stopped = await _to_its_end(self._stop(consumer))
        # a team that came to its own end while it was being stopped has ended that way
        if done or failed or self._ending.ended_by:
            outcome = self._ended(consumer)
        elif stalled:
            outcome = stalled
        else:
            self._on_item(StreamItem("TaskResult", stop_reason=_TIME_OVER, terminated_by="timeout"))
            outcome = RunOutcome("timeout", _TIME_OVER)
        return replace(outcome, abandoned=not stopped)

    async def _consume(self, message: str) -> None:
        stream = self._team.run_stream(task=message, cancellation_token=self._token, output_task_messages=False)
        async with aclosing(stream):
            async for thing in stream:
                item = self._reader.item(thing)
                if item.type != "TaskResult":
                    self._on_item(item)
                    continue
                self._stop_reason = item.stop_reason
                ending = self._ending.ended_by
                if ending is not None:
                    self._on_item(StreamItem(item.type, stop_reason=item.stop_reason, terminated_by=ending))

    def _stalled(self, waiting: OpenRequest) -> RunOutcome | None:
        """The crash that a run ends in if it is the endpoint that kept it from ending in time."""
        silent_s, limit_s = waiting.silent_s(), self._limits.timeout_s
        over = f"when the run's {limit_s:g} s were over"
        if waiting.held:
            text = f"the endpoint's rate limit was still holding requests back {over}"
            return RunOutcome(None, error_class=ErrorClass.RATE_LIMIT, error_message=text)
        if waiting.failure is not None:
            text = f"the endpoint was still failing {over}: {waiting.failure}"
            return RunOutcome(None, error_class=waiting.failure.error_class, error_message=text)
        if silent_s >= min(self._limits.stall_s, limit_s / 2):
            text = f"the endpoint had not answered for {silent_s:.0f} s {over}"
            return RunOutcome(None, error_class=ErrorClass.TIMEOUT, error_message=text)
        return None

    def _ended(self, consumer: asyncio.Future[None]) -> RunOutcome:
        ending = self._ending.ended_by
        if not consumer.done() or consumer.cancelled():
            if ending is not None:
                return RunOutcome(ending, self._stop_reason or ending)
            return self._crash(asyncio.CancelledError("the team cancelled itself; no tool or model call asked it to"))
        error = consumer.exception()
        if error is not None:
            return self._crash(error)
        if ending is None:
            reason = self._stop_reason or _IDLE_STOP
            text = f"the team stopped without a verdict or a limit: {reason}"
            return RunOutcome(None, reason, ErrorClass.TEAM, text)
        return RunOutcome(ending, self._stop_reason)

    def _crash(self, error: BaseException) -> RunOutcome:
        # AutoGen hands on an agent's exception as text only; the client kept the real one
        real = self.log.last_error or error
        if isinstance(real, ModelFailure):
            return RunOutcome(None, error_class=real.error_class, error_message=str(real))
        first_line = (str(real) or type(real).__name__).split("\n", 1)[0]
        text = first_line if isinstance(real, ScriptError) else f"{type(real).__name__}: {first_line}"
        return RunOutcome(None, error_class=ErrorClass.TEAM, error_message=text)

    async def _stop(self, consumer: asyncio.Future[None]) -> bool:
        """Stop what is left of the team; whether nothing is. The order is the one that left nothing behind.

        The token alone ends a model call, but never a tool call; the runtime's tasks must be cancelled for that, and
        the consumer only when they are gone.
        """
        self._token.cancel()
        tools = asyncio.ensure_future(self._ledger.stop(4 * _GRACE_S))
        stopped = await _settled({consumer})
        if not stopped:
            _cancel(background_tasks(self._team))
            stopped = await _settled({consumer})
        if not stopped:
            consumer.cancel()
            stopped = await _settled({consumer})
        left = {*background_tasks(self._team), *self.log.tasks}
        _cancel(left)
        settled = await _settled(left)
        return await tools and stopped and settled

    def _out_of_tokens(self) -> bool:
        limits = self._limits
        tokens_in, tokens_out = self.log.tokens_in or 0, self.log.tokens_out or 0
        if limits.max_tokens is not None and tokens_in + tokens_out >= limits.max_tokens:
            return True
        cost = self._cost(tokens_in, tokens_out) if limits.max_cost is not None else None
        return cost is not None and limits.max_cost is not None and cost >= limits.max_cost


def _cancel(tasks: Iterable[asyncio.Future[Any]]) -> None:
    for task in tasks:
        task.cancel()


async def _settled(tasks: Set[asyncio.Future[Any]]) -> bool:
    """Whether all of ``tasks`` end within the grace; what they ended in is marked as seen."""
    if not tasks:
        return True
    done, left = await asyncio.wait(tasks, timeout=_GRACE_S)
    for task in done:
        if not task.cancelled():
            task.exception()  # or the loop complains when it is collected
    return not left


async def _to_its_end(work: Coroutine[Any, Any, bool]) -> bool:
    """Await ``work``, which is short: a cancellation that comes meanwhile is too late to change anything."""
    task = asyncio.ensure_future(work)
    while not task.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.shield(task)
    return task.result()
