"""Ids of runs say when they were made, and every moment has its month."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from uuid import RFC_4122, UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.errors import IdError
from eval_pipeline.run_ids import FIRST_YEAR, LAST_YEAR, Month, new_run_id

MOMENTS = st.integers(0, 2**48 - 1)
MONTHS = st.builds(Month, st.integers(FIRST_YEAR, LAST_YEAR), st.integers(1, 12))
LOWEST = Month(FIRST_YEAR, 1).first_id
HIGHEST = Month(LAST_YEAR, 12).end_id


@given(MOMENTS)
def test_an_id_is_a_uuid_of_version_7_that_holds_its_moment(milliseconds: int) -> None:
    run_id = new_run_id(milliseconds)
    assert (run_id.version, run_id.variant) == (7, RFC_4122)
    assert run_id.int >> 80 == milliseconds
    assert UUID(str(run_id)) == run_id


@given(MOMENTS, MOMENTS)
def test_ids_are_in_the_order_of_their_milliseconds(one: int, other: int) -> None:
    if one != other:
        assert (new_run_id(one) < new_run_id(other)) == (one < other)
        assert (str(new_run_id(one)) < str(new_run_id(other))) == (one < other)


@pytest.mark.parametrize("milliseconds", [-1, 2**48])
def test_a_moment_that_does_not_fit_is_refused(milliseconds: int) -> None:
    with pytest.raises(ValueError, match="48 bits"):
        new_run_id(milliseconds)


def test_all_other_bits_are_random() -> None:
    ids = [new_run_id(0).int for _ in range(2000)]
    assert len(set(ids)) == len(ids)
    always = never = (1 << 128) - 1
    for one in ids:
        always &= one
        never &= ~one
    # 48 zeros of the moment, and 0111 and 10 of the version and variant
    assert always == 0x7 << 76 | 0b10 << 62
    assert never == ((1 << 48) - 1) << 80 | 0x8 << 76 | 0b01 << 62


def test_an_id_is_of_now() -> None:
    before = time.time_ns() // 1_000_000
    made = new_run_id().int >> 80
    assert before <= made <= time.time_ns() // 1_000_000


@given(st.datetimes(datetime(FIRST_YEAR, 1, 1), datetime(LAST_YEAR, 12, 31, 23, 59, 59)))
def test_an_id_is_in_the_month_of_its_moment_and_in_no_other(naive: datetime) -> None:
    moment = naive.replace(tzinfo=UTC)
    month = Month.of(moment)
    run_id = new_run_id((moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1))
    assert month.first_id <= run_id < month.end_id
    assert Month.of_run(run_id) == month


@given(MONTHS)
def test_a_month_begins_where_the_one_before_ends(month: Month) -> None:
    following = month.next()
    assert month.end_id == following.first_id
    assert month < following
    last, first = UUID(int=month.end_id.int - 1), month.end_id
    assert Month.of_run(last) == month
    assert Month.of_run(first) == (following if following.year <= LAST_YEAR else None)
    assert new_run_id(month.first_id.int >> 80) >= month.first_id
    assert Month.parse(str(month), "--before") == month


@given(st.integers(0, 2**128 - 1))
def test_any_id_has_one_month_or_none(value: int) -> None:
    month = Month.of_run(UUID(int=value))
    if month is None:
        assert not LOWEST.int <= value < HIGHEST.int
    else:
        assert month.first_id.int <= value < month.end_id.int


def test_most_ids_of_version_4_are_in_no_month() -> None:
    assert sum(Month.of_run(uuid4()) is None for _ in range(1000)) > 950


@pytest.mark.parametrize(
    "text",
    ["", "2026", "2026-1", "2026-00", "2026-13", "26-11", "2019-12", "2100-01", "2026-11-30", " 2026-11", "2026-11\n",
     "٢٠٢٦-11", "../2026-11", "x" * 10_000, "2026-11\x00"],
)  # fmt: skip
def test_what_is_no_month_is_one_line(text: str) -> None:
    with pytest.raises(IdError, match=r"--before: .* is not a month") as caught:
        Month.parse(text, "--before")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


def test_a_month_is_that_of_utc() -> None:
    assert Month.of(datetime.fromisoformat("2026-12-01T08:59:59+09:00")) == Month(2026, 11)
    assert Month.of(datetime.fromisoformat("2026-12-01T09:00:00+09:00")) == Month(2026, 12)


def test_the_next_months_go_over_the_end_of_the_year() -> None:
    assert [str(month) for month in Month(2026, 11).and_next(2)] == ["2026-11", "2026-12", "2027-01"]
