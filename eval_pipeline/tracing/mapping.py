"""Which kind of row an object of the stream becomes: a pure table, no I/O.

What goes into the row is decided in :mod:`eval_pipeline.tracing.records`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

AGENT_MESSAGE = "agent_message"
SELECTOR_DECISION = "selector_decision"
TOOL_CALL = "tool_call"
TOOL_RESULT = "tool_result"
TOOL_ERROR = "tool_error"
FINAL_ANSWER = "final_answer"
EVALUATOR_SCORE = "evaluator_score"
HANDOFF = "handoff"

MESSAGE_TYPES = (
    AGENT_MESSAGE,
    SELECTOR_DECISION,
    TOOL_CALL,
    TOOL_RESULT,
    TOOL_ERROR,
    FINAL_ANSWER,
    EVALUATOR_SCORE,
    HANDOFF,
)

TOOL_SUMMARY_TYPE = "ToolCallSummaryMessage"
"""An agent's message whose text is what its tools returned, not what the agent wrote."""
SPEAKER_TYPE = "SelectSpeakerEvent"
"""Whom AutoGen really lets speak; usually it only confirms the ``SelectorEvent`` before it."""

_LADDER = {
    "TaskResult": FINAL_ANSWER,
    "ToolCallExecutionEvent": TOOL_RESULT,
    "ToolCallRequestEvent": TOOL_CALL,
    "SelectorEvent": SELECTOR_DECISION,
    SPEAKER_TYPE: SELECTOR_DECISION,
    "TextMessage": AGENT_MESSAGE,
    TOOL_SUMMARY_TYPE: AGENT_MESSAGE,
    "StructuredMessage": AGENT_MESSAGE,
    "MultiModalMessage": AGENT_MESSAGE,
    "StopMessage": AGENT_MESSAGE,
    "HandoffMessage": HANDOFF,
}
_SCORE_TYPE = re.compile(r"evaluat(?:or|ion)_?score(?:event|message)?", re.IGNORECASE)


def message_type(type_name: str, attributes: Mapping[str, object] | None = None) -> str | None:
    """The message type of an object whose type is called ``type_name``; ``None`` is: no row.

    ``StructuredMessage[Verdict]`` counts as ``StructuredMessage``. A tool execution is given as
    ``tool_result``; each of its items is a ``tool_error`` instead where the tool failed. Evaluator scores are
    not a class of AutoGen: they are known by their name and, where ``attributes`` are given, by a numeric
    ``score`` among them. Chunks, thoughts and whatever is unknown have no row.
    """
    known = _LADDER.get(type_name.partition("[")[0])
    if known is not None:
        return known
    if _SCORE_TYPE.fullmatch(type_name) and (attributes is None or _has_score(attributes)):
        return EVALUATOR_SCORE
    return None


def _has_score(attributes: Mapping[str, object]) -> bool:
    score = attributes.get("score")
    return isinstance(score, int | float) and not isinstance(score, bool)
