"""AutoGen's stream objects as :class:`~eval_pipeline.tracing.items.StreamItem`.

Objects are told apart by their ``type`` text, never by AutoGen's unions, which do not know all of them. What becomes
a row is decided in :mod:`eval_pipeline.tracing`.
"""

from __future__ import annotations

from collections import deque

from autogen_agentchat.base import TaskResult
from autogen_agentchat.messages import (
    BaseChatMessage,
    HandoffMessage,
    SelectorEvent,
    SelectSpeakerEvent,
    ToolCallExecutionEvent,
    ToolCallRequestEvent,
)
from autogen_core.models import RequestUsage

from eval_pipeline.agents.call_log import SelectorAttempt
from eval_pipeline.agents.tool_adapter import ToolLedger
from eval_pipeline.jsontypes import JsonValue
from eval_pipeline.tracing.items import StreamItem, ToolCall, ToolOutcome, Usage


def _usage(raw: RequestUsage | None) -> Usage | None:
    """Zero means that AutoGen was not told: unknown, not free."""
    if raw is None or (not raw.prompt_tokens and not raw.completion_tokens):
        return None
    return Usage(raw.prompt_tokens or None, raw.completion_tokens or None)


class StreamReader:
    """Translates the objects of one run, joining in what the role clients and tools recorded of it."""

    def __init__(
        self, selector_attempts: deque[SelectorAttempt], ledger: ToolLedger, *, allow_repeated_speaker: bool
    ) -> None:
        self._selector_attempts = selector_attempts
        self._ledger = ledger
        self._allow_repeated_speaker = allow_repeated_speaker
        self._speaker: str | None = None

    def item(self, thing: object) -> StreamItem:
        """The item for one stream object; an unknown object becomes an item that only has its type."""
        kind = str(getattr(thing, "type", type(thing).__name__))
        source = str(getattr(thing, "source", ""))
        usage = _usage(getattr(thing, "models_usage", None))
        match thing:
            case TaskResult():
                return StreamItem("TaskResult", stop_reason=thing.stop_reason)
            case ToolCallRequestEvent():
                calls = tuple(ToolCall(call.id, call.name, call.arguments) for call in thing.content)
                return StreamItem(kind, source, usage=usage, calls=calls)
            case ToolCallExecutionEvent():
                return StreamItem(kind, source, outcomes=self._outcomes(thing))
            case SelectorEvent():
                return self._selection(kind, source, thing)
            case SelectSpeakerEvent():
                self._speaker = thing.content[0] if thing.content else None
                return StreamItem(kind, source, chosen=self._speaker)
            case HandoffMessage():
                return StreamItem(kind, source, text=thing.content, usage=usage, handoff_target=thing.target)
            case BaseChatMessage():
                return StreamItem(kind, source, text=thing.to_text(), usage=usage)
            case _:
                return StreamItem(kind, source, payload=_scalars(thing))

    def _selection(self, kind: str, source: str, event: SelectorEvent) -> StreamItem:
        attempt = SelectorAttempt(event.content, event.content)
        if self._selector_attempts:
            attempt = self._selector_attempts.popleft()
        # AutoGen refuses the previous speaker, but takes it when all attempts have failed: that is no choice either
        refused = not self._allow_repeated_speaker and attempt.chosen == self._speaker
        return StreamItem(kind, source, text=attempt.text, chosen="" if refused else attempt.chosen)

    def _outcomes(self, event: ToolCallExecutionEvent) -> tuple[ToolOutcome, ...]:
        outcomes = []
        for result in event.content:
            entry = self._ledger.take(result.call_id)
            # without an entry the tool was never reached: bad JSON or a name that the team does not have
            error_type = (entry.error_type if entry else "ToolCallError") if result.is_error else None
            outcomes.append(
                ToolOutcome(
                    call_id=result.call_id,
                    name=result.name,
                    content=result.content,
                    is_error=bool(result.is_error),
                    error_type=error_type,
                    latency_ms=entry.latency_ms if entry else None,
                )
            )
        return tuple(outcomes)


def _scalars(thing: object) -> dict[str, JsonValue]:
    attributes = getattr(thing, "__dict__", {})
    return {name: value for name, value in attributes.items() if isinstance(value, str | int | float | bool)}
