"""Reaches every foreign text of a value: strings in dataclasses, tuples and mappings, but for fields marked as ours.

A new field of the material is foreign until somebody says otherwise, so that a forgotten one is guarded too much and
never too little.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import TypeVar, cast

T = TypeVar("T")


def changed(value: T, change: Callable[[str], str]) -> T:
    """``value`` with ``change`` applied to each of its foreign texts; parts without a change are the same objects."""
    return cast(T, _changed(value, change))


def _changed(value: object, change: Callable[[str], str]) -> object:
    match value:
        case str():
            return change(value)
        case tuple():
            return tuple(_changed(item, change) for item in value)
        case dict():
            return {_changed(key, change): _changed(member, change) for key, member in value.items()}
        case _ if is_dataclass(value) and not isinstance(value, type):
            found = {}
            for name in _foreign_fields(type(value)):
                before = getattr(value, name)
                after = _changed(before, change)
                if after is not before and after != before:
                    found[name] = after
            return replace(value, **found) if found else value
    return value


@cache
def _foreign_fields(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind) if not field.metadata.get("own"))
