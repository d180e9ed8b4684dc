"""The format checks that an analysis task can declare: how each is written, what the team is told, and when it fails.

Which checks a task has is said in its file; what stands in the answer otherwise is never judged here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from eval_pipeline.benchmarks import prose
from eval_pipeline.benchmarks.analysis_schema import Schema
from eval_pipeline.benchmarks.fences import fenced_blocks, unfenced
from eval_pipeline.benchmarks.json_answer import Json, NotJsonError, read_json
from eval_pipeline.benchmarks.prose import Block, Kind
from eval_pipeline.ids import shown
from eval_pipeline.jsontypes import JsonObject, JsonValue

_HANGUL = re.compile(r"[가-힣ㄱ-ㆎ]")
_LETTER = re.compile(r"[^\W\d_]")
_NO_PROSE = re.compile(r"https?://\S+|`[^`\n]{1,400}`")
_MARKUP = "*_` \t"
_LANGUAGES = {"ko": "Korean", "en": "English"}
_LEAST_HANGUL, _MOST_HANGUL = 0.3, 0.1
"""Of all letters: the least of a Korean text, which may name things in Latin letters; the most of an English one."""
_LEAST_LATIN = 0.8
_MOST = 1_000


class CheckError(ValueError):
    """A check that is declared wrongly; the message says what and continues "check 2 …"."""


class Answered:
    """An answer, read in the ways that checks need."""

    def __init__(self, text: str) -> None:
        self.text = prose.tidy(text, "NFC").strip()

    @cached_property
    def blocks(self) -> list[Block]:
        return prose.blocks(self.text)

    @cached_property
    def prose_alone(self) -> str:
        """Without code and URLs, whose letters are of no language."""
        return _NO_PROSE.sub(" ", "\n".join(block.text for block in self.blocks if block.kind is not Kind.CODE))

    def json(self, fenced: bool) -> Json:
        """The JSON that the whole answer is, or what stands in its one fenced block.

        Raises:
            NotJsonError: it is none.
        """
        if not fenced:
            return read_json(unfenced(self.text))
        found = [block for block in fenced_blocks(self.text) if block.label in ("", "json")]
        if len(found) != 1:
            raise NotJsonError(f"there are {len(found)} fenced blocks of JSON, not one")
        return read_json(found[0].body)


class Check(Protocol):
    """One requirement of a format."""

    def told(self) -> str:
        """The requirement, as the team reads it below ``Format:``."""
        ...

    def failure(self, answer: Answered) -> str:
        """Why ``answer`` does not meet it, in one line; empty where it does."""
        ...


@dataclass(frozen=True, slots=True)
class Headings:
    """``titles`` stand as Markdown headings, in this order; of a repeated one the first counts. ``level`` 0 is any."""

    titles: tuple[str, ...]
    level: int

    def told(self) -> str:
        level = f" of level {self.level} ({'#' * self.level})" if self.level else ""
        return f"It has these Markdown headings{level}, in this order: {_listed(self.titles)}."

    def failure(self, answer: Answered) -> str:
        places: dict[str, int] = {}
        for number, block in enumerate(answer.blocks):
            if block.kind is Kind.HEADING and block.level and self.level in (0, block.level):
                places.setdefault(_title(block.text), number)
        before = -1
        for title in self.titles:
            place = places.get(_title(title))
            if place is None:
                return f"the heading {shown(title)} is missing"
            if place < before:
                return f"the heading {shown(title)} is out of order"
            before = place
        return ""


@dataclass(frozen=True, slots=True)
class JsonFits:
    """The answer, or its one fenced block, is JSON that fits ``schema``."""

    schema: Schema
    fenced: bool

    def told(self) -> str:
        where = "It has one fenced block with JSON that fits" if self.fenced else "It is one JSON value that fits"
        text = json.dumps(self.schema.document, ensure_ascii=False, separators=(", ", ": "))
        return f"{where} this JSON schema: {text}"

    def failure(self, answer: Answered) -> str:
        try:
            value = answer.json(self.fenced)
        except NotJsonError as error:
            return str(error)
        return self.schema.difference(value)


@dataclass(frozen=True, slots=True)
class Length:
    """Between ``least`` and ``most`` characters or words, both included; words are what white space separates."""

    unit: str
    least: int
    most: int | None

    def told(self) -> str:
        if self.most is None:
            return f"It has at least {self.least} {self.unit}."
        return f"It has {f'{self.least} to' if self.least else 'at most'} {self.most} {self.unit}."

    def failure(self, answer: Answered) -> str:
        length = len(answer.text) if self.unit == "characters" else len(answer.text.split())
        if length < self.least:
            return f"{length} {self.unit}, at least {self.least} are needed"
        if self.most is not None and length > self.most:
            return f"{length} {self.unit}, at most {self.most} are allowed"
        return ""


@dataclass(frozen=True, slots=True)
class Table:
    """A Markdown table with all of ``columns`` in its header, and at least ``rows`` rows below it."""

    columns: tuple[str, ...]
    rows: int

    def told(self) -> str:
        rows = f" and at least {self.rows} rows" if self.rows > 1 else ""
        return f"It has a Markdown table with the columns {_listed(self.columns)}{rows}."

    def failure(self, answer: Answered) -> str:
        wanted = [_title(column) for column in self.columns]
        lacking = "there is no table"
        for header, rows in _tables(answer.blocks):
            names = {_title(cell) for cell in header}
            missing = [column for column, name in zip(self.columns, wanted, strict=True) if name not in names]
            if not missing and rows >= self.rows:
                return ""
            lacking = f"the column {shown(missing[0])} is missing" if missing else f"it has {rows} rows"
        return lacking


@dataclass(frozen=True, slots=True)
class Language:
    """The letters of the answer, code and URLs aside, are those of ``code``: ``ko`` or ``en``."""

    code: str

    def told(self) -> str:
        return f"It is written in {_LANGUAGES[self.code]}."

    def failure(self, answer: Answered) -> str:
        letters = _LETTER.findall(answer.prose_alone)
        if not letters:
            return "there are no letters"
        hangul = sum(_HANGUL.match(letter) is not None for letter in letters) / len(letters)
        latin = sum(letter < "\u0250" for letter in letters) / len(letters)
        if self.code == "ko":
            return "" if hangul >= _LEAST_HANGUL else f"{hangul:.0%} of the letters are Hangul"
        return "" if hangul <= _MOST_HANGUL and latin >= _LEAST_LATIN else f"{latin:.0%} of the letters are Latin"


@dataclass(frozen=True, slots=True)
class Contains:
    """Each of ``texts`` stands in the answer (``wanted``), or none does; case counts, runs of white space do not."""

    texts: tuple[str, ...]
    wanted: bool

    def told(self) -> str:
        return f"It has {'each' if self.wanted else 'none'} of these texts: {_listed(self.texts)}."

    def failure(self, answer: Answered) -> str:
        text = " ".join(answer.text.split())
        for wanted in self.texts:
            if (" ".join(prose.tidy(wanted, "NFC").split()) in text) != self.wanted:
                return f"the text {shown(wanted)} {'is missing' if self.wanted else 'must not stand there'}"
        return ""


def check_of(values: JsonObject) -> Check:
    """The check that ``values`` declare.

    Raises:
        CheckError: an unknown kind or field, or a value that cannot be used.
    """
    kind = values.get("kind")
    if not isinstance(kind, str) or kind not in _FIELDS:
        raise CheckError(f"has the kind {shown(kind)}; known are {', '.join(_FIELDS)}")
    unknown = sorted(set(values) - {"kind", "told"} - _FIELDS[kind])
    if unknown:
        raise CheckError(f"has no field {shown(unknown[0])}; known are {', '.join(sorted(_FIELDS[kind]))}")
    if not isinstance(values.get("told", True), bool):
        raise CheckError("has a field 'told' that is neither true nor false")
    match kind:
        case "headings":
            return Headings(_texts(values, "titles"), _count(values, "level", 0, 6) or 0)
        case "json":
            return JsonFits(_schema(values.get("schema", {})), _flag(values, "fenced"))
        case "length":
            return _length(values)
        case "table":
            return Table(_texts(values, "columns"), _count(values, "rows", 0, _MOST) or 1)
        case "language":
            return _language(values)
        case _:
            return Contains(_texts(values, "texts"), wanted=kind == "contains")


_FIELDS: Mapping[str, frozenset[str]] = {
    "headings": frozenset({"titles", "level"}),
    "json": frozenset({"schema", "fenced"}),
    "length": frozenset({"unit", "least", "most"}),
    "table": frozenset({"columns", "rows"}),
    "language": frozenset({"language"}),
    "contains": frozenset({"texts"}),
    "lacks": frozenset({"texts"}),
}


def _texts(values: JsonObject, field: str) -> tuple[str, ...]:
    value = values.get(field)
    texts = [text for text in value if isinstance(text, str) and text.strip()] if isinstance(value, list) else []
    if not isinstance(value, list) or not value or len(texts) != len(value) or len(value) > _MOST:
        raise CheckError(f"has {field} {shown(value)}; write a list of texts")
    names = [_title(text) for text in texts]
    if field != "texts" and len(set(names)) < len(names):
        raise CheckError(f"has a text twice in {field}; write each once")
    return tuple(texts)


def _count(values: JsonObject, field: str, least: int, most: int) -> int | None:
    value = values.get(field)
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and least <= value <= most):
        return value
    raise CheckError(f"has {field} {shown(value)}; write a whole number from {least} to {most}")


def _flag(values: JsonObject, field: str) -> bool:
    value = values.get(field, False)
    if not isinstance(value, bool):
        raise CheckError(f"has {field} {shown(value)}; write true or false")
    return value


def _length(values: JsonObject) -> Length:
    unit = values.get("unit")
    if not isinstance(unit, str) or unit not in ("characters", "words"):
        raise CheckError(f"has unit {shown(unit)}; write characters or words")
    least, most = _count(values, "least", 0, 10**6) or 0, _count(values, "most", 1, 10**6)
    if most is None and not least:
        raise CheckError("has neither least nor most; write at least one of them")
    if most is not None and least > most:
        raise CheckError(f"has least {least} above most {most}")
    return Length(unit, least, most)


def _language(values: JsonObject) -> Language:
    language = values.get("language")
    if not isinstance(language, str) or language not in _LANGUAGES:
        raise CheckError(f"has language {shown(language)}; write {' or '.join(_LANGUAGES)}")
    return Language(language)


def _schema(document: JsonValue) -> Schema:
    try:
        return Schema(document)
    except ValueError as error:
        raise CheckError(f"has a schema that cannot be used: {error}") from None


def _listed(texts: Sequence[str]) -> str:
    return ", ".join(f'"{text}"' for text in texts)


def _title(text: str) -> str:
    """A title as titles are compared: case-folded, without markup around it and a colon behind it."""
    return " ".join(prose.tidy(text, "NFC").casefold().split()).strip(_MARKUP).rstrip(":：").strip(_MARKUP)


def _tables(blocks: Sequence[Block]) -> Iterator[tuple[tuple[str, ...], int]]:
    """(header cells, number of rows) of each table with a header, in order."""
    header: tuple[str, ...] = ()
    rows = 0
    for block in blocks:
        if block.kind is Kind.ROW and header:
            rows += 1
            continue
        if header:
            yield header, rows
        header, rows = (block.cells if block.kind is Kind.HEADING else ()), 0
    if header:
        yield header, rows
