"""YAML that people write by hand, read into plain values without YAML's surprises.

A file holds one document of mappings, lists, texts, whole numbers, decimals, true, false and null. What YAML
would do silently is refused: a key given twice, an alias (which can blow a small file up to gigabytes), a
tag, deep nesting. ``no``, ``007`` and ``2026-11-30`` stay texts. What the values mean is checked by whoever
asked for them.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

import yaml

from eval_pipeline.errors import EvalPipelineError
from eval_pipeline.ids import shown
from eval_pipeline.jsontypes import JsonObject, JsonScalar, JsonValue

# the one in C, where PyYAML was built with it, is ten times as fast; what is wrong the other one says better
_FAST: type[yaml.SafeLoader] | None = getattr(yaml, "CSafeLoader", None)

MAX_BYTES = 256 * 1024
_MAX_DEPTH = 12
_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})")
_FLOAT = re.compile(r"[-+]?(?:[0-9]{1,18}\.[0-9]{0,18}|\.[0-9]{1,18})(?:[eE][-+]?[0-9]{1,2})?")
_WORDS: dict[str, JsonScalar] = {"": None, "~": None, "null": None, "true": True, "false": False}


def read_yaml(path: Path, where: str, error: type[EvalPipelineError]) -> JsonValue:
    """The value that the file ``path`` holds; ``None`` for an empty one.

    ``where`` names the file in messages.

    Raises:
        error: not a regular file, unreadable, over 256 KiB, not UTF-8, not YAML, or a construct that is
            refused; one line with the place inside the file.
    """
    try:
        if not path.is_file():
            raise error(f"{where}: is not a file")
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as exc:
        raise error(f"{where}: cannot be read ({getattr(exc, 'strerror', None) or exc})") from exc
    if len(data) > MAX_BYTES:
        raise error(f"{where}: is larger than {MAX_BYTES // 1024} KiB, which no file of this kind needs")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise error(f"{where}: byte {exc.start} ({data[exc.start]:#04x}) is not UTF-8; save the file as UTF-8") from exc
    return parse_yaml(text, where, error)


def parse_yaml(text: str, where: str, error: type[EvalPipelineError]) -> JsonValue:
    """Like :func:`read_yaml`, for text that has been read already."""
    with contextlib.suppress(yaml.YAMLError, ValueError, OverflowError, EvalPipelineError):
        if _FAST is not None:
            return _Builder(yaml.parse(text, Loader=_FAST), where, error).document()
    builder = _Builder(yaml.parse(text, Loader=yaml.SafeLoader), where, error)
    try:
        return builder.document()
    except yaml.YAMLError as exc:
        raise error(f"{where}: is not valid YAML ({_explained(exc)})") from exc
    except (ValueError, OverflowError) as exc:
        # the scanner turns an escape such as "\U99999999" into a character without checking it
        raise error(f"{where}: is not valid YAML ({exc})") from exc


def _explained(exc: yaml.YAMLError) -> str:
    if isinstance(exc, yaml.MarkedYAMLError) and exc.problem_mark is not None:
        return f"line {exc.problem_mark.line + 1}: {exc.problem or exc.context}"
    return " ".join(str(exc).split())


class _Builder:
    """Values out of parser events, one document deep; recursion is bounded by ``_MAX_DEPTH``."""

    def __init__(self, events: Iterator[yaml.Event], where: str, error: type[EvalPipelineError]) -> None:
        self._events = events
        self._where = where
        self._error = error

    def document(self) -> JsonValue:
        next(self._events)
        if isinstance(next(self._events), yaml.StreamEndEvent):
            return None
        value = self._value(next(self._events), 0)
        next(self._events)
        after = next(self._events)
        if not isinstance(after, yaml.StreamEndEvent):
            raise self._refused(after, "a second document begins; keep one per file")
        return value

    def _refused(self, event: yaml.Event, why: str) -> EvalPipelineError:
        line = f"line {event.start_mark.line + 1}: " if event.start_mark else ""
        return self._error(f"{self._where}: {line}{why}")

    def _check(self, event: yaml.Event, depth: int) -> None:
        if isinstance(event, yaml.AliasEvent):
            raise self._refused(event, f"the alias *{event.anchor} is not supported; write the value out")
        if (tag := getattr(event, "tag", None)) is not None:
            raise self._refused(event, f"the tag {shown(tag)} is not supported; write the plain value")
        if depth > _MAX_DEPTH:
            raise self._refused(event, f"is nested more than {_MAX_DEPTH} deep")

    def _value(self, event: yaml.Event, depth: int) -> JsonValue:
        self._check(event, depth)
        if isinstance(event, yaml.ScalarEvent):
            return _plain(event.value) if event.implicit[0] else str(event.value)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._list(depth + 1)
        return self._mapping(depth + 1)

    def _list(self, depth: int) -> list[JsonValue]:
        values: list[JsonValue] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            values.append(self._value(event, depth))
        return values

    def _mapping(self, depth: int) -> JsonObject:
        values: JsonObject = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            self._check(event, depth)
            if not isinstance(event, yaml.ScalarEvent):
                raise self._refused(event, "a key must be a plain text")
            key = str(event.value)
            if key in values:
                raise self._refused(event, f"the key {shown(key)} stands twice")
            values[key] = self._value(next(self._events), depth)
        return values


def _plain(word: str) -> JsonScalar:
    if word in _WORDS:
        return _WORDS[word]
    if _INT.fullmatch(word):
        return int(word)
    return float(word) if _FLOAT.fullmatch(word) else word
