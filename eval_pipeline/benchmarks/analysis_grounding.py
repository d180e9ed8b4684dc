"""How many of an analysis's numbers and quoted names stand in what the tools returned: a view, never the verdict.

A number is grounded if a tool returned it, or if it is a rounding of one, within 1 %. What stands in the question and
in no result is given: neither for nor against the answer.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from eval_pipeline.benchmarks import numerals, prose
from eval_pipeline.benchmarks.fences import unfenced
from eval_pipeline.benchmarks.json_answer import Json, NotJsonError, read_json
from eval_pipeline.benchmarks.numerals import Number

_TOLERANCE = Decimal("0.01")
_FIRST_YEAR, _LAST_YEAR = 1900, 2100
_LONGEST_NAME = 60
_MOST_NAMES = 1_000
_LIST_NUMBER = re.compile(r"^[ \t]*(?:#{1,6}[ \t]*(?:\d{1,3}\.)*\d{1,3}\.?|\(?\d{1,3}[.)])(?=[ \t])", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Grounded:
    """Distinct values of one kind: how many there are, those grounded, and those only given by the question."""

    total: int
    grounded: int
    given: int

    @property
    def share(self) -> float | None:
        """Grounded ones of all but the given; ``None`` where there is none."""
        judged = self.total - self.given
        return self.grounded / judged if judged else None


def number_grounding(answer: str, question: str, results: Iterable[str]) -> Grounded:
    """The numbers of ``answer``; years, dates, times and the numbers of lists are left out."""
    returned, asked = _Values(map(prose.tidy, results)), _Values([prose.tidy(question)])
    stated = {number.value: number for number in _numbers(answer)}.values()
    grounded = [number for number in stated if returned.have(number)]
    given = [number for number in stated if not returned.have(number) and asked.have(number)]
    return Grounded(len(stated), len(grounded), len(given))


def entity_grounding(answer: str, question: str, results: Iterable[str]) -> Grounded:
    """The names of ``answer`` in quotation marks; of a JSON answer the texts of at most 60 characters."""
    returned = "\n".join(_flat(result) for result in results)
    asked = _flat(question)
    names = list(dict.fromkeys(_names(answer)))[:_MOST_NAMES]
    grounded = [name for name in names if name in returned]
    given = [name for name in names if name not in returned and name in asked]
    return Grounded(len(names), len(grounded), len(given))


class _Values:
    """The numbers of some texts, to find the one that is nearest to another."""

    def __init__(self, texts: Iterable[str]) -> None:
        values = set().union(*(numerals.values(text) for text in texts))
        self._values = sorted(values)
        # a program that prints 0.123 grounds an answer of 12.3 %
        self._percents = sorted(value * 100 for value in values)

    def have(self, number: Number) -> bool:
        return _near(number, self._values) or (number.percent and _near(number, self._percents))


def _near(number: Number, values: Sequence[Decimal]) -> bool:
    place = bisect_left(values, number.value)
    return any(_is_rounding(number, value) for value in values[max(0, place - 1) : place + 1])


def _is_rounding(number: Number, value: Decimal) -> bool:
    difference = abs(number.value - value)
    return difference == 0 or (difference < number.unit and difference <= _TOLERANCE * abs(value))


def _numbers(answer: str) -> Iterable[Number]:
    leaves = _leaves(answer)
    text = prose.tidy(answer if leaves is None else "\n".join(str(leaf) for leaf in leaves))
    for number in numerals.numbers(_LIST_NUMBER.sub(" ", text)):
        if not (number.plain and _FIRST_YEAR <= number.value <= _LAST_YEAR):
            yield number


def _names(answer: str) -> Iterable[str]:
    leaves = _leaves(answer)
    if leaves is None:
        return (name for name in numerals.quotes(prose.tidy(answer)) if len(name) <= _LONGEST_NAME)
    texts = (_flat(leaf) for leaf in leaves if isinstance(leaf, str))
    return (text for text in texts if 2 <= len(text) <= _LONGEST_NAME and any(map(str.isalpha, text)))


def _flat(text: str) -> str:
    return numerals.plain(prose.tidy(text))


def _leaves(answer: str) -> list[Json] | None:
    """The texts and numbers of an answer that is JSON; ``None`` for any other answer."""
    try:
        value = read_json(unfenced(answer))
    except NotJsonError:
        return None
    found: list[Json] = []
    pending: list[Json] = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            pending += item.values()
        elif isinstance(item, list):
            pending += item
        elif isinstance(item, str | int | Decimal) and not isinstance(item, bool):
            found.append(item)
    return found
