"""What minutes have to say: the gold items of a meeting task, and how a row of the task file declares them.

Whether a line of minutes says it belongs to :mod:`~eval_pipeline.benchmarks.meeting_match`.
"""

from __future__ import annotations

import datetime as dt
import json
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias, get_args

from eval_pipeline.benchmarks.dates import read_date
from eval_pipeline.benchmarks.meeting_terms import Term, name_key
from eval_pipeline.benchmarks.rows import Row
from eval_pipeline.ids import shown
from eval_pipeline.jsontypes import JsonObject, JsonValue

ItemType: TypeAlias = Literal["attendee", "decision", "action", "topic"]
TYPES: tuple[ItemType, ...] = get_args(ItemType)

_MOST_ITEMS, _MOST_GROUPS, _MOST_ALTERNATIVES, _LONGEST_TERM = 200, 20, 30, 200
_KEYS = {
    "attendee": frozenset({"type", "name", "weight"}),
    "topic": frozenset({"type", "terms", "forbid", "weight"}),
    "decision": frozenset({"type", "terms", "owner", "due", "forbid", "weight"}),
    "action": frozenset({"type", "terms", "owner", "due", "forbid", "weight"}),
}


@dataclass(frozen=True, slots=True)
class GoldItem:
    """One thing that the minutes have to say.

    ``groups`` are the terms, of each group at least one; an attendee has ``names`` instead, normalised. ``owner`` are
    the ways to write the one who does it (empty: nobody is asked for), ``forbid`` terms that say the opposite.
    """

    type: ItemType
    groups: tuple[tuple[Term, ...], ...] = ()
    names: frozenset[str] = frozenset()
    owner: tuple[Term, ...] = ()
    due: dt.date | None = None
    forbid: tuple[Term, ...] = ()
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Meeting:
    """A task's gold items, and what dates in its minutes are read against."""

    date: dt.date
    day_first: bool
    items: tuple[GoldItem, ...]


@lru_cache(maxsize=256)
def read_meeting(text: str) -> Meeting:
    """The meeting of a task's gold text, as :func:`own_fields` has made it.

    Raises:
        ValueError: it was not made by it; the message names the item and the field.
    """
    values = json.loads(text)
    items = tuple(_item(item, f"items[{index}]") for index, item in enumerate(values["items"]))
    return Meeting(dt.date.fromisoformat(values["meeting_date"]), values["day_first"], items)


def own_fields(row: Row) -> tuple[str, JsonObject]:
    """The task's gold text; its extra stays empty.

    Raises:
        TaskDataError: no items, or one that cannot be used.
    """
    date = read_date(row.text("meeting_date"))
    if date is None:
        raise row.wrong("meeting_date", f"is {shown(row.values['meeting_date'])}; write YYYY-MM-DD")
    items = row.values.get("items")
    if not isinstance(items, list) or not 1 <= len(items) <= _MOST_ITEMS:
        raise row.wrong("items", f"is {shown(items)}; write a list of 1 to {_MOST_ITEMS} items")
    values = {"meeting_date": date.isoformat(), "day_first": bool(row.flag("day_first")), "items": items}
    gold = json.dumps(values, ensure_ascii=False, sort_keys=True)
    try:
        gold.encode()
        read_meeting(gold)
    except UnicodeEncodeError:
        raise row.wrong("items", "holds half of a surrogate pair; write the whole character") from None
    except ValueError as error:
        raise row.wrong("items", f"cannot be used: {error}") from None
    return gold, {}


def _item(value: JsonValue, where: str) -> GoldItem:
    if not isinstance(value, dict):
        raise ValueError(f"{where} is {shown(value)}, not an object")
    kind = next((known for known in TYPES if known == value.get("type")), None)
    if kind is None:
        raise ValueError(f"{where}.type is {shown(value.get('type'))}; write one of {', '.join(TYPES)}")
    unknown = sorted(set(value) - _KEYS[kind])
    if unknown:
        known_keys = ", ".join(sorted(_KEYS[kind]))
        raise ValueError(f"{where}: {kind} has no key {shown(unknown[0])}; known are {known_keys}")
    weight = value.get("weight", 1)
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight < math.inf:
        raise ValueError(f"{where}.weight is {shown(weight)}; write a number above 0")
    if kind == "attendee":
        return GoldItem(kind, names=_names(value.get("name"), f"{where}.name"), weight=float(weight))
    return GoldItem(
        kind,
        groups=_groups(value.get("terms"), f"{where}.terms"),
        owner=_terms(value.get("owner"), f"{where}.owner", spaced=True) if value.get("owner") is not None else (),
        due=_due(value.get("due"), f"{where}.due"),
        forbid=_terms(value.get("forbid"), f"{where}.forbid") if value.get("forbid") is not None else (),
        weight=float(weight),
    )


def _groups(value: JsonValue, where: str) -> tuple[tuple[Term, ...], ...]:
    if not isinstance(value, list) or not 1 <= len(value) <= _MOST_GROUPS:
        raise ValueError(f"{where} is {shown(value)}; write a list of 1 to {_MOST_GROUPS} groups of terms")
    return tuple(_terms(group, f"{where}[{index}]") for index, group in enumerate(value))


def _terms(value: JsonValue, where: str, *, spaced: bool = False) -> tuple[Term, ...]:
    """The alternatives of one group; a text alone is a group of one."""
    return tuple(Term(text, spaced=spaced) for text in _texts(value, where))


def _names(value: JsonValue, where: str) -> frozenset[str]:
    return frozenset(map(name_key, _texts(value, where)))


def _texts(value: JsonValue, where: str) -> list[str]:
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not 1 <= len(texts) <= _MOST_ALTERNATIVES:
        raise ValueError(f"{where} is {shown(value)}; write a text or a list of 1 to {_MOST_ALTERNATIVES} texts")
    for text in texts:
        if not isinstance(text, str) or not name_key(text) or len(text) > _LONGEST_TERM or "\0" in text:
            raise ValueError(f"{where} has {shown(text)}; write texts of 1 to {_LONGEST_TERM} characters")
    return [text for text in texts if isinstance(text, str)]


def _due(value: JsonValue, where: str) -> dt.date | None:
    if value is None:
        return None
    date = read_date(value) if isinstance(value, str) else None
    if date is None:
        raise ValueError(f"{where} is {shown(value)}; write YYYY-MM-DD")
    return date
