from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.benchmarks.numerals import dates, key, numbers, quotes, times, values
from eval_pipeline_tests.benchmarks.hostile_texts import HOSTILE


def found(text: str) -> list[Decimal]:
    return [number.value for number in numbers(text)]


@pytest.mark.parametrize(
    "text",
    ["6,200,000", "6200000", "6200000.0", "6.2 million", "6.2-million", "620만", "620 만", "6백20만"],
)
def test_one_value_in_every_way_of_writing_it(text: str) -> None:
    assert [key(value) for value in found(text)] == ["6200000"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3만 2천 대", ["32000"]),
        ("3억 5천만 원", ["350000000"]),
        ("1억 2,345만 6,789", ["123456789"]),
        ("1조 2천억", ["1200000000000"]),
        ("3백만 명과 2천 5백 명", ["3000000", "2500"]),
        ("12.5% and 12 per cent and 12퍼센트", ["12.5", "12", "12"]),
        ("-5 °C, from 10-20, (−3)", ["-5", "10", "20", "-3"]),
        ("1e-05 and 2.5E3", ["0.00001", "2500"]),
        ("1,2,3", ["1", "2", "3"]),
        ("330m, 3rd, 약330미터", ["330", "3", "330"]),
        ("A380, v2.1, 0x1F, CO2", []),
        ("2020년에는 3명", ["2020", "3"]),
        ("at 10:30 and 18:05:09", []),
        ("1.2.3", ["1.2"]),
        ("5 of 7.", ["5", "7"]),
    ],
)
def test_numbers_are_read(text: str, expected: list[str]) -> None:
    assert [key(value) for value in found(text)] == expected


@pytest.mark.parametrize(
    ("text", "unit"),
    [("89,700", "100"), ("89,706", "1"), ("6.2 million", "100000"), ("0.50", "0.01"), ("620만", "100000"), ("0", "1")],
)
def test_the_last_written_place_is_known(text: str, unit: str) -> None:
    (number,) = numbers(text)
    assert key(number.unit) == unit


@pytest.mark.parametrize(
    "text",
    ["2019-04-05", "2019.4.5", "5 April 2019", "5th of April, 2019", "April 5, 2019", "Apr. 5 2019", "2019년 4월 5일"],
)
def test_one_date_in_every_way_of_writing_it(text: str) -> None:
    (date,) = dates(f"on {text} it opened")
    assert (date.year, date.month, date.day) == (2019, 4, 5)
    assert not numbers(f"on {text} it opened")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("April 2019", [(2019, 4, None)]),
        ("2019년 4월", [(2019, 4, None)]),
        ("4월 5일", [(None, 4, 5)]),
        ("5 May", [(None, 5, 5)]),
        ("it may 5 times", []),
        ("2019-13-05 and 2019-00-01", []),
        ("31 April 2019 and 40 May", [(2019, 4, 31)]),
    ],
)
def test_dates_may_leave_parts_out(text: str, expected: list[tuple[int | None, int, int | None]]) -> None:
    assert [(date.year, date.month, date.day) for date in dates(text)] == expected


def test_quotations_of_every_kind_are_found_and_apostrophes_are_none() -> None:
    text = "He said \"Hello, World.\" and ‘x y’, 「책 이름」, “긴 말”, don't, it's, 'ok then'"
    assert set(quotes(text)) == {"hello, world", "x y", "책 이름", "긴 말", "ok then"}


def test_times_are_the_same_with_and_without_a_nought() -> None:
    assert times("at 09:30, 9:30 and 25:99") == ["9:30", "9:30"]


def test_a_row_of_a_tool_is_read_both_ways() -> None:
    assert {Decimal(120350), Decimal(120), Decimal(350)} <= values("120,350")
    assert {Decimal(2026), Decimal(3), Decimal(84), Decimal(252)} <= values("2026-03-02,coffee,84,252.00")


@given(st.decimals(min_value=0, max_value=10**12, places=3))
def test_a_number_is_found_however_its_digits_are_grouped(value: Decimal) -> None:
    assert found(f"about {value} of it") == [value]
    assert found(f"about {value:,} of it") == [value]


@given(st.text())
def test_no_text_raises(text: str) -> None:
    numbers(text)
    dates(text)
    quotes(text)
    values(text)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_are_read(name: str) -> None:
    text = HOSTILE[name][:200_000]
    numbers(text)
    quotes(text)
    values(text)
