"""Makes any text and any JSON value fit for PostgreSQL, changing nothing that is fit already.

PostgreSQL refuses NUL in ``text`` and ``jsonb``, lone surrogates in both, and in ``jsonb`` numbers that JSON
does not know; it has limits on nesting. What may be shown is the business of
:mod:`eval_pipeline.tracing.masking`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

from eval_pipeline.jsontypes import JsonValue

REPLACEMENT = "\ufffd"
DEEPEST = 100
"""Levels of nesting kept of a JSON value; far below what the stacks of Python and PostgreSQL take."""
TOO_DEEP = f"[nested deeper than {DEEPEST} levels]"
_LONGEST_NUMBER = 100
_LARGEST_INT = 10**_LONGEST_NUMBER


def clean(text: str) -> tuple[str, int]:
    """``text`` with U+FFFD for each NUL and lone surrogate, and how many there were.

    Two surrogates that belong together, as joined pieces of a stream can leave them, become the one character
    that they stand for; nothing is lost by that, so it is not counted.
    """
    repairs = text.count("\0")
    if repairs:
        text = text.replace("\0", REPLACEMENT)
    if text.isascii():
        return text, repairs
    try:
        text.encode()
    except UnicodeEncodeError:
        before = text.count(REPLACEMENT)
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        repairs += text.count(REPLACEMENT) - before
    return text, repairs


def clean_json(value: object) -> tuple[JsonValue, int]:
    """``value`` as a JSON value that ``jsonb`` takes, and how many repairs that needed.

    Strings and keys go through :func:`clean`. What JSON cannot say becomes text: NaN, infinities, integers of
    more than 100 digits (as hexadecimal), objects of other types. What is nested deeper than 100 levels is
    replaced by a remark and counted as one repair.
    """
    return _clean_json(value, DEEPEST)


def _clean_json(value: object, levels: int) -> tuple[JsonValue, int]:
    match value:
        case None | bool():
            return value, 0
        case str():
            return clean(value)
        case int() | float():
            return _speakable(value), 0
        case Mapping() | list() | tuple() if levels == 0:
            return TOO_DEEP, 1
        case Mapping() | list() | tuple():
            return _clean_inside(value, levels - 1)
    return clean(_as_text(value))


def _clean_inside(
    container: Mapping[object, object] | list[object] | tuple[object, ...], levels: int
) -> tuple[JsonValue, int]:
    if not isinstance(container, Mapping):
        items = [_clean_json(item, levels) for item in container]
        return [item for item, _ in items], sum(count for _, count in items)
    members: dict[str, JsonValue] = {}
    repairs = 0
    for key, member in container.items():
        name, in_name = clean(_as_text(key))
        members[name], in_member = _clean_json(member, levels)
        repairs += in_name + in_member
    return members, repairs


def _speakable(number: float) -> JsonValue:
    """``number``, or how it is written where JSON cannot say it."""
    if isinstance(number, int):
        return number if -_LARGEST_INT < number < _LARGEST_INT else hex(number)
    if math.isfinite(number):
        return number
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"


def _as_text(value: object) -> str:
    try:
        return str(value)
    except Exception:
        return f"[{type(value).__name__} without a text]"


def parse_json(text: str) -> JsonValue:
    """Read a JSON text so that no number of it is lost: what a float or 100 digits cannot hold stays as
    written.

    Raises:
        ValueError: not JSON, or nested too deep to be read.
    """
    try:
        value: JsonValue = json.loads(text, parse_float=_float_or_text, parse_int=_int_or_text, parse_constant=str)
    except RecursionError:
        raise ValueError("nested too deep") from None
    return value


def _float_or_text(digits: str) -> float | str:
    number = float(digits)
    return number if math.isfinite(number) else digits


def _int_or_text(digits: str) -> int | str:
    return int(digits) if len(digits) <= _LONGEST_NUMBER else digits
