"""How many values of a gold extraction a predicted one has, each place compared with its own.

Objects are compared key by key, lists as what they are to a reader: in their order where the schema says so, else as
multisets of values, or as objects paired so that the most values match. Pure; bounded by :data:`MAX_WORK`.
"""

from __future__ import annotations

import itertools
import unicodedata
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from rapidfuzz.distance import Levenshtein

from eval_pipeline.benchmarks.assignment import best_pairs
from eval_pipeline.benchmarks.extract_schema import Shape
from eval_pipeline.benchmarks.extract_values import Key, plain_text, value_key
from eval_pipeline.benchmarks.json_answer import Json

MAX_WORK = 2_000_000
"""Pairs of places that are looked at; a list of lists of lists could ask for any number of them."""
_SIMILAR = 0.5
_LONGEST_SIMILAR = 10_000
_MOST_SIMILAR = 200

Path: TypeAlias = "tuple[str, ...]"
LIST = "[]"
"""The part of a path that stands for every item of a list."""


class TooLargeError(ValueError):
    """Two values whose comparison would take too long."""

    def __init__(self) -> None:
        super().__init__("its lists are too long to be compared with those of the gold answer")


@dataclass(frozen=True, slots=True)
class Leaf:
    """One value. ``key`` is ``None`` for one that cannot be read as its type, which equals nothing."""

    key: Key | None
    text: str


@dataclass(frozen=True)
class Fields:
    """An object."""

    children: dict[str, Node]

    @cached_property
    def leaves(self) -> int:
        return sum(map(leaves, self.children.values()))

    @cached_property
    def flat(self) -> tuple[list[tuple[Path, Key]], dict[Path, Items]]:
        """Its values that no list is around, and its lists, each with its path."""
        values: list[tuple[Path, Key]] = []
        lists: dict[Path, Items] = {}
        waiting: list[tuple[Path, Node]] = [((), self)]
        while waiting:
            path, node = waiting.pop()
            if isinstance(node, Fields):
                waiting += [((*path, name), child) for name, child in node.children.items()]
            elif isinstance(node, Items):
                lists[path] = node
            elif node.key is not None:
                values.append((path, node.key))
        return values, lists


@dataclass(frozen=True)
class Items:
    """A list."""

    children: list[Node]
    ordered: bool

    @cached_property
    def leaves(self) -> int:
        return sum(map(leaves, self.children))


Node: TypeAlias = "Leaf | Fields | Items"


def leaves(node: Node) -> int:
    """How many values ``node`` has."""
    return 1 if isinstance(node, Leaf) else node.leaves


def node_of(value: Json, shape: Shape) -> Node | None:
    """``value`` as it is compared; ``None`` for null, which is the same as nothing at all."""
    match value:
        case None:
            return None
        case dict():
            names = {unicodedata.normalize("NFC", name): child for name, child in value.items()}
            children = {name: node_of(child, shape.of(name)) for name, child in names.items()}
            return Fields({name: child for name, child in children.items() if child is not None})
        case list():
            nodes = (node_of(child, shape.of_items) for child in value)
            # where the order counts, an object without values keeps the place of a null
            kept = [Fields({}) if node is None and shape.ordered else node for node in nodes]
            return Items([node for node in kept if node is not None], shape.ordered)
        case _:
            return Leaf(value_key(value, shape.typed), plain_text(value))


@dataclass
class FieldCount:
    """Of one path: gold values, those matched, those of which there is nothing at that place, and how alike they are.

    ``similarity`` is the sum over gold values: 1 for an equal one, else the share of a text that is right if at least
    half of it is.
    """

    gold: int = 0
    matched: int = 0
    missing: int = 0
    similarity: float = 0.0


