from __future__ import annotations

import pytest

from eval_pipeline.tracing.mapping import MESSAGE_TYPES, message_type


@pytest.mark.parametrize(
    ("type_name", "expected"),
    [
        ("TaskResult", "final_answer"),
        ("ToolCallExecutionEvent", "tool_result"),
        ("ToolCallRequestEvent", "tool_call"),
        ("SelectorEvent", "selector_decision"),
        ("SelectSpeakerEvent", "selector_decision"),
        ("EvaluatorScoreEvent", "evaluator_score"),
        ("evaluator_score", "evaluator_score"),
        ("EvaluationScore", "evaluator_score"),
        ("TextMessage", "agent_message"),
        ("ToolCallSummaryMessage", "agent_message"),
        ("StructuredMessage", "agent_message"),
        ("StructuredMessage[Verdict]", "agent_message"),
        ("StructuredMessage[dict[str, int]]", "agent_message"),
        ("MultiModalMessage", "agent_message"),
        ("StopMessage", "agent_message"),
        ("HandoffMessage", "handoff"),
        ("ModelClientStreamingChunkEvent", None),
        ("ThoughtEvent", None),
        ("MemoryQueryEvent", None),
        ("UserInputRequestedEvent", None),
        ("CodeGenerationEvent", None),
        ("CodeExecutionEvent", None),
        ("textmessage", None),
        ("MyTextMessage", None),
        ("EvaluatorScores", None),
        ("", None),
        ("[", None),
        ("TextMessage\0", None),
    ],
)
def test_a_type_becomes_what_the_ladder_says(type_name: str, expected: str | None) -> None:
    assert message_type(type_name) == expected


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"score": 0.5}, "evaluator_score"),
        ({"score": 0, "rationale": "none"}, "evaluator_score"),
        ({}, None),
        ({"score": "high"}, None),
        ({"score": True}, None),
        ({"points": 1}, None),
    ],
)
def test_an_evaluator_score_needs_a_numeric_score(attributes: dict[str, object], expected: str | None) -> None:
    assert message_type("EvaluatorScoreEvent", attributes) == expected
    assert message_type("ThoughtEvent", attributes) is None


def test_the_attributes_of_other_types_do_not_matter() -> None:
    assert message_type("TextMessage", {}) == "agent_message"


def test_the_message_types_are_eight() -> None:
    assert len(set(MESSAGE_TYPES)) == 8
