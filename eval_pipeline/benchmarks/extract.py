"""extract: one JSON object whose values are compared with a gold object, field by field.

The rule for ``success`` and the benchmark as an object belong here; how values are read belongs to
:mod:`~eval_pipeline.benchmarks.extract_values`, how they are paired and counted to
:mod:`~eval_pipeline.benchmarks.extract_match`, what a schema may say to
:mod:`~eval_pipeline.benchmarks.extract_schema`. Only ``load`` does I/O.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

from eval_pipeline.benchmarks.base import DEFAULTS, Answer, AnswerKind, Score, Task
from eval_pipeline.benchmarks.extract_match import (
    LIST,
    FieldCount,
    Fields,
    Leaf,
    Matching,
    Node,
    TooLargeError,
    leaves,
    node_of,
)
from eval_pipeline.benchmarks.extract_schema import SchemaError, Shape, read_schema
from eval_pipeline.benchmarks.json_answer import Json, NotJsonError, check_size, find_json, read_json
from eval_pipeline.benchmarks.rows import Row
from eval_pipeline.benchmarks.tasks_file import load_tasks_file
from eval_pipeline.ids import shown
from eval_pipeline.jsontypes import JsonObject, JsonValue

__all__ = ["Comparison", "Extract", "compare"]

_MOST_GOLD = 20_000
_MOST_FIELDS, _LONGEST_FIELD = 50, 200
"""Fields with a metric of their own, and the length of such a metric's name: the database has an index over it."""
_SHOWN_FIELDS = 5
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Comparison:
    """What a predicted object has of a gold one. Counts are of values that are not null.

    ``accuracy`` is matched ÷ gold, ``f1`` is 2 · matched ÷ (gold + predicted), ``exact`` says that both are 1. With no
    gold value at all, they say whether there is no predicted one either. ``similarity`` is the mean over gold values of
    how much of each text is right, nothing below one half. ``fields`` has the counts by path (``lines[].price``).
    """

    accuracy: float
    f1: float
    exact: bool
    similarity: float
    matched: int
    gold: int
    predicted: int
    fields: Mapping[str, FieldCount] = field(default_factory=lambda: MappingProxyType({}))


def compare(predicted: Json, gold: Json, schema: Json = None) -> Comparison:
    """Compare two JSON values under ``schema`` (see :func:`~eval_pipeline.benchmarks.extract_schema.read_schema`).

    Null is the same as nothing. Lists are multisets unless the schema says that they are ordered; their objects are
    paired so that the most values match.

    Raises:
        SchemaError: the schema cannot be used.
        NotJsonError: one of the values has too many values or levels.
        TooLargeError: lists in lists are too long to be paired.
    """
    check_size(predicted)
    check_size(gold)
    return _compare(predicted, gold, read_schema(schema))


def _compare(predicted: Json, gold: Json, shape: Shape) -> Comparison:
    ours, theirs = node_of(gold, shape), node_of(predicted, shape)
    counted = (_leaves(ours), _leaves(theirs))
    if ours is None or counted[0] == 0:
        same = counted[1] == 0
        return Comparison(float(same), float(same), same, float(same), 0, *counted)
    matching = Matching()
    matching.align(ours, theirs)
    matched = sum(count.matched for count in matching.fields.values())
    similarity = sum(count.similarity for count in matching.fields.values())
    return Comparison(
        accuracy=matched / counted[0],
        f1=2 * matched / sum(counted),
        exact=matched == counted[0] == counted[1],
        similarity=similarity / counted[0],
        matched=matched,
        gold=counted[0],
        predicted=counted[1],
        fields=MappingProxyType({path_name(path): count for path, count in matching.fields.items()}),
    )


def path_name(path: tuple[str, ...]) -> str:
    """``path`` as people write it: ``lines[].price``."""
    return ".".join(path).replace(f".{LIST}", LIST) or "(the value)"


class Extract:
    """The benchmark; see :class:`eval_pipeline.benchmarks.base.Benchmark`."""

    name: str = "extract"
    answers: AnswerKind = "text"
    scorer_version: str = "extract-1"
    format_block: str = (
        "Answer format: deliver exactly one JSON object and nothing else, with the keys that the task names. Write "
        "numbers as JSON numbers and dates as YYYY-MM-DD unless the task says otherwise. Use null for a value that is "
        "not there, and copy every other text exactly. No key may stand twice in one object, and comments are not "
        "allowed."
    )
    thresholds: Mapping[str, float] = MappingProxyType({"field_accuracy": 1.0})
    tools: tuple[str, ...] = ()
    needs_evidence: bool = False
    grounding_table: str | None = None

    def load(self, data_dir: Path) -> list[Task]:
        return load_tasks_file(data_dir, self.name, frozenset({"gold", "schema"}), _own_fields)

    def score(self, task: Task, answer: Answer, thresholds: Mapping[str, float] = DEFAULTS) -> Score:
        gold, shape = _expected(task.gold, json.dumps(task.extra.get("schema")))
        try:
            predicted = find_json(answer.full_text)
            if not isinstance(predicted, dict):
                raise NotJsonError("it is JSON, but no object")
            result = _compare(predicted, gold, shape)
        except NotJsonError as error:
            return Score(success=False, format_valid=False, metrics=_nothing(gold, shape), reason=f"not_json: {error}")
        except TooLargeError as error:
            return Score(success=False, format_valid=True, metrics=_nothing(gold, shape), reason=f"too_large: {error}")
        needed = thresholds.get("field_accuracy", self.thresholds["field_accuracy"])
        return Score(
            success=result.accuracy >= needed - _ROUNDING,
            format_valid=True,
            metrics=_metrics(result),
            reason=_reason(result),
        )


