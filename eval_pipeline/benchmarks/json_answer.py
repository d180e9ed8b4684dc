"""The JSON in a model's answer, read strictly: no key twice, no NaN, bounded in size and depth.

What the values mean belongs to the benchmark. Numbers with a point come out as :class:`decimal.Decimal`, so that none
of their digits is lost.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator
from decimal import Decimal
from typing import TypeAlias

from eval_pipeline.benchmarks.fences import fenced_blocks
from eval_pipeline.ids import shown

Json: TypeAlias = "bool | int | float | Decimal | str | list[Json] | dict[str, Json] | None"

MAX_CHARACTERS = 2_000_000
"""Of an answer; far more than any model writes."""
MAX_VALUES = 100_000
"""Of an answer, containers included."""
MAX_DEPTH = 40
_MAX_DIGITS = 400


class NotJsonError(ValueError):
    """An answer that is not the one JSON value that was asked for; the message says why, in one short line."""


def find_json(text: str) -> Json:
    """The one JSON value in ``text``: the whole of it, else its one fenced block, else from first ``{`` to last ``}``.

    Raises:
        NotJsonError: there is none, or it breaks a rule of :func:`read_json`.
    """
    text = text.strip().strip("\ufeff\u200b").strip()
    if not text:
        raise NotJsonError("there is no text")
    if len(text) > MAX_CHARACTERS:
        raise NotJsonError(f"it is longer than {MAX_CHARACTERS:,} characters")
    try:
        return read_json(text)
    except NotJsonError as whole:
        part = _part(text)
        if part is None or part == text:
            raise whole from None
        return read_json(part)


def read_json(text: str) -> Json:
    """``text`` as one JSON value, its keys in NFC.

    Raises:
        NotJsonError: not JSON, a key that stands twice in one object (in any form of Unicode), a number that JSON does
            not have, or more values or levels than an answer may have.
    """
    try:
        value: Json = json.loads(
            text,
            object_pairs_hook=_without_doubles,
            parse_constant=_no_constant,
            parse_float=_decimal,
            parse_int=_whole,
        )
    except json.JSONDecodeError as exc:
        raise NotJsonError(f"it is not valid JSON ({exc.msg} at character {exc.pos + 1:,})") from None
    except RecursionError:
        raise NotJsonError(f"it is nested deeper than {MAX_DEPTH} levels") from None
    check_size(value)
    return value


def check_size(value: Json) -> None:
    """See that ``value`` can be walked through.

    Raises:
        NotJsonError: more than :data:`MAX_VALUES` values or :data:`MAX_DEPTH` levels.
    """
    count = 0
    level: list[Json] = [value]
    for _ in range(MAX_DEPTH):
        count += len(level)
        if count > MAX_VALUES:
            raise NotJsonError(f"it has more than {MAX_VALUES:,} values")
        level = [child for item in level for child in _children(item)]
        if not level:
            return
    raise NotJsonError(f"it is nested deeper than {MAX_DEPTH} levels")


def _part(text: str) -> str | None:
    """What may be the JSON inside of a longer text: of two fenced blocks nobody can say which one is meant."""
    blocks = fenced_blocks(text)
    if len(blocks) > 1:
        raise NotJsonError(f"it has {len(blocks):,} fenced blocks, where one JSON value was asked for")
    if blocks:
        return blocks[0].body.strip()
    start, end = text.find("{"), text.rfind("}")
    return text[start : end + 1] if -1 < start < end else None


def _children(value: Json) -> Iterator[Json]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _without_doubles(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    values: dict[str, Json] = {}
    for key, value in pairs:
        name = unicodedata.normalize("NFC", key)
        if name in values:
            raise NotJsonError(f"the key {shown(name)} stands twice in one object")
        values[name] = value
    return values


def _no_constant(word: str) -> Json:
    raise NotJsonError(f"{word} is no JSON number")


def _decimal(digits: str) -> Json:
    # longer ones would be held for nothing, and an exponent may be larger than any number type takes
    if len(digits) > _MAX_DIGITS or len(digits.lower().partition("e")[2]) > 6:
        raise NotJsonError("it holds a number that is too long")
    return Decimal(digits)


def _whole(digits: str) -> Json:
    if len(digits) > _MAX_DIGITS:
        raise NotJsonError("it holds a number that is too long")
    return int(digits)
