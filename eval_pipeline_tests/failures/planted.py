"""Traces for the tests of this package, written down as who said what."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from eval_pipeline.failures.trace import Event, Trace
from eval_pipeline.jsontypes import JsonValue

Draft = dict[str, Any]


def says(source: str, content: str) -> Draft:
    return {"message_type": "agent_message", "source": source, "content": content}


def chooses(target: str, reason_code: str = "NEEDS_PLANNING") -> Draft:
    return {"message_type": "selector_decision", "source": "selector", "target": target, "reason_code": reason_code}


def calls(name: str, arguments: JsonValue = None, call_id: str = "c1", source: str = "executor") -> Draft:
    return {
        "message_type": "tool_call",
        "source": source,
        "tool_name": name,
        "tool_call_id": call_id,
        "tool_args": {} if arguments is None else arguments,
    }


def returns(name: str, content: str, call_id: str = "c1") -> Draft:
    return {
        "message_type": "tool_result",
        "source": "executor",
        "tool_name": name,
        "tool_call_id": call_id,
        "content": content,
    }


def fails(name: str, error_type: str, call_id: str = "c1") -> Draft:
    return {**returns(name, f"{error_type}: no", call_id), "message_type": "tool_error", "error_type": error_type}


def trace(*drafts: Draft, **head: Any) -> Trace:
    """A completed run that was approved and right, with these events; the user's question comes first."""
    question = "How many tiles does the floor need?"
    empty: Draft = dict.fromkeys(Event.__slots__)
    events = [
        Event(**{**empty, "content": "", **draft, "seq": seq})
        for seq, draft in enumerate([says("user", question), *drafts])
    ]
    defaults: dict[str, Any] = {
        "run_id": uuid4(),
        "status": "completed",
        "success": True,
        "format_valid": True,
        "terminated_by": "approve",
        "final_answer": "42",
        "question": question,
        "answers": "line",
    }
    return Trace(events=tuple(events), **{**defaults, **head})


def clean_trace() -> Trace:
    """A run with tools in which everything goes as it should."""
    return trace(
        chooses("planner"),
        says("planner", "Call read_attached_file with the path /stage/t1/floor.txt."),
        chooses("executor", "NEEDS_EXECUTION"),
        calls("read_attached_file", {"path": "/stage/t1/floor.txt"}),
        returns("read_attached_file", "7 by 6"),
        says("executor", "7 by 6"),
        chooses("planner"),
        says("planner", "Call python_calc with 7 * 6."),
        chooses("executor", "NEEDS_EXECUTION"),
        calls("python_calc", {"expression": "7 * 6"}, "c2"),
        returns("python_calc", "42", "c2"),
        says("executor", "42"),
        chooses("planner"),
        says("planner", "FINAL ANSWER: 42"),
        chooses("critic", "NEEDS_VERIFICATION"),
        says("critic", "APPROVE"),
    )
