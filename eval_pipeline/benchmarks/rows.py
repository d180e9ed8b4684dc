"""JSON-lines files as rows that know where they stand, so that a complaint names file, line, field and value.

What the fields mean belongs to the benchmark that asks for them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from eval_pipeline.errors import TaskDataError
from eval_pipeline.ids import shown
from eval_pipeline.jsontypes import JsonObject, JsonValue

MAX_LINE_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Row:
    """One object of the file; ``where`` is the file's name and the line's number, from 1."""

    where: str
    values: JsonObject

    def wrong(self, field: str, why: str) -> TaskDataError:
        """The error that ``field`` has a value which cannot be used; ``why`` continues "field 'x' …"."""
        return TaskDataError(f"{self.where}: field {field!r} {why}")

    def text(self, field: str) -> str:
        """The text of ``field``, as it stands.

        Raises:
            TaskDataError: missing, not a text, blank, or with characters that no database takes.
        """
        if field not in self.values:
            raise self.wrong(field, "is missing")
        text = self._text(field, self.values[field])
        if not text.strip():
            raise self.wrong(field, "is empty")
        return text

    def optional_text(self, field: str) -> str:
        """Like :meth:`text`; empty where the field is missing, null or empty."""
        value = self.values.get(field)
        return "" if value is None else self._text(field, value)

    def flag(self, field: str) -> bool | None:
        """The true or false of ``field``; ``None`` where it is missing or null.

        Raises:
            TaskDataError: any other value.
        """
        value = self.values.get(field)
        if value is None or isinstance(value, bool):
            return value
        raise self.wrong(field, f"is {shown(value)}; write true or false")

    def _text(self, field: str, value: JsonValue) -> str:
        if not isinstance(value, str):
            raise self.wrong(field, f"is {shown(value)}, not a text; write it in quotes")
        if "\0" in value:
            raise self.wrong(field, "holds a NUL character, which no database takes; remove it")
        try:
            value.encode()
        except UnicodeEncodeError:
            raise self.wrong(field, "holds half of a surrogate pair; write the whole character") from None
        return value


def read_rows(path: Path) -> Iterator[Row]:
    """The objects of a JSON-lines file in its order; blank lines are passed over.

    Raises:
        TaskDataError: no readable regular file, a line over 16 MiB, not UTF-8, not one JSON object, a key
            that stands twice, or a number that JSON does not have (NaN, infinite).
    """
    try:
        if not path.is_file():
            raise TaskDataError(f"{path}: is not a file")
        with path.open("rb") as file:
            yield from _rows(file, path)
    except OSError as exc:
        raise TaskDataError(f"{path}: cannot be read ({exc.strerror})") from exc


def _rows(file: BinaryIO, path: Path) -> Iterator[Row]:
    number = 0
    while line := file.readline(MAX_LINE_BYTES + 1):
        number += 1
        where = f"{path} line {number}"
        if len(line) > MAX_LINE_BYTES:
            raise TaskDataError(f"{where}: is longer than {MAX_LINE_BYTES // 2**20} MiB; one task is one line")
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as exc:
            raise TaskDataError(f"{where}: byte {exc.start} of the line is not UTF-8; save the file as UTF-8") from None
        if text.strip():
            yield Row(where, _object(text, where))


def _object(text: str, where: str) -> JsonObject:
    try:
        value = json.loads(text, object_pairs_hook=_without_doubles, parse_constant=_no_constant, parse_float=_finite)
    except json.JSONDecodeError as exc:
        problem = f"is not valid JSON ({exc.msg} at character {exc.pos + 1})"
    except ValueError as exc:
        problem = f"cannot be used ({exc})"
    except RecursionError:
        problem = "is nested too deep"
    else:
        if isinstance(value, dict):
            return value
        problem = f"is {shown(value)}, not an object"
    raise TaskDataError(f"{where}: {problem}; each line must be one JSON object")


def _without_doubles(pairs: list[tuple[str, JsonValue]]) -> JsonObject:
    values: JsonObject = {}
    for key, value in pairs:
        if key in values:
            raise ValueError(f"the key {shown(key)} stands twice")
        values[key] = value
    return values


def _no_constant(word: str) -> JsonValue:
    raise ValueError(f"{word} is no JSON number")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"the number {shown(digits)} is too large")
    return number
