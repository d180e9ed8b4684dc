"""Which strings a report must not show: keys and passwords always, gold answers and attachments where a suite asks.

Looking for them belongs to :mod:`eval_pipeline.reporting.leak_guard`, reading attachments to
:mod:`eval_pipeline.reporting.attachments`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from uuid import UUID

from eval_pipeline.reporting.leak_guard import MARKERS, SHORTEST, Kind
from eval_pipeline.reporting.material import Material
from eval_pipeline.reporting.words import moment
from eval_pipeline.suites import Protected
from eval_pipeline.tracing.masking import SHORTEST_SECRET

_CELL = re.compile(r" \| |[\t,;]")
_ROW_NUMBER = re.compile(r"\A\d+ \| ")


@dataclass(frozen=True, slots=True)
class Attachments:
    """The lines of the attachments of a batch; ``unread`` names files that were not read, or not to the end."""

    lines: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


def protected_strings(
    secrets: Collection[str], material: Material, protect: Collection[Protected], attachments: Attachments
) -> dict[str, Kind]:
    """Every protected string with its kind; the graver kind where one string is of two."""
    found: dict[str, Kind] = {}
    for secret in secrets:
        if len(secret) >= SHORTEST_SECRET:
            found[secret] = "key"
    if "golds" in protect:
        for run in material.runs:
            if (gold := (run.gold or "").strip()) and _worth_it(gold):
                found.setdefault(gold, "gold answer")
    for text in _lines_and_cells(attachments.lines):
        found.setdefault(text, "attachment")
    return found


def without_golds(material: Material) -> Material:
    """``material`` without its gold answers, however short, and without the scorer's reasons, which may quote them."""
    return replace(material, runs=tuple(replace(run, gold=None, score_reason=None) for run in material.runs))


def _worth_it(text: str) -> bool:
    # a ruler of dashes is no secret and would shred every table
    return len(text) >= SHORTEST and any(map(str.isalnum, text))


def _lines_and_cells(lines: Collection[str]) -> Iterator[str]:
    for line in lines:
        bare = _ROW_NUMBER.sub("", line).strip()
        for text in (bare, *map(str.strip, _CELL.split(bare))):
            if _worth_it(text):
                yield text


def own_words(material: Material) -> Mapping[Kind, str]:
    """What a report says by itself: the words of this package, and for all but keys the ids, dates and figures too.

    A string in it is no leak: the page would say it of a batch that has nothing to do with it. Keys are held against
    the package's words alone, since an id that holds a key gives it away.
    """
    words = _package_words()
    figures = "\n".join({words, *(form for value in _own_values(material) for form in _forms(value))})
    return {"key": words, "gold answer": figures, "attachment": figures}


@cache
def _package_words() -> str:
    return "\n".join((*MARKERS.values(), *_texts(files("eval_pipeline.reporting"))))


def _texts(folder: Traversable) -> Iterator[str]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _texts(entry)
        elif entry.name.endswith((".py", ".html", ".css", ".js")):
            yield entry.read_text(encoding="utf-8")


def _own_values(value: object, *, own: bool = False) -> Iterator[object]:
    match value:
        case str():
            if own:
                yield value
        case bool() | None:
            return
        case int() | float() | datetime() | UUID():
            yield value
        case tuple():
            for item in value:
                yield from _own_values(item, own=own)
        case _ if is_dataclass(value):
            for field in fields(value):
                yield from _own_values(getattr(value, field.name), own=own or bool(field.metadata.get("own")))


def _forms(value: object) -> Iterator[str]:
    """``value`` as a page may write it."""
    match value:
        case datetime():
            yield f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
            yield moment(value)
        case int() | float():
            yield from (str(value), f"{value:,}")
        case _:
            yield str(value)
