"""One value of an extraction as it is compared: by its type in JSON, or by the type that a schema gives it.

Two values are equal if their keys are. Which value is compared with which belongs to
:mod:`~eval_pipeline.benchmarks.extract_match`.
"""

from __future__ import annotations

import datetime as dt
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from types import MappingProxyType
from typing import Literal, TypeAlias

from eval_pipeline.benchmarks.dates import read_date

Scalar: TypeAlias = "bool | int | float | Decimal | str"
Key: TypeAlias = "tuple[str, object]"
"""The kind of a value, and what is compared: hashable."""
ValueType: TypeAlias = Literal["number", "date", "enum", "id", "text"]

_LONGEST = 200
"""Characters of a text that may be read as a number or a date."""
_SIGNS = r"(?:us|hk|au|ca)?\$|[€£¥₩元]|krw|usd|eur|gbp|jpy|cny|chf"
_BEFORE = re.compile(rf"\A(?:{_SIGNS})\s*")
_BEHIND = re.compile(rf"(?<=[\d.])\s*(?:{_SIGNS}|원정?|won|dollars?|euros?|%)\Z")
_GROUPED = r"\d{{1,3}}(?:[{group}' ]\d{{3}})+|\d+"
_NUMBER = re.compile(rf"(?:{_GROUPED.format(group=',')})?(?:(?<=\d)\.\d*|\.\d+)?(?:e[+-]?\d{{1,4}})?")
_COMMA_NUMBER = re.compile(rf"(?:{_GROUPED.format(group='.')})?(?:(?<=\d),\d*|,\d+)?(?:e[+-]?\d{{1,4}})?")


@dataclass(frozen=True, slots=True)
class Typed:
    """How one value is read. ``day_first`` and ``year_first`` are for dates, ``decimal_comma`` for numbers.

    ``spellings`` maps what may be written for a value of an enumeration to that value; see :func:`spelling_table`.
    """

    kind: ValueType
    day_first: bool = False
    year_first: bool = False
    decimal_comma: bool = False
    spellings: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


def value_key(value: Scalar, typed: Typed | None) -> Key | None:
    """What ``value`` is compared by; ``None`` where it cannot be read as the type that it should have."""
    if typed is None:
        return _untyped(value)
    if typed.kind == "number":
        number = read_number(value, decimal_comma=typed.decimal_comma)
        return None if number is None else ("number", number)
    if isinstance(value, bool):
        return None
    text = plain_text(value)
    match typed.kind:
        case "date":
            date: dt.date | None = read_date(text, day_first=typed.day_first, year_first=typed.year_first)
            return None if date is None else ("date", date)
        case "id":
            return "id", "".join(text.split()).upper()
        case "enum":
            folded = _folded(text)
            return "enum", typed.spellings.get(folded, folded)
        case "text":
            return "text", text


def plain_text(value: Scalar) -> str:
    """``value`` as a text in NFC, runs of white space as one space."""
    return " ".join(unicodedata.normalize("NFC", value if isinstance(value, str) else str(value)).split())


def read_number(value: Scalar, *, decimal_comma: bool = False) -> Decimal | None:
    """``value`` as a number, without currency, per-cent sign and correct grouping; ``None`` if it is none."""
    if isinstance(value, bool):
        return None
    if not isinstance(value, str):
        return _decimal(str(value))
    if len(value) > _LONGEST:
        return None
    text = unicodedata.normalize("NFKC", value).casefold().replace("−", "-").strip()
    sign = text[:1] if text.startswith(("-", "+")) else ""
    bare = _BEHIND.sub("", _BEFORE.sub("", text[len(sign) :].strip(), count=1), count=1)
    if not sign and bare.startswith(("-", "+")):
        sign, bare = bare[0], bare[1:]
    if not (_COMMA_NUMBER if decimal_comma else _NUMBER).fullmatch(bare):
        return None
    if decimal_comma:
        bare = bare.replace(".", "").replace(",", ".")
    return _decimal(sign + re.sub("[,' ]", "", bare))


def _untyped(value: Scalar) -> Key | None:
    if isinstance(value, bool):
        return "boolean", value
    if isinstance(value, str):
        return "text", plain_text(value)
    number = _decimal(str(value))
    return None if number is None else ("number", number)


def _decimal(text: str) -> Decimal | None:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    # a Decimal with a very large exponent is hashed digit by digit
    return number if number.is_finite() and abs(number.adjusted()) <= 100_000 else None


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())


def spelling_table(values: Mapping[str, list[str]]) -> Mapping[str, str]:
    """The ``spellings`` of :class:`Typed` for an enumeration's values and what else may be written for each."""
    return MappingProxyType(
        {_folded(spelling): _folded(value) for value, others in values.items() for spelling in (value, *others)}
    )
