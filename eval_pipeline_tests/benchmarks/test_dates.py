"""Texts that are one date."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.benchmarks.dates import read_date

DAY = dt.date(2024, 1, 5)


@pytest.mark.parametrize(
    "text",
    [
        "2024-01-05", "2024/1/5", "2024.01.05", "2024. 1. 5.", "20240105", "２０２４-01-05",
        "2024년 1월 5일", "2024년1월5일(금)", "2024년 1월 5일 금요일",
        "5 January 2024", "5 Jan 2024", "5th of January, 2024", "05-Jan-24", "5JAN2024", "5 Jan. '24",
        "January 5, 2024", "Jan 5th, 2024", "Fri, Jan 5 2024", "2024 January 5", "JANUARY 5, 2024",
        "2024-01-05T23:10:00Z", "2024-01-05 09:30", "Jan 5, 2024, 3:30 pm", "2024-01-05T00:00:00+09:00",
    ],
)  # fmt: skip
def test_the_usual_forms_are_read_whatever_the_order_of_numbers(text: str) -> None:
    assert read_date(text) == read_date(text, day_first=True) == DAY


@pytest.mark.parametrize(
    ("text", "month_first", "day_first"),
    [
        ("01/05/2024", DAY, dt.date(2024, 5, 1)),
        ("05/01/2024", dt.date(2024, 5, 1), DAY),
        ("5.1.24", dt.date(2024, 5, 1), DAY),
        ("13/01/2024", dt.date(2024, 1, 13), dt.date(2024, 1, 13)),
        ("01/13/2024", dt.date(2024, 1, 13), dt.date(2024, 1, 13)),
        ("13/13/2024", None, None),
    ],
)
def test_of_two_numbers_before_a_year_the_caller_says_which_is_the_day(
    text: str, month_first: dt.date | None, day_first: dt.date | None
) -> None:
    assert read_date(text) == month_first
    assert read_date(text, day_first=True) == day_first


def test_a_year_of_two_digits_stands_last_unless_the_caller_says_first() -> None:
    assert read_date("11-12-10", day_first=True) == dt.date(2010, 12, 11)
    assert read_date("11-12-10", year_first=True) == dt.date(2011, 12, 10)
    assert [read_date(f"1.2.{year}") for year in ("68", "69")] == [dt.date(2068, 1, 2), dt.date(1969, 1, 2)]


@pytest.mark.parametrize(
    "text",
    [
        "", "Jan 2024", "2024", "5 January", "2024-02-30", "2024-1/5", "0000-01-01", "99999-01-01", "2024-01-05-06",
        "on 2024-01-05", "2024-01-05 or later", "1.5", "5 Janeiro 2024", "2024-01-05\0", "x" * 1000, "1" * 99,
    ],
)  # fmt: skip
def test_anything_else_is_no_date(text: str) -> None:
    assert read_date(text) is None


@given(st.dates(dt.date(1970, 1, 1), dt.date(2068, 12, 31)))
def test_every_day_is_read_back_from_each_form(day: dt.date) -> None:
    for form in ("%Y-%m-%d", "%Y%m%d", "%d %B %Y", "%b %d, %Y", "%d-%b-%y", "%Y년 %m월 %d일", "%A, %d %B %Y"):
        assert read_date(day.strftime(form)) == day
    assert read_date(day.strftime("%d/%m/%y"), day_first=True) == read_date(day.strftime("%m/%d/%Y")) == day


@given(st.text(st.characters(exclude_categories=()), max_size=150))
def test_no_text_raises(text: str) -> None:
    assert read_date(text) is None or isinstance(read_date(text), dt.date)
