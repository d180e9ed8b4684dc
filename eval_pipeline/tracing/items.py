"""What a team's stream consists of, in our own types: the boundary between AutoGen and the trace.

:mod:`eval_pipeline.agents` produces these, :mod:`eval_pipeline.tracing.records` turns them into rows. No I/O, no
AutoGen, no SQL here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from eval_pipeline.errors import ErrorClass
from eval_pipeline.jsontypes import JsonValue


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one model call; ``None`` is unknown, never zero."""

    prompt_tokens: int | None
    completion_tokens: int | None


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call that a model asked for. ``arguments`` is the model's text, JSON or not."""

    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """What one call came to. ``error_type`` is the exception's class name where ``is_error``."""

    call_id: str
    name: str
    content: str
    is_error: bool
    error_type: str | None = None
    latency_ms: int | None = None


@dataclass(frozen=True, slots=True)
class StreamItem:
    """One object of ``team.run_stream``.

    ``type`` is AutoGen's class name (``TextMessage``, ``ToolCallRequestEvent``, ``SelectorEvent``,
    ``TaskResult`` …). Only the fields that this type has are filled:

    * messages: ``text``; ``handoff_target`` too for a handoff
    * tool call requests: ``calls``; executions: ``outcomes``
    * ``SelectorEvent``: ``text`` is what the model wrote for this attempt, ``chosen`` the name AutoGen can take from
      it; empty where it names no participant, or one who must not speak
    * ``SelectSpeakerEvent``: ``chosen`` is the speaker that AutoGen really takes
    * evaluator scores: ``payload``
    * ``TaskResult``: ``stop_reason`` and ``terminated_by``
    """

    type: str
    source: str = ""
    text: str = ""
    usage: Usage | None = None
    calls: tuple[ToolCall, ...] = ()
    outcomes: tuple[ToolOutcome, ...] = ()
    chosen: str | None = None
    handoff_target: str | None = None
    stop_reason: str | None = None
    terminated_by: str | None = None
    payload: Mapping[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One request to the model, successful or not; a row of ``model_calls``.

    ``role`` is planner, executor, critic or selector; ``kind`` turn, tool_loop, reflection or selection; ``attempt``
    counts from 1 the tries of our own retries at the same request; ``outcome`` is ok, error or cancelled.
    """

    role: str
    kind: str
    attempt: int
    started_at: datetime
    latency_ms: int
    outcome: str
    finish_reason: str | None = None
    usage: Usage | None = None
    http_status: int | None = None
    error_class: ErrorClass | None = None
    error_message: str | None = None
    model: str | None = None
