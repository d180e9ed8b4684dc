"""When two results are the same, without any database."""

from __future__ import annotations

import math
import time
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_pipeline.benchmarks.sql_rows import (
    Cell,
    Row,
    canonical,
    cells_equal,
    column_arrangement,
    lists_equal,
    multisets_equal,
    ordered_equal,
)

cells = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-3, 3),
    st.floats(),
    st.sampled_from([0.0, -0.0, 0.1, 1.0, 1e300, math.inf]),
    st.text(max_size=4),
    st.binary(max_size=4),
)
results = st.integers(0, 4).flatmap(lambda width: st.lists(st.tuples(*[cells] * width), max_size=8))


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        (None, None, True),
        (None, 0, False),
        (None, "", False),
        (1, 1.0, True),
        (1, 2, False),
        (2**53, 2**53 + 1, False),
        (2**53 + 1, float(2**53), True),
        (0.1 + 0.2, 0.3, True),
        (1.0, 1.0 + 0.9e-6, True),
        (1.0, 1.0 + 1.1e-6, False),
        (1e12, 1e12 + 900, True),
        (1e12, 1e12 + 1100, False),
        (10**400, 1.0, False),
        (10**400, 10**400, True),
        (math.inf, math.inf, True),
        (math.inf, -math.inf, False),
        (math.nan, math.nan, True),
        (math.nan, 0.0, False),
        (-0.0, 0.0, True),
        ("1", 1, False),
        ("a", "A", False),
        ("a", "a ", False),
        ("a", b"a", False),
        (b"\x00", b"\x00", True),
        ("2020-01-05 00:00:00", "2020-01-05", False),
    ],
)
def test_cells_are_equal_by_the_rule(left: Cell, right: Cell, equal: bool) -> None:
    assert cells_equal(left, right) is equal
    assert cells_equal(right, left) is equal


def test_texts_are_compared_in_nfc_and_truth_is_a_number() -> None:
    assert canonical([("한글", True, "é")]) == canonical([(unicodedata.normalize("NFD", "한글"), 1, "e\u0301")])
    assert canonical([("\udcff",)]) == [("\udcff",)]


@settings(deadline=None)
@given(results)
def test_a_result_equals_itself_in_any_order(rows: list[Row]) -> None:
    ours = canonical(rows)
    assert multisets_equal(ours, ours)
    assert multisets_equal(ours, ours[::-1])
    assert lists_equal(ours, ours)
    assert ordered_equal(ours, ours, [(place,) for place in range(len(ours))])
    assert ordered_equal(ours[::-1], ours, [(0,)] * len(ours))


@settings(deadline=None)
@given(results, results)
def test_equality_is_the_same_from_both_sides(left: list[Row], right: list[Row]) -> None:
    ours, theirs = canonical(left), canonical(right)
    assert multisets_equal(ours, theirs) == multisets_equal(theirs, ours)
    if lists_equal(ours, theirs):
        assert multisets_equal(ours, theirs)


@settings(deadline=None)
@given(results)
def test_one_row_more_is_another_result(rows: list[Row]) -> None:
    ours = canonical(rows)
    assert not multisets_equal([*ours, *ours[:1], ()], ours)


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(-1e6, 1e6), st.sampled_from("ab")), min_size=1, max_size=30), st.randoms())
def test_noise_in_the_last_digits_changes_nothing(rows: list[Row], random: object) -> None:
    noisy = [(number + random.uniform(-4e-7, 4e-7), text) for number, text in rows]  # type: ignore
    random.shuffle(noisy)  # type: ignore[attr-defined]
    assert multisets_equal(canonical(noisy), canonical(rows))


def test_rows_between_which_rounding_cuts_are_matched() -> None:
    # sorted by their rounded numbers the rows stand crosswise, and only a matching finds the right partners
    left: list[Row] = [(1.0000005, 2.0), (1.0000004, 3.0)]
    right: list[Row] = [(1.0000004, 2.0), (1.0000005, 3.0)]
    assert multisets_equal(left, right)
    assert not multisets_equal(left, [(1.0000004, 2.0), (1.0000005, 2.0)])


