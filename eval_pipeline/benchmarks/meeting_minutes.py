"""Minutes as items: the entries of a JSON answer, or the lines of a text.

What an item hits belongs to :mod:`~eval_pipeline.benchmarks.meeting_match`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice

from eval_pipeline.benchmarks.fences import unfenced
from eval_pipeline.benchmarks.json_answer import Json, NotJsonError, read_json
from eval_pipeline.benchmarks.meeting_terms import SLOT_LABEL, Line, folded, names_of
from eval_pipeline.benchmarks.research_kiwi import KiwiReader

MAX_CHARACTERS = 300_000
MAX_ITEMS = 2_000
_OWNER_KEYS = frozenset({"owner", "owners", "assignee", "assignees", "responsible", "담당", "담당자"})
_DUE_KEYS = frozenset({"due", "due_date", "deadline", "기한", "마감", "마감일"})
_TYPE_KEYS = frozenset({"type", "kind", "유형", "종류"})
_LINE_END = re.compile(r"\r\n?|[\n\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_HEADING = re.compile(r"\s*(?:#{1,6}(?:\s|\Z)|[^:：]{1,60}[:：]\s*[*_]*\s*\Z|(\*\*|__)[^*_]{1,60}\1\s*\Z)")
_MARK = re.compile(r"\A[\s>]*(?:[-*+•‣◦·]\s+|\(?\d{1,3}[.)]\s+|[①-⑳]\s*|\[[ xX]\]\s*)*")


class TooLongError(ValueError):
    """Minutes that are longer than any minutes."""


@dataclass(frozen=True)
class MinuteItem:
    """One item. ``owner`` and ``due`` are set where the answer has fields for them; else they stand in ``text``."""

    text: str
    owner: str | None = None
    due: str | None = None
    reader: KiwiReader | None = None

    @cached_property
    def line(self) -> Line:
        return Line(self.text, self.reader)

    @cached_property
    def owner_line(self) -> Line:
        return self.line if self.owner is None else Line(self.owner, self.reader)

    @cached_property
    def names(self) -> frozenset[str]:
        return names_of(self.text)


@dataclass(frozen=True, slots=True)
class Minutes:
    """The items of an answer; ``structured`` ones stand for one gold item each, a line of text for any number."""

    items: tuple[MinuteItem, ...]
    structured: bool


def read_minutes(text: str, reader: KiwiReader | None = None) -> Minutes:
    """The items of ``text``: of the JSON that it is, or else its lines. ``reader`` finds Korean words in other forms.

    Raises:
        TooLongError: more characters or items than minutes can have.
    """
    text = unfenced(text)
    if len(text) > MAX_CHARACTERS:
        raise TooLongError(f"it has {len(text):,} characters, minutes have at most {MAX_CHARACTERS:,}")
    entries = _entries(text)
    found = _lines(text) if entries is None else map(_structured, entries)
    items = list(islice(found, MAX_ITEMS + 1))
    if len(items) > MAX_ITEMS:
        raise TooLongError(f"it has more than {MAX_ITEMS:,} items")
    return Minutes(tuple(replace(item, reader=reader) for item in items), structured=entries is not None)


def _entries(text: str) -> list[Json] | None:
    """The list of a JSON answer, or the lists of its object one after the other; ``None`` for a plain text."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        value = read_json(text)
    except NotJsonError:
        return None
    if isinstance(value, dict):
        return [entry for entries in value.values() if isinstance(entries, list) for entry in entries]
    return value if isinstance(value, list) else None


def _structured(entry: Json) -> MinuteItem:
    if not isinstance(entry, dict):
        return MinuteItem(_words(entry))
    fields = {folded(name): value for name, value in entry.items()}
    own = _OWNER_KEYS | _DUE_KEYS | _TYPE_KEYS
    return MinuteItem(
        # apart, so that a name in one field is no longer name with the next
        text="; ".join(filter(None, (_words(value) for name, value in fields.items() if name not in own))),
        owner=_field(fields, _OWNER_KEYS),
        due=_field(fields, _DUE_KEYS),
    )


def _field(fields: dict[str, Json], keys: frozenset[str]) -> str | None:
    """What stands under one of ``keys``; a field that is there and empty says that there is nothing."""
    values = [_words(value) for name, value in fields.items() if name in keys]
    return ", ".join(filter(None, values)) if values else None


def _words(value: Json) -> str:
    """The texts in ``value``, joined."""
    if isinstance(value, dict):
        return " ".join(filter(None, map(_words, value.values())))
    if isinstance(value, list):
        return ", ".join(filter(None, map(_words, value)))
    return "" if value is None or isinstance(value, bool) else str(value)


def _lines(text: str) -> Iterator[MinuteItem]:
    """The lines that say something; one that only names owner or date goes with the line above it."""
    open_item: str | None = None
    for line in _LINE_END.split(text):
        content = _MARK.sub("", line).strip()
        if not any(character.isalnum() for character in content):
            continue
        if open_item is not None and _is_slot(folded(content).lstrip("*_ ")):
            open_item = f"{open_item}; {content}"
            continue
        if open_item is not None:
            yield MinuteItem(open_item)
        open_item = None if _HEADING.match(line) else content
    if open_item is not None:
        yield MinuteItem(open_item)


def _is_slot(line: str) -> bool:
    """Whether ``line`` has nothing but owner and date, unlike "owner: Kim; task: the draft"."""
    return SLOT_LABEL.match(line) is not None and not re.search("[:：](?!//)", SLOT_LABEL.sub("", line))
