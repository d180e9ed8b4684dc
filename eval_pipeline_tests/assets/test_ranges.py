"""Which contiguous ranges a launch is cut into: everything asked for, and between it only what is done."""

from __future__ import annotations

from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.assets.ranges import contiguous
from eval_pipeline.ids import TaskAttempt


def cells(names: str) -> list[TaskAttempt]:
    return [TaskAttempt(name, 1) for name in names]


def cut(known: str, wanted: str, done: str) -> list[str]:
    """The ranges as words of one-letter tasks."""
    ranges = contiguous([cell.key for cell in cells(known)], cells(wanted), cells(done))
    return ["".join(cell.task_id for cell in found) for found in ranges]


@pytest.mark.parametrize(
    ("known", "wanted", "done", "ranges"),
    [
        ("abcde", "abcde", "", ["abcde"]),
        ("abcde", "bd", "", ["b", "d"]),
        ("abcde", "bd", "c", ["bcd"]),
        ("abcde", "bd", "ace", ["bcd"]),
        ("abcde", "be", "c", ["b", "e"]),
        # asked for again although it is done: it is reported again, at no cost
        ("abcde", "bcd", "c", ["bcd"]),
        # in the order of registration, whatever the order asked in
        ("acb", "abc", "", ["acb"]),
        ("abcde", "", "abcde", []),
        ("", "ab", "", []),
    ],
)
def test_a_launch_bridges_what_is_done_and_nothing_else(known: str, wanted: str, done: str, ranges: list[str]) -> None:
    assert cut(known, wanted, done) == ranges


@given(st.permutations("abcdefgh"), st.sets(st.sampled_from("abcdefgh")), st.sets(st.sampled_from("abcdefgh")))
def test_every_wanted_cell_is_in_one_range_and_no_cell_runs_that_nobody_asked_for(
    known: list[str], wanted: set[str], done: set[str]
) -> None:
    order = "".join(known)
    ranges = cut(order, "".join(wanted), "".join(done))
    held = list(chain.from_iterable(ranges))
    assert wanted <= set(held) <= wanted | done
    assert len(held) == len(set(held))
    assert all(found in order and found[0] in wanted and found[-1] in wanted for found in ranges)
