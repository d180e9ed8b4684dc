"""Tool calls as a model wrote them, made so that AutoGen can execute and pair them, and servers take them back.

What a call's arguments mean to a tool is checked in :mod:`eval_pipeline.agents.tool_adapter`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from autogen_core import FunctionCall

UNREADABLE = "_raw"
"""The key under which arguments that are no JSON object are sent back to the endpoint."""


def executable(calls: Sequence[FunctionCall], answer: str) -> list[FunctionCall]:
    """``calls`` with ids that are there and single, and arguments that AutoGen's own reading survives.

    A null id makes AutoGen wait for ever, and so do arguments that its parser dies of; an empty argument text is an
    error even for a tool without parameters. ``answer`` names the answer that the calls are from, for ids of our own.
    """
    seen: set[str] = set()
    repaired = []
    for number, call in enumerate(calls, start=1):
        call_id = call.id.strip() or f"call-{answer}-{number}"
        while call_id in seen:
            call_id = f"{call_id}~{number}"
        seen.add(call_id)
        repaired.append(FunctionCall(id=call_id, name=call.name, arguments=_parsable(call.arguments)))
    return repaired


def object_text(arguments: str) -> str:
    """``arguments`` if they are the text of a JSON object, else one that holds them under ``_raw``.

    Servers parse the arguments of earlier calls to fill in their template, and refuse the request over a bad one.
    """
    try:
        if isinstance(json.loads(arguments), dict):
            return arguments
    except (ValueError, RecursionError):
        pass
    return json.dumps({UNREADABLE: arguments}, ensure_ascii=False)


def _parsable(arguments: str) -> str:
    text = arguments.strip() or "{}"
    try:
        json.loads(text)
    except json.JSONDecodeError:
        return text  # the one error that AutoGen turns into an answer to the model
    except (ValueError, RecursionError) as error:
        # a number of thousands of digits, or brackets nested by the thousand
        return f"unreadable ({type(error).__name__}): {text}"
    return text
