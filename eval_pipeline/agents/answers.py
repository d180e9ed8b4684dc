"""What an endpoint sent, read as one whole answer: over every dialect of deltas, usage and finish reason.

AutoGen's reading drops usage and finish reasons of several servers and lets truncated and empty answers pass for whole
ones. Sending requests belongs to :mod:`eval_pipeline.agents.endpoint`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from autogen_core import FunctionCall
from openai.types.chat import ChatCompletion

from eval_pipeline.agents.completion import Completion, ModelFailure, Progress
from eval_pipeline.agents.failures import refused
from eval_pipeline.errors import ErrorClass
from eval_pipeline.tracing.items import Usage

_REASONING_FIELDS = ("reasoning_content", "reasoning")
_THINK, _THOUGHT = "<think>", "</think>"
_SHOWN = 200


def whole(answer: object, *, split_reasoning: bool) -> Completion:
    """Read an answer that came in one piece. ``split_reasoning`` takes a leading ``<think>`` block out of the text.

    Raises:
        ModelFailure: it is not a completion: a gateway's page, an error with status 200, no choices.
    """
    choice = next(iter(_list(_field(answer, "choices"))), None)
    message = _field(choice, "message")
    if not isinstance(answer, ChatCompletion) or message is None:
        raise _no_completion(answer)
    text = _text(_field(message, "content"))
    calls = [
        _Call(_word(_field(call, "id")), _word(_field(called, "name")), _arguments(called))
        for call in _list(_field(message, "tool_calls"))
        # the type is left out by some servers
        if (called := _field(call, "function")) is not None
    ]
    progress = Progress(
        usage=_usage(_field(answer, "usage")),
        finish_reason=_word(_field(choice, "finish_reason")) or None,
        model=_word(_field(answer, "model")) or None,
    )
    return _completion(text, _reasoning(message), calls, progress, split_reasoning)


def whole_of_body(body: bytes, *, split_reasoning: bool) -> Completion:
    """Read an answer that came in one piece although a stream was asked for.

    Raises:
        ModelFailure: as :func:`whole`.
    """
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        raise _no_completion(body.decode("utf-8", "replace")) from None
    if not isinstance(fields, dict):
        raise _no_completion(fields)
    return whole(ChatCompletion.construct(**fields), split_reasoning=split_reasoning)


def _no_completion(answer: object) -> ModelFailure:
    error = _field(answer, "error")
    if error:
        return refused(error, http_status=200)
    shown = " ".join(str(answer)[: 4 * _SHOWN].split())[:_SHOWN]
    return ModelFailure(
        ErrorClass.BAD_RESPONSE, f"HTTP 200 without a completion: {shown}", retryable=True, http_status=200
    )


@dataclass(slots=True)
class _Call:
    id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass
class Parts:
    """What a stream has delivered so far. ``progress`` is kept up to date for whoever must do without the rest."""

    progress: Progress
    started: bool = False
    _texts: list[str] = field(default_factory=list)
    _thoughts: list[str] = field(default_factory=list)
    _calls: dict[int, _Call] = field(default_factory=dict)
    _current: dict[int | None, int] = field(default_factory=dict)

    @property
    def whole(self) -> bool:
        """Whether the model has said that it is done; only its usage may be missing then."""
        return self.progress.finish_reason is not None

    def add(self, chunk: object) -> None:
        """Take in the JSON value of one chunk.

        Raises:
            ModelFailure: it is an error of the endpoint.
        """
        if error := _field(chunk, "error"):
            raise refused(error, http_status=200)
        self.started = True
        progress = self.progress
        progress.model = _word(_field(chunk, "model")) or progress.model
        # the last non-empty usage counts, wherever it rides: own chunk, finish chunk, every chunk
        usage = _field(chunk, "usage")
        if usage:
            progress.usage = _usage(usage) or progress.usage
        choices = _list(_field(chunk, "choices"))
        if not choices:
            return
        choice = choices[0]
        progress.finish_reason = _word(_field(choice, "finish_reason")) or progress.finish_reason
        delta = _field(choice, "delta")
        if reasoning := _reasoning(delta):
            self._thoughts.append(reasoning)
        self._texts.append(_text(_field(delta, "content")))
        for part in _list(_field(delta, "tool_calls")):
            self._add_call(part)

    def completion(self, *, split_reasoning: bool) -> Completion:
        """The whole answer.

        Raises:
            ModelFailure: the stream ended without a finish reason, so that nobody can tell whether it is whole.
        """
        if not self.whole:
            what = "ended without a finish reason" if self.started else "brought no event at all"
            raise ModelFailure(
                ErrorClass.BAD_RESPONSE,
                f"the stream {what}: the answer is cut off or is not a completion",
                retryable=not self.started,
                http_status=200,
                usage=self.progress.usage,
                model=self.progress.model,
            )
        calls = list(self._calls.values())
        return _completion("".join(self._texts), "".join(self._thoughts), calls, self.progress, split_reasoning)

    def _add_call(self, delta: object) -> None:
        given_id = _word(_field(delta, "id"))
        call = self._calls.setdefault(self._index(_field(delta, "index"), given_id), _Call())
        # some servers send id and name with every delta: keep the first instead of joining them
        call.id = call.id or given_id
        function = _field(delta, "function")
        if function is not None:
            call.name = call.name or _word(_field(function, "name"))
            call.arguments += _arguments(function)

    def _index(self, given: object, given_id: str) -> int:
        """Which call a delta belongs to.

        Servers that count every parallel call as index 0, or send no index, start a new one with a new id; what comes
        under that index afterwards belongs to the latest.
        """
        last = max(self._calls, default=-1)
        key = given if isinstance(given, int) else None
        index = self._current.get(key, last if key is None else key)
        known = self._calls.get(index)
        if known is None:
            index = max(index, 0)
        elif given_id and known.id and given_id != known.id:
            same = [number for number, call in self._calls.items() if call.id == given_id]
            index = same[0] if same else last + 1
        self._current[key] = index
        return index


def _completion(
    text: str, reasoning: str, calls: Sequence[_Call], progress: Progress, split_reasoning: bool
) -> Completion:
    if split_reasoning and not reasoning:
        reasoning, text = _split(text)
    asked = [FunctionCall(id=call.id, name=call.name, arguments=call.arguments) for call in calls]
    return Completion(
        content=asked or text,
        usage=progress.usage,
        finish_reason=progress.finish_reason,
        thought=reasoning or (text if asked else None) or None,
        model=progress.model,
        http_status=200,
    )


def _split(text: str) -> tuple[str, str]:
    """(reasoning, the rest). Many servers leave out the opening tag; a block without an end is all reasoning."""
    before, end, after = text.rpartition(_THOUGHT)
    if end:
        return before.strip().removeprefix(_THINK).strip(), after.strip()
    opened = text.lstrip()
    return (opened.removeprefix(_THINK).strip(), "") if opened.startswith(_THINK) else ("", text)


def _usage(raw: object) -> Usage | None:
    """Token counts of a usage object; unknown, zero and nonsensical counts are ``None``."""

    def count(name: str) -> int | None:
        value = _field(raw, name)
        return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None

    usage = Usage(count("prompt_tokens"), count("completion_tokens"))
    return None if usage == Usage(None, None) else usage


def _reasoning(part: object) -> str:
    for name in _REASONING_FIELDS:
        value = _field(part, name)
        if isinstance(value, str) and value:
            return value
    return ""


def _text(content: object) -> str:
    """A content that is a text, or a list of parts of which some are texts."""
    if isinstance(content, str):
        return content
    parts = (part.get("text") for part in _list(content) if isinstance(part, Mapping))
    return "".join(part for part in parts if isinstance(part, str))


def _field(thing: object, name: str) -> object:
    """A field of what was read as plain JSON, or of an object of the SDK; ``None`` where there is none."""
    return thing.get(name) if isinstance(thing, dict) else getattr(thing, name, None)


def _word(value: object) -> str:
    return value if isinstance(value, str) else ""


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _arguments(function: object) -> str:
    """The arguments as text; some servers send the object itself."""
    value = _field(function, "arguments")
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False, default=str)
