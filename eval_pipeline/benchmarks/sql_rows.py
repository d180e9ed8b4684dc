"""When two results of queries are the same: cells, rows as multisets, rows in order with ties. Pure.

Running queries belongs to :mod:`eval_pipeline.tools.sql`, the verdict to :mod:`eval_pipeline.benchmarks.sql`.
"""

from __future__ import annotations

import math
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import groupby, islice
from typing import TypeAlias

Cell: TypeAlias = "int | float | str | bytes | None"
Row: TypeAlias = tuple[Cell, ...]

REL_TOLERANCE, ABS_TOLERANCE = 1e-9, 1e-6
MAX_MATCHED = 2000
"""Rows that are matched pair by pair, where sorting them has not settled it."""
_TRIED = 200
"""Arrangements of columns that are tried."""
_MAX_WIDTH = 64
"""Columns of results that are rearranged."""
_NUMBER = "number"
_Kind: TypeAlias = "tuple[str, Cell]"
_Numbers: TypeAlias = "tuple[int | float, ...]"


def canonical(rows: Sequence[Row]) -> list[Row]:
    """``rows`` with texts in NFC, truth values as numbers, and one NaN."""
    return [tuple(map(_canonical, row)) for row in rows]


def cells_equal(left: Cell, right: Cell) -> bool:
    """Whether two canonical cells are equal.

    NULL equals NULL alone. Two whole numbers are compared exactly, other numbers within 1e-9 of each other (relative)
    or 1e-6 (absolute); texts and bytes exactly.
    """
    if _is_number(left) and _is_number(right):
        if isinstance(left, int) and isinstance(right, int):
            return left == right
        return _close(left, right)
    return type(left) is type(right) and left == right


def rows_equal(left: Row, right: Row) -> bool:
    """Whether two canonical rows are of one length and equal cell by cell."""
    return len(left) == len(right) and all(map(cells_equal, left, right))


def lists_equal(left: Sequence[Row], right: Sequence[Row]) -> bool:
    """Whether canonical rows are equal one by one, in their order."""
    return len(left) == len(right) and all(map(rows_equal, left, right))


def multisets_equal(left: Sequence[Row], right: Sequence[Row]) -> bool:
    """Whether canonical rows are equal whatever their order, each as often as on the other side.

    Exactly equal rows are counted. Else rows that agree in all that is no number are sorted by their numbers and
    compared in pairs. Where that fails too, and there are at most 2,000 of them, a matching is looked for that gives
    every row a partner within the tolerance.
    """
    if len(left) != len(right):
        return False
    if Counter(left) == Counter(right):
        return True
    ours, theirs = _by_kind(left), _by_kind(right)
    if {kind: len(rows) for kind, rows in ours.items()} != {kind: len(rows) for kind, rows in theirs.items()}:
        return False
    return all(_numbers_match(rows, theirs[kind]) for kind, rows in ours.items())


def ordered_equal(predicted: Sequence[Row], gold: Sequence[Row], keys: Sequence[Row]) -> bool:
    """Whether canonical rows are equal in order, rows with equal sort keys standing in any order among themselves.

    ``keys`` are those of the gold rows, one for each.
    """
    if not len(predicted) == len(gold) == len(keys):
        return False
    start = 0
    for _, group in groupby(keys):
        stop = start + len(list(group))
        if not multisets_equal(predicted[start:stop], gold[start:stop]):
            return False
        start = stop
    return True


def column_arrangement(predicted: Sequence[Row], gold: Sequence[Row], width: tuple[int, int]) -> bool:
    """Whether the gold columns are all among the predicted ones, in another order or with others between them.

    ``width`` is the number of predicted and of gold columns. At most 200 arrangements are tried, over 2,000 rows.
    """
    predicted_width, gold_width = width
    if len(predicted) != len(gold) or not gold or len(gold) > MAX_MATCHED:
        return False
    if not gold_width <= predicted_width <= _MAX_WIDTH:
        return False
    offered = [_column(predicted, place) for place in range(predicted_width)]
    wanted = [_column(gold, place) for place in range(gold_width)]
    choices = [[place for place, column in enumerate(offered) if column == want] for want in wanted]
    # columns that look alike share their choices: enough of them for each, and no choice leads nowhere
    if any(len(choice) < choices.count(choice) for choice in choices):
        return False
    return any(
        multisets_equal([tuple(row[place] for place in chosen) for row in predicted], gold)
        for chosen in islice(_distinct(choices, []), _TRIED)
    )


