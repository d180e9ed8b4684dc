"""How much of the gold items some minutes cover, and how many of their own items hit anything.

A hit is 0 if less than 60 % of an item's groups of terms occur or a forbidden term does, ½ if its owner or its due date
is missing or another one, else 1; an attendee is hit by the name alone. Coverage is the weighted mean over gold items
of the best hit. Pure; what counts as an occurrence belongs to :mod:`~eval_pipeline.benchmarks.meeting_terms`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from eval_pipeline.benchmarks.assignment import best_pairs
from eval_pipeline.benchmarks.meeting_dates import find_days
from eval_pipeline.benchmarks.meeting_gold import TYPES, GoldItem, ItemType, Meeting
from eval_pipeline.benchmarks.meeting_minutes import MinuteItem, Minutes

_NEARLY_NOTHING = 1e-9


@dataclass(frozen=True, slots=True)
class Coverage:
    """``coverage`` over all gold items and by their types; ``hits`` is the best hit of each, in their order.

    ``precision`` is the share of predicted items that hit something, ``None`` where there are none.
    """

    coverage: float
    by_type: Mapping[ItemType, float]
    hits: tuple[float, ...]
    predicted: int
    precision: float | None


def cover(minutes: Minutes, meeting: Meeting) -> Coverage:
    """Compare ``minutes`` with what they have to say.

    Items of a JSON answer are assigned to gold items one to one, so that the weighted sum of hits is the largest; a
    line of text may serve several.
    """
    gold = meeting.items
    table = [[hit(item, candidate, meeting) for candidate in minutes.items] for item in gold]
    if minutes.structured:
        # among equal sums the one with more pairs, so that the precision does not depend on the order of the items
        weights = [
            [item.weight * value + _NEARLY_NOTHING if value else 0.0 for value in row]
            for item, row in zip(gold, table, strict=True)
        ]
        pairs = dict(best_pairs(weights)) if minutes.items else {}
        hits = tuple(table[row][pairs[row]] if row in pairs else 0.0 for row in range(len(gold)))
        useful = len(pairs)
    else:
        hits = tuple(max(row, default=0.0) for row in table)
        useful = sum(map(any, zip(*table, strict=True)))
    return Coverage(
        coverage=_mean(gold, hits),
        by_type={
            kind: _mean(*zip(*chosen, strict=True))
            for kind in TYPES
            if (chosen := [(item, value) for item, value in zip(gold, hits, strict=True) if item.type == kind])
        },
        hits=hits,
        predicted=len(minutes.items),
        precision=useful / len(minutes.items) if minutes.items else None,
    )


def hit(gold: GoldItem, item: MinuteItem, meeting: Meeting) -> float:
    """How well ``item`` says what ``gold`` asks for: 0, ½ or 1."""
    if gold.type == "attendee":
        return float(not gold.names.isdisjoint(item.names))
    found = sum(any(term.occurs(item.line) for term in group) for group in gold.groups)
    if 5 * found < 3 * len(gold.groups) or any(term.occurs(item.line) for term in gold.forbid):
        return 0.0
    if gold.owner and not any(term.occurs(item.owner_line) for term in gold.owner):
        return 0.5
    if gold.due is not None:
        said = item.text if item.due is None else item.due
        if gold.due not in find_days(said, meeting.date, day_first=meeting.day_first):
            return 0.5
    return 1.0


def _mean(items: Sequence[GoldItem], hits: Sequence[float]) -> float:
    total = sum(item.weight for item in items)
    return sum(item.weight * value for item, value in zip(items, hits, strict=True)) / total