@dataclass
class Matching:
    """One comparison under way: its counts by path, and the work it has done."""

    fields: dict[Path, FieldCount] = field(default_factory=lambda: defaultdict(FieldCount))
    work: int = 0

    def align(self, gold: Node, predicted: Node | None, path: Path = ()) -> None:
        """Count every gold value of ``gold`` under its path.

        Raises:
            TooLargeError: it would take more than :data:`MAX_WORK`.
        """
        match gold, predicted:
            case Fields(), Fields():
                for name, child in gold.children.items():
                    self.align(child, predicted.children.get(name), (*path, name))
            case Fields(), _:
                for name, child in gold.children.items():
                    self.align(child, None, (*path, name))
            case Items(), Items():
                self._align_items(gold, predicted, (*path, LIST))
            case Items(), _:
                for child in gold.children:
                    self.align(child, None, (*path, LIST))
            case Leaf(), _:
                self._count(gold, predicted, path)

    def _count(self, gold: Leaf, predicted: Node | None, path: Path) -> None:
        count = self.fields[path]
        count.gold += 1
        if not isinstance(predicted, Leaf):
            count.missing += 1
        elif _equal(gold, predicted):
            count.matched += 1
            count.similarity += 1
        else:
            count.similarity += _similarity(gold.text, predicted.text)

    def _align_items(self, gold: Items, predicted: Items, path: Path) -> None:
        if gold.ordered:
            for child, other in itertools.zip_longest(gold.children, predicted.children[: len(gold.children)]):
                self.align(child, other, path)
            return
        pairs = {index: other for index, other, _ in self._pairs(gold, predicted)}
        unpaired = [child for index, child in enumerate(gold.children) if index not in pairs]
        for index, other in pairs.items():
            self.align(gold.children[index], predicted.children[other], path)
        taken = set(pairs.values())
        left = [child for index, child in enumerate(predicted.children) if index not in taken]
        alike = dict(self._alike(unpaired, left))
        for index, child in enumerate(unpaired):
            self.align(child, left[alike[index]] if index in alike else None, path)

    def _alike(self, gold: list[Node], predicted: list[Node]) -> list[tuple[int, int]]:
        """Pairs of what has found no equal: single values by the likeness of their texts."""
        rows = [(index, node) for index, node in enumerate(gold) if isinstance(node, Leaf)][:_MOST_SIMILAR]
        columns = [(index, node) for index, node in enumerate(predicted) if isinstance(node, Leaf)][:_MOST_SIMILAR]
        if not rows or not columns:
            return []
        likeness = [[_similarity(row.text, column.text) for _, column in columns] for _, row in rows]
        return [(rows[row][0], columns[column][0]) for row, column in best_pairs(likeness)]

    def _pairs(self, gold: Items, predicted: Items) -> Iterator[tuple[int, int, int]]:
        """Which item of ``gold`` stands for which of ``predicted``, so that the most values match, and how many do."""
        places: dict[Key, deque[int]] = defaultdict(deque)
        for index, node in enumerate(predicted.children):
            if isinstance(node, Leaf) and node.key is not None:
                places[node.key].append(index)
        for index, node in enumerate(gold.children):
            if isinstance(node, Leaf) and node.key is not None and places.get(node.key):
                yield index, places[node.key].popleft(), 1
        for kind in (Fields, Items):
            rows = [index for index, node in enumerate(gold.children) if isinstance(node, kind)]
            columns = [index for index, node in enumerate(predicted.children) if isinstance(node, kind)]
            if rows and columns:
                ours = [gold.children[index] for index in rows]
                theirs = [predicted.children[index] for index in columns]
                for row, column, matched in self._assigned(ours, theirs):
                    yield rows[row], columns[column], matched

    def _assigned(self, gold: Sequence[Node], predicted: Sequence[Node]) -> Iterator[tuple[int, int, int]]:
        rows = self._matches(gold, predicted)
        # in an assignment at most n - 1 of a row's n best columns are taken by the other n - 1 rows
        columns = sorted({column for row in rows for column, _ in Counter(row).most_common(len(gold))})
        self._worked(len(gold) * len(columns))
        pairs = best_pairs([[row.get(column, 0) for column in columns] for row in rows])
        yield from ((row, columns[column], rows[row][columns[column]]) for row, column in pairs)

    def _matches(self, gold: Sequence[Node], predicted: Sequence[Node]) -> list[dict[int, int]]:
        """Per gold item and predicted item (both objects, or both lists) how many values match, zeros left out."""
        found: list[dict[int, int]] = []
        places: dict[tuple[Path, Key], list[int]] = defaultdict(list)
        lists: dict[Path, list[tuple[int, Items]]] = defaultdict(list)
        for index, node in enumerate(predicted):
            values, inner = _parts(node)
            for place in values:
                places[place].append(index)
            for path, items in inner.items():
                lists[path].append((index, items))
        for node in gold:
            matches: dict[int, int] = defaultdict(int)
            values, inner = _parts(node)
            for place in values:
                self._worked(len(places.get(place, ())))
                for index in places.get(place, ()):
                    matches[index] += 1
            for path, items in inner.items():
                for index, other in lists.get(path, ()):
                    if matched := self._matched_items(items, other):
                        matches[index] += matched
            found.append(matches)
        return found

    def _matched(self, gold: Node, predicted: Node) -> int:
        """How many values of ``gold`` match at best."""
        match gold, predicted:
            case Leaf(), Leaf():
                return int(_equal(gold, predicted))
            case Fields(), Fields():
                both = gold.children.keys() & predicted.children.keys()
                return sum(self._matched(gold.children[name], predicted.children[name]) for name in both)
            case Items(), Items():
                return self._matched_items(gold, predicted)
        return 0

    def _matched_items(self, gold: Items, predicted: Items) -> int:
        self._worked(gold.leaves + predicted.leaves)
        if gold.ordered:
            return sum(map(self._matched, gold.children, predicted.children))
        return sum(matched for _, _, matched in self._pairs(gold, predicted))

    def _worked(self, pairs: int) -> None:
        self.work += 1 + pairs
        if self.work > MAX_WORK:
            raise TooLargeError


def _parts(node: Node) -> tuple[list[tuple[Path, Key]], dict[Path, Items]]:
    if isinstance(node, Fields):
        return node.flat
    return [], {(): node} if isinstance(node, Items) else {}


def _equal(gold: Leaf, predicted: Leaf) -> bool:
    return gold.key is not None and gold.key == predicted.key


def _similarity(gold: str, predicted: str) -> float:
    if max(len(gold), len(predicted)) > _LONGEST_SIMILAR:
        return 0.0
    return Levenshtein.normalized_similarity(gold, predicted, score_cutoff=_SIMILAR)
