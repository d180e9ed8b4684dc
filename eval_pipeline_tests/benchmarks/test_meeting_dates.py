"""The days that lines of minutes name, read on Monday, 16 November 2026."""

from __future__ import annotations

import datetime as dt
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.benchmarks.meeting_dates import find_days

MONDAY = dt.date(2026, 11, 16)


def days(text: str, meeting: dt.date = MONDAY, *, day_first: bool = False) -> list[str]:
    return sorted(day.isoformat() for day in find_days(text, meeting, day_first=day_first))


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-30", "2026/11/30", "2026. 11. 30.", "11/30/2026", "30.11.2026", "due: 2026-11-30.", "2026-11-30T09:00",
        "Nov 30", "Nov30", "by Nov. 30.", "November 30th", "November 30th, 2026", "30 November", "30th of Nov", "11/30",
        "11월 30일", "11월30일까지", "2026년 11월 30일", "2026년 11월 30일 (월요일)", "11/30(월)", "11.30(월)",
        "11.30까지", "Monday, Nov 30", "Nov 30 (Monday)", "월요일(11/30)",
        "in two weeks", "in 14 days", "within 14 days", "two weeks from today", "14 days later", "2주 뒤", "14일 후",
        "14일 이내",
        "Monday the 30th", "by the 30th", "30일까지", "end of the month", "end of November", "month-end", "month end",
        "월말까지", "이달 말", "이번 달 말", "11월 말", "다다음 주 월요일",
    ],
)  # fmt: skip
def test_the_thirtieth_of_november_has_many_names(text: str) -> None:
    assert "2026-11-30" in days(text)
    assert set(days(text)) <= {"2026-11-30", "2026-11-16", "2026-11-23"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("today", ["2026-11-16"]),
        ("오늘 중으로", ["2026-11-16"]),
        ("tomorrow", ["2026-11-17"]),
        ("내일까지", ["2026-11-17"]),
        ("the day after tomorrow", ["2026-11-18"]),
        ("모레", ["2026-11-18"]),
        ("내일모레", ["2026-11-18"]),
        ("이틀 뒤", ["2026-11-18"]),
        ("글피", ["2026-11-19"]),
        ("3일 뒤(목)", ["2026-11-19"]),
        ("a week from now", ["2026-11-23"]),
        ("일주일 후", ["2026-11-23"]),
        ("보름 안에", ["2026-12-01"]),
        ("in a month", ["2026-12-16"]),
        ("두 달 뒤", ["2027-01-16"]),
        ("by Friday", ["2026-11-20"]),
        ("this Friday", ["2026-11-20"]),
        ("금요일까지", ["2026-11-20"]),
        ("이번 주 금요일", ["2026-11-20"]),
        ("next Friday", ["2026-11-20", "2026-11-27"]),
        ("next week Friday", ["2026-11-27"]),
        ("on Friday of next week", ["2026-11-27"]),
        ("다음 주 금요일까지", ["2026-11-27"]),
        ("다음주 금", ["2026-11-27"]),
        ("차주 수요일", ["2026-11-25"]),
        ("Monday", ["2026-11-16", "2026-11-23"]),
        ("end of the week", ["2026-11-20"]),
        ("end of next week", ["2026-11-27"]),
        ("end of next month", ["2026-12-31"]),
        ("다음 달 말", ["2026-12-31"]),
        ("다음 달 5일", ["2026-12-05"]),
        ("the 5th of next month", ["2026-12-05"]),
        ("end of the quarter", ["2026-12-31"]),
        ("분기 말", ["2026-12-31"]),
        ("연말까지", ["2026-12-31"]),
        ("end of next year", ["2027-12-31"]),
        ("Nov 10", ["2027-11-10"]),
        ("1월 3일", ["2027-01-03"]),
        ("Feb 29", ["2028-02-29"]),
        ("the 5th", ["2026-12-05"]),
        ("26.12.01", ["2026-12-01", "2001-12-26"]),
        ("draft by Nov 28, final by Nov 30", ["2026-11-28", "2026-11-30"]),
        ("28일과 30일", ["2026-11-28", "2026-11-30"]),
    ],
)
def test_other_days_are_found(text: str, expected: list[str]) -> None:
    assert days(text) == sorted(expected)


@pytest.mark.parametrize(
    "text",
    [
        "", "We may draft 2 reports", "budget of 1.5 million", "v1.2.3", "10:30", "100/200", "2일간", "30일 동안",
        "3일차", "next month", "next week", "2026-13-40", "32일까지", "0월 0일", "999999-11-11", "2026", "4분의 1",
        "sunny days", "fried",
    ],
)  # fmt: skip
def test_what_is_no_day_is_none(text: str) -> None:
    assert days(text) == []


def test_which_of_two_numbers_is_the_day_is_the_tasks_to_say() -> None:
    assert days("11/12") == ["2027-11-12"]
    assert days("11/12", day_first=True) == ["2026-12-11"]
    assert days("30/11", day_first=False) == ["2026-11-30"]


def test_the_ends_of_the_calendar_raise_nothing() -> None:
    for edge in (dt.date.min, dt.date.max):
        for text in (
            "tomorrow",
            "in 999 months",
            "end of next year",
            "다음 주 금요일",
            "next Friday",
            "Feb 29",
            "the 31st",
        ):
            assert all(isinstance(day, dt.date) for day in find_days(text, edge))


@pytest.mark.parametrize(
    "text",
    ["1 " * 50_000, "1" * 100_000, "next " * 20_000, "월요일 " * 20_000, "11월 " * 20_000, " " * 100_000,
     "2026-11-" * 9_000, "end of the " * 9_000, "\n" * 100_000, "3일 " * 20_000, "(" * 100_000, "a month " * 9_000],
)  # fmt: skip
def test_long_lines_are_read_soon(text: str) -> None:
    started = time.monotonic()
    find_days(text, MONDAY)
    assert time.monotonic() - started < 5


@given(st.dates(dt.date(2026, 1, 1), dt.date(2027, 12, 31)), st.integers(0, 300))
def test_a_day_in_the_coming_year_needs_no_year(meeting: dt.date, ahead: int) -> None:
    day = meeting + dt.timedelta(ahead)
    for text in (day.strftime("%B %d"), f"{day.month}월 {day.day}일", f"{day.month}/{day.day}", day.isoformat()):
        assert find_days(text, meeting) == {day}


@given(st.text(max_size=300), st.dates())
def test_no_text_raises(text: str, meeting: dt.date) -> None:
    assert all(isinstance(day, dt.date) for day in find_days(text, meeting))
