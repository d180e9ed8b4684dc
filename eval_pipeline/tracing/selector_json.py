"""What the selector's model wrote, read as ``{next, reason_code, summary}``: pure, and it never raises.

Whether the name is a participant's is for the caller to decide; rows are made in
:mod:`eval_pipeline.tracing.records`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

PARSE_FAILED = "PARSE_FAILED"
FALLBACK = "FALLBACK"
"""AutoGen chose by itself. Never a model's word: a model that writes it has named no reason."""
SHOWN_OF_A_FAILURE = 500
"""Characters kept of a text that could not be read."""

_REASON_CODE = re.compile(r"[A-Z_]{1,40}")
_LONGEST_NAME = 200
_FENCE = "```"
_THINK, _THOUGHT = "<think>", "</think>"


@dataclass(frozen=True, slots=True)
class SelectorDecision:
    """One answer of the selector. ``next`` is ``None`` exactly where the text could not be read.

    ``reason_code`` is ``PARSE_FAILED`` too where only the code was missing or malformed. ``summary`` is the
    model's, or the first 500 characters of what could not be read.
    """

    next: str | None
    reason_code: str
    summary: str


def parse_selector(text: str) -> SelectorDecision:
    """Read one answer: as JSON, without reasoning and fence, then from the first ``{`` to the last ``}``."""
    if not isinstance(text, str):  # a server's content can be anything, whatever the annotation says
        return SelectorDecision(None, PARSE_FAILED, "")
    for candidate in _candidates(text):
        decision = _decision(candidate)
        if decision is not None:
            return decision
    return SelectorDecision(None, PARSE_FAILED, text[:SHOWN_OF_A_FAILURE])


def _candidates(text: str) -> Iterator[str]:
    yield text
    answer = _without_reasoning(text)
    yield answer
    fenced = _fenced(answer)
    if fenced is not None:
        yield fenced
        yield _braced(fenced)
    yield _braced(answer)


def _without_reasoning(text: str) -> str:
    """What follows the reasoning; nothing if that has no end. Many servers leave out its opening tag."""
    end = text.rfind(_THOUGHT)
    if end >= 0:
        return text[end + len(_THOUGHT) :]
    return "" if text.lstrip().startswith(_THINK) else text


def _fenced(text: str) -> str | None:
    start = text.find(_FENCE)
    if start < 0:
        return None
    inside = text[start + len(_FENCE) :]
    first_line, newline, rest = inside.partition("\n")
    if newline and "{" not in first_line:
        inside = rest
    return inside.partition(_FENCE)[0]


def _braced(text: str) -> str:
    return text[text.find("{") : text.rfind("}") + 1] if "{" in text else ""


def _decision(candidate: str) -> SelectorDecision | None:
    try:
        answer = json.loads(candidate)
    except (ValueError, RecursionError):
        return None
    if not isinstance(answer, dict):
        return None
    name = answer.get("next")
    if not isinstance(name, str) or not name.strip() or len(name) > _LONGEST_NAME:
        return None
    summary = answer.get("summary")
    if not isinstance(summary, str):
        summary = ""
    return SelectorDecision(name.strip(), _reason(answer.get("reason_code")), summary)


def _reason(code: object) -> str:
    if not isinstance(code, str) or not _REASON_CODE.fullmatch(code.strip()) or code.strip() == FALLBACK:
        return PARSE_FAILED
    return code.strip()