@lru_cache(maxsize=256)
def _expected(gold: str, schema: str) -> tuple[Json, Shape]:
    return read_json(gold), read_schema(read_json(schema))


def _leaves(node: Node | None) -> int:
    return 0 if node is None else leaves(node)


def _metrics(result: Comparison) -> dict[str, float]:
    figures = {
        "field_accuracy": result.accuracy,
        "f1": result.f1,
        "exact": float(result.exact),
        "similarity": result.similarity,
        "values_gold": float(result.gold),
        "values_predicted": float(result.predicted),
        "values_matched": float(result.matched),
    }
    fields = [(name, count) for name, count in result.fields.items() if len(name) <= _LONGEST_FIELD][:_MOST_FIELDS]
    return figures | {f"field_accuracy:{name}": count.matched / count.gold for name, count in fields}


def _nothing(gold: Json, shape: Shape) -> dict[str, float]:
    """The figures of an answer of which no value can be read: wrong, even where the gold object is empty."""
    result = _compare(None, gold, shape)
    return _metrics(result) | {"field_accuracy": 0.0, "f1": 0.0, "exact": 0.0, "similarity": 0.0}


def _reason(result: Comparison) -> str:
    """In one line what is wrong where; neither gold nor predicted values are quoted, since it stands in reports."""
    extra = result.predicted - result.matched
    parts = [f"{result.matched} of {result.gold} values match"]
    wrong = [(name, count.gold - count.matched - count.missing) for name, count in result.fields.items()]
    missing = [(name, count.missing) for name, count in result.fields.items()]
    for word, counts in (("wrong", wrong), ("missing", missing)):
        names = [name if number == 1 else f"{name} ({number})" for name, number in counts if number]
        if names:
            more = f" and {len(names) - _SHOWN_FIELDS} more" if len(names) > _SHOWN_FIELDS else ""
            parts.append(f"{word}: {', '.join(map(_plain, names[:_SHOWN_FIELDS]))}{more}")
    surplus = extra - sum(number for _, number in wrong)
    if surplus > 0:
        parts.append(f"{surplus} more than asked for")
    return "; ".join(parts)


def _plain(name: str) -> str:
    return name if name.isprintable() and len(name) <= 80 else shown(name)


def _own_fields(row: Row) -> tuple[str, JsonObject]:
    gold, schema = row.values.get("gold"), row.values.get("schema")
    if not isinstance(gold, dict):
        raise row.wrong("gold", f"is {shown(gold)}; write the JSON object that is the right answer")
    _check_texts(row, "gold", gold)
    _check_texts(row, "schema", schema)
    try:
        shape = read_schema(read_json(json.dumps(schema)))
    except (SchemaError, NotJsonError) as error:
        raise row.wrong("schema", f"cannot be used: {error}") from None
    text = json.dumps(gold, ensure_ascii=False, sort_keys=True)
    try:
        node = node_of(read_json(text), shape)
    except NotJsonError as error:
        raise row.wrong("gold", f"cannot be used: {error}") from None
    if _leaves(node) > _MOST_GOLD:
        raise row.wrong("gold", f"has more than {_MOST_GOLD} values; divide it into several tasks")
    if node is not None and (unread := _unreadable(node, ())):
        raise row.wrong("gold", f"has a value at {unread} that is not of the type that the schema says; correct one")
    return text, {} if schema is None else {"schema": schema}


def _unreadable(node: Node, path: tuple[str, ...]) -> str | None:
    """The first place below ``node`` whose value is not of its type."""
    if isinstance(node, Fields):
        below = [(child, (*path, name)) for name, child in node.children.items()]
    elif isinstance(node, Leaf):
        return None if node.key is not None else path_name(path)
    else:
        below = [(child, (*path, LIST)) for child in node.children]
    return next(filter(None, (_unreadable(child, place) for child, place in below)), None)


def _check_texts(row: Row, name: str, value: JsonValue) -> None:
    """See that the database takes every text in ``value``, keys included.

    Raises:
        TaskDataError: one has a NUL character or half of a surrogate pair.
    """
    text = json.dumps(value, ensure_ascii=False)
    # a NUL is written as an escape, and a backslash before it would be escaped itself
    if "\\u0000" in text.replace("\\\\", ""):
        raise row.wrong(name, "holds a NUL character, which no database takes; remove it")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise row.wrong(name, "holds half of a surrogate pair; write the whole character") from None