def _canonical(cell: Cell) -> Cell:
    if isinstance(cell, str):
        return unicodedata.normalize("NFC", cell)
    if isinstance(cell, bool):
        return int(cell)
    if isinstance(cell, float) and math.isnan(cell):
        return math.nan
    return cell


def _is_number(cell: Cell) -> bool:
    return isinstance(cell, int | float)


def _close(left: Cell, right: Cell) -> bool:
    assert isinstance(left, int | float)
    assert isinstance(right, int | float)
    try:
        if math.isnan(left) or math.isnan(right):
            return math.isnan(left) and math.isnan(right)
        return math.isclose(left, right, rel_tol=REL_TOLERANCE, abs_tol=ABS_TOLERANCE)
    except OverflowError:  # a whole number that no float can hold
        return False


def _by_kind(rows: Sequence[Row]) -> dict[tuple[_Kind, ...], list[_Numbers]]:
    """The numbers of each row, under all that is no number in it."""
    found: dict[tuple[_Kind, ...], list[_Numbers]] = defaultdict(list)
    for row in rows:
        kind = tuple((_NUMBER, None) if _is_number(cell) else (type(cell).__name__, cell) for cell in row)
        found[kind].append(tuple(cell for cell in row if isinstance(cell, int | float)))
    return found


def _numbers_match(left: list[_Numbers], right: list[_Numbers]) -> bool:
    """Whether rows of numbers, as many on both sides, can be paired within the tolerance."""
    if not left[0] or Counter(left) == Counter(right):
        return True
    # a single column needs no rounding: in pairs by size, no two could do better by changing partners
    key = _floats if len(left[0]) == 1 else _rounded
    if all(map(rows_equal, sorted(left, key=key), sorted(right, key=key))):
        return True
    return len(left) <= MAX_MATCHED and _can_be_matched(left, right)


def _floats(row: _Numbers) -> tuple[float, ...]:
    numbers = map(_as_float, row)
    return tuple(-math.inf if math.isnan(number) else number for number in numbers)


def _rounded(row: _Numbers) -> tuple[float, ...]:
    return tuple(float(f"{number:.6g}") for number in _floats(row))


def _as_float(number: int | float) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _can_be_matched(left: list[_Numbers], right: list[_Numbers]) -> bool:
    """Whether every row can have a partner of its own, by a maximum matching of all pairs that are equal."""
    import numpy as np  # noqa: PLC0415 - only for results that differ in their last digits
    from scipy.sparse import csr_matrix  # noqa: PLC0415
    from scipy.sparse.csgraph import maximum_bipartite_matching  # noqa: PLC0415

    near = np.ones((len(left), len(right)), dtype=bool)
    for ours, theirs in zip(zip(*left, strict=True), zip(*right, strict=True), strict=True):
        exact = np.array(ours, dtype=object)[:, None] == np.array(theirs, dtype=object)[None, :]
        whole = np.array([isinstance(number, int) for number in ours])[:, None] & np.array(
            [isinstance(number, int) for number in theirs]
        )
        a, b = np.array([_as_float(n) for n in ours])[:, None], np.array([_as_float(n) for n in theirs])[None, :]
        with np.errstate(invalid="ignore", over="ignore"):
            room = np.maximum(REL_TOLERANCE * np.maximum(np.abs(a), np.abs(b)), ABS_TOLERANCE)
            close = (np.abs(a - b) <= room) & np.isfinite(a) & np.isfinite(b)
        close |= np.isnan(a) & np.isnan(b)
        near &= exact.astype(bool) | (close & ~whole)
    partners = maximum_bipartite_matching(csr_matrix(near), perm_type="column")
    return bool((partners >= 0).all())


def _column(rows: Sequence[Row], place: int) -> Counter[_Kind]:
    """What a column holds, without its order and without the last digits of its numbers."""
    found: Counter[_Kind] = Counter()
    for row in rows:
        cell = row[place]
        if isinstance(cell, int | float):
            found[_NUMBER, _rounded((cell,))[0]] += 1
        else:
            found[type(cell).__name__, cell] += 1
    return found


def _distinct(choices: list[list[int]], taken: list[int]) -> Iterator[list[int]]:
    """Every way to take one of each of ``choices``, none twice."""
    if len(taken) == len(choices):
        yield taken
        return
    for place in choices[len(taken)]:
        if place not in taken:
            yield from _distinct(choices, [*taken, place])
