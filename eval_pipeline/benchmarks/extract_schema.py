"""The schema of an extraction task: which value is a number, a date, an id …, and which lists keep their order.

It follows the shape of the answer, in words of JSON Schema: ``{"properties": {"total": "number", "lines": {"ordered":
true, "items": {"properties": {"due": {"type": "date", "day_first": true}}}}}}``. How a typed value is read belongs to
:mod:`~eval_pipeline.benchmarks.extract_values`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import get_args

from eval_pipeline.benchmarks.extract_values import Typed, ValueType, spelling_table
from eval_pipeline.benchmarks.json_answer import MAX_DEPTH, Json
from eval_pipeline.ids import shown

TYPES: tuple[ValueType, ...] = get_args(ValueType)
_FLAGS = {"day_first": "date", "year_first": "date", "decimal_comma": "number"}
_KEYS = ("type", *_FLAGS, "values", "properties", "items", "ordered")


class SchemaError(ValueError):
    """A schema that cannot be used; the message names the place in it."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What a schema says of one place in the answer, and of the places below it.

    ``typed`` is for a single value, ``properties`` for an object, ``items`` and ``ordered`` for a list.
    """

    typed: Typed | None = None
    properties: Mapping[str, Shape] = field(default_factory=lambda: MappingProxyType({}))
    items: Shape | None = None
    ordered: bool = False

    def of(self, key: str) -> Shape:
        return self.properties.get(key, ANY)

    @property
    def of_items(self) -> Shape:
        return self.items or ANY


ANY = Shape()
"""The shape of a place of which the schema says nothing: values are compared by their type in JSON."""


def read_schema(schema: Json, where: str = "schema", depth: int = 0) -> Shape:
    """``schema`` as a shape; the word of a type alone stands for ``{"type": …}``.

    Raises:
        SchemaError: an unknown key or type, a value of another kind than its key needs, or too many levels.
    """
    if depth > MAX_DEPTH:
        raise SchemaError(f"{where}: is nested deeper than {MAX_DEPTH} levels")
    if schema is None:
        return ANY
    if isinstance(schema, str):
        schema = {"type": schema}
    if not isinstance(schema, dict):
        raise SchemaError(f"{where}: is {shown(schema)}; write a type or an object")
    for key in schema:
        if key not in _KEYS:
            raise SchemaError(f"{where}: there is no key {shown(key)}; known are {', '.join(_KEYS)}")
    properties = schema.get("properties", {})
    if not isinstance(properties, dict):
        raise SchemaError(f"{where}.properties: is {shown(properties)}; write an object")
    items = schema.get("items")
    ordered = _flag(schema, "ordered", where)
    if (items is not None or ordered) and properties:
        raise SchemaError(f"{where}: has items and properties; one place is either a list or an object")
    return Shape(
        typed=_typed(schema, where),
        properties=MappingProxyType(
            {
                unicodedata.normalize("NFC", name): read_schema(value, f"{where}.properties.{name}", depth + 1)
                for name, value in properties.items()
            }
        ),
        items=None if items is None else read_schema(items, f"{where}.items", depth + 1),
        ordered=ordered,
    )


def _typed(schema: Mapping[str, Json], where: str) -> Typed | None:
    kind = schema.get("type")
    if kind in ("object", "array", None):
        own = next((key for key in (*_FLAGS, "values") if key in schema), None)
        if own is not None:
            raise SchemaError(f"{where}: {own} needs a type; write one of {', '.join(TYPES)}")
        return None
    value_type = next((known for known in TYPES if known == kind), None)
    if value_type is None:
        raise SchemaError(f"{where}: type is {shown(kind)}; write one of {', '.join(TYPES)}, object, array")
    if "properties" in schema or "items" in schema or "ordered" in schema:
        raise SchemaError(f"{where}: a {value_type} has no properties and no items; leave its type out")
    for flag, needed in _FLAGS.items():
        if flag in schema and value_type != needed:
            raise SchemaError(f"{where}: {flag} is for the type {needed}, not for {value_type}")
    if "values" in schema and value_type != "enum":
        raise SchemaError(f"{where}: values are for the type enum, not for {value_type}")
    return Typed(
        kind=value_type,
        day_first=_flag(schema, "day_first", where),
        year_first=_flag(schema, "year_first", where),
        decimal_comma=_flag(schema, "decimal_comma", where),
        spellings=spelling_table(_values(schema.get("values", []), where)),
    )


def _values(values: Json, where: str) -> dict[str, list[str]]:
    """A list of values, or an object with the other spellings of each."""
    if isinstance(values, list) and _all_texts(values):
        return {str(value): [] for value in values}
    if isinstance(values, dict) and all(isinstance(others, list) and _all_texts(others) for others in values.values()):
        return {value: [str(other) for other in others] for value, others in values.items() if isinstance(others, list)}
    raise SchemaError(
        f"{where}.values: is {shown(values)}; write a list of texts, or an object of text to list of texts"
    )


def _all_texts(values: Iterable[Json]) -> bool:
    return all(isinstance(value, str) for value in values)


def _flag(schema: Mapping[str, Json], key: str, where: str) -> bool:
    value = schema.get(key, False)
    if not isinstance(value, bool):
        raise SchemaError(f"{where}.{key}: is {shown(value)}; write true or false")
    return value
