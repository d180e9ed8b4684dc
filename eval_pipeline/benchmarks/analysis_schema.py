"""A JSON schema of a task, checked when it is loaded and safe to hold against whatever a model wrote.

References leave the schema nowhere, so nothing is ever fetched; ``format`` is not looked at.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal

import jsonschema
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError
from referencing import Registry, Resource
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from eval_pipeline.benchmarks.json_answer import Json
from eval_pipeline.ids import shown
from eval_pipeline.jsontypes import JsonValue

_LONGEST = 50_000
_REFERENCES = frozenset({"$ref", "$dynamicRef"})
_SHOWN = 120
_TOO_DEEP = "it is nested too deep for its schema"


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
        resource = DRAFT202012.create_resource(document)
        for key, value in _members(document):
            if key == "$id":
                raise ValueError("$id would change what its references mean; leave it out")
            if key in _REFERENCES:
                _check_reference(str(value), resource)
        try:
            Draft202012Validator.check_schema(document)
        except SchemaError as error:
            raise ValueError(_first_line(error)) from None
        self._validator = _VALIDATOR(document, registry=Registry())
        if self.difference({}) == _TOO_DEEP:
            raise ValueError("it refers to itself without an end")

    def difference(self, value: Json) -> str:
        """In what ``value`` does not fit the schema, in one line; empty where it does."""
        try:
            error = next(iter(self._validator.iter_errors(_plain(value))), None)
        except RecursionError:
            return _TOO_DEEP
        return "" if error is None else _first_line(error)


def _check_reference(reference: str, resource: Resource[JsonValue]) -> None:
    if not reference.startswith("#"):
        raise ValueError(f"it refers to {shown(reference)}; only references into the schema itself (#…) are followed")
    try:
        Registry().with_resource("", resource).resolver().lookup(reference)
    except Unresolvable:
        raise ValueError(f"it refers to {shown(reference)}, which it does not have") from None


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
