"""A JSON schema of a task, checked when it is loaded and safe to hold against whatever a model wrote.

References leave the schema nowhere, so nothing is ever fetched; ``format`` is not looked at.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import Decimal

import jsonschema
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError
from referencing import Registry
from referencing.exceptions import Unresolvable

from eval_pipeline.benchmarks.json_answer import Json
from eval_pipeline.ids import shown
from eval_pipeline.jsontypes import JsonValue

_LONGEST = 50_000
_REFERENCES = frozenset({"$ref", "$dynamicRef"})
_SHOWN = 120


def _unique_items(_validator: object, unique: object, instance: object, _schema: object) -> Iterator[ValidationError]:
    """``uniqueItems`` in linear time: the library compares each with each where items are objects."""
    if unique and isinstance(instance, list):
        texts = [json.dumps(item, sort_keys=True) for item in instance]
        if len(set(texts)) < len(texts):
            yield ValidationError("items stand twice")


_VALIDATOR = jsonschema.validators.extend(Draft202012Validator, {"uniqueItems": _unique_items})


class Schema:
    """A schema of draft 2020-12."""

    def __init__(self, document: JsonValue) -> None:
        """Read a schema.

        Raises:
            ValueError: it is none, is too long, has a wrong regular expression, or refers to itself without an end or
                to anything outside.
        """
        self.document = document
        if len(json.dumps(document)) > _LONGEST:
            raise ValueError(f"it is longer than {_LONGEST:,} characters")
        for key, value in _members(document):
            if key in _REFERENCES and not str(value).startswith("#"):
                raise ValueError(f"{key} is {shown(value)}; only references into the schema itself (#…) are followed")
        try:
            Draft202012Validator.check_schema(document)
        except SchemaError as error:
            raise ValueError(_first_line(error)) from None
        self._validator = _VALIDATOR(document, registry=Registry())
        probes: tuple[Json, ...] = ({}, [], "", 0)
        for probe in probes:
            self.difference(probe, in_a_task=False)

    def difference(self, value: Json, *, in_a_task: bool = True) -> str:
        """In what ``value`` does not fit the schema, in one line; empty where it does.

        Raises:
            ValueError: the schema itself cannot be used, which only happens while it is read.
        """
        try:
            error = next(iter(self._validator.iter_errors(_plain(value))), None)
        except (Unresolvable, re.error) as fault:
            raise ValueError(f"{type(fault).__name__}: {str(fault)[:_SHOWN]}") from None
        except RecursionError:
            if in_a_task:
                return "it is nested too deep for its schema"
            raise ValueError("it refers to itself without an end") from None
        return "" if error is None else _first_line(error)


def _members(document: JsonValue) -> Iterator[tuple[str, JsonValue]]:
    pending = [document]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            yield from value.items()
            pending += value.values()
        elif isinstance(value, list):
            pending += value


def _plain(value: Json) -> JsonValue:
    """``value`` with the numbers of JSON that the library knows; 1.0 is the whole number 1, as JSON schema has it."""
    match value:
        case Decimal():
            return int(value) if value == value.to_integral_value() and abs(value) < 10**15 else float(value)
        case dict():
            return {key: _plain(member) for key, member in value.items()}
        case list():
            return [_plain(item) for item in value]
    return value


def _first_line(error: ValidationError | SchemaError) -> str:
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.absolute_path).lstrip(".")
    message = " ".join(error.message[:_SHOWN].split())
    return f"{place[:_SHOWN]}: {message}" if place else message