def test_a_chain_of_close_numbers_needs_a_partner_for_each() -> None:
    step = 0.8e-6
    left: list[Row] = [(n * step, 0.5) for n in range(40)]
    assert multisets_equal(left, [(n * step + step, 0.5) for n in range(40)][::-1])
    assert not multisets_equal(left, [(n * step, 0.5) for n in range(39)] + [(99.0, 0.5)])


def test_whole_numbers_of_any_size_can_be_sorted() -> None:
    left: list[Row] = [(10**400, 0.5), (-(10**400), 0.5), (math.nan, 0.5)]
    assert multisets_equal(canonical(left), canonical([(number, half + 1e-9) for number, half in left][::-1]))  # type: ignore[operator]


def test_whole_numbers_are_not_matched_within_a_tolerance() -> None:
    assert not multisets_equal([(10**15, 0.1), (10**15 + 1, 0.1 + 1e-9)], [(10**15, 0.1), (10**15, 0.1)])


@pytest.mark.parametrize("size", [2_000, 100_000])
def test_large_results_take_bounded_time(size: int) -> None:
    begin = time.perf_counter()
    rows: list[Row] = [(n % 7 + 1e-7 * (n % 3), float(n % 11), "x") for n in range(size)]
    noisy: list[Row] = [(n % 7 + 1e-7 * ((n + 1) % 3), float(n % 11) + 1e-8, "x") for n in range(size)]
    multisets_equal(noisy, rows)
    assert not multisets_equal([*noisy[:-1], (99.0, 99.0, "x")], rows)
    assert time.perf_counter() - begin < 60


def test_ties_may_stand_in_any_order_and_nothing_else() -> None:
    gold: list[Row] = [("a", 3), ("b", 2), ("c", 2), ("d", 1)]
    keys: list[Row] = [(3,), (2,), (2,), (1,)]
    assert ordered_equal([("a", 3), ("c", 2), ("b", 2), ("d", 1)], gold, keys)
    assert not ordered_equal([("b", 2), ("a", 3), ("c", 2), ("d", 1)], gold, keys)
    assert not ordered_equal(gold[:3], gold, keys)


@pytest.mark.parametrize(
    ("predicted", "gold", "width", "found"),
    [
        ([(1, "a"), (2, "b")], [("a", 1), ("b", 2)], (2, 2), True),
        ([(1, "a"), (2, "b")], [("a", 2), ("b", 1)], (2, 2), False),
        ([(1, "a", None), (2, "b", None)], [("a", 1), ("b", 2)], (3, 2), True),
        ([(1, "a", 1), (2, "b", 9)], [("a",), ("b",)], (3, 1), True),
        ([("a",)], [("a", 1)], (1, 2), False),
        ([], [], (2, 1), False),
        ([(5,) * 30] * 3, [(5,) * 29 + (6,)] * 3, (30, 30), False),
        ([(5,) * 40] * 3, [(5,) * 30] * 3, (40, 30), True),
        ([tuple(range(2000))], [tuple(range(2000))[::-1]], (2000, 2000), False),
    ],
)
def test_columns_in_another_arrangement_are_found(
    predicted: list[Row], gold: list[Row], width: tuple[int, int], found: bool
) -> None:
    assert column_arrangement(predicted, gold, width) is found


def test_looking_for_an_arrangement_ends() -> None:
    begin = time.perf_counter()
    rows: list[Row] = [tuple((n * k) % 2 for k in range(24)) for n in range(64)]
    turned: list[Row] = [tuple(row[::-1]) for row in rows[::-1]]
    column_arrangement(rows, turned, (24, 24))
    column_arrangement(rows, [(*row[:-1], 1 - int(str(row[-1]))) for row in rows], (24, 24))
    assert time.perf_counter() - begin < 30
