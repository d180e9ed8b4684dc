from __future__ import annotations

import json
import math
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_pipeline.tracing.text import DEEPEST, TOO_DEEP, clean, clean_json, parse_json

ANY_TEXT = st.text(st.characters(exclude_categories=()))


@pytest.mark.parametrize(
    ("text", "cleaned", "repairs"),
    [
        ("", "", 0),
        ("plain", "plain", 0),
        ("a\0b\0", "a\ufffdb\ufffd", 2),
        ("lone \ud800 high", "lone \ufffd high", 1),
        ("lone \udfff low", "lone \ufffd low", 1),
        ("\udc00\ud800", "\ufffd\ufffd", 2),
        ("at the end \ud83d", "at the end \ufffd", 1),
        ("\ud83d\ude00 in two pieces", "😀 in two pieces", 0),
        ("\0\ud800", "\ufffd\ufffd", 2),
        ("already \ufffd there", "already \ufffd there", 0),
        ("already \ufffd and \ud800", "already \ufffd and \ufffd", 1),
        ("한글 한글 \u0000", "한글 한글 \ufffd", 1),
        ("\x01\x1b[31m\x7f\x85\t\r\n", "\x01\x1b[31m\x7f\x85\t\r\n", 0),
        ("\ufeff\u202e\u2028", "\ufeff\u202e\u2028", 0),
        ("decomposed \u1112\u1161\u11ab", "decomposed \u1112\u1161\u11ab", 0),
    ],
)
def test_only_nul_and_lone_surrogates_are_replaced(text: str, cleaned: str, repairs: int) -> None:
    assert clean(text) == (cleaned, repairs)


@settings(deadline=None)
@given(ANY_TEXT)
def test_a_cleaned_text_is_fit_and_clean(text: str) -> None:
    cleaned, repairs = clean(text)
    cleaned.encode()
    assert "\0" not in cleaned
    assert clean(cleaned) == (cleaned, 0)
    assert (repairs == 0) or cleaned != text


@settings(deadline=None)
@given(st.text(st.characters(codec="utf-8", exclude_characters="\0")))
def test_a_fit_text_is_not_touched(text: str) -> None:
    assert clean(text) == (text, 0)


@pytest.mark.parametrize("unit", ["a", "한", "\0", "\ud800", "😀", "\ud83d\ude00"])
def test_ten_megabytes_are_cleaned_at_once(unit: str) -> None:
    start = time.monotonic()
    clean(unit * (10_000_000 // len(unit.encode("utf-8", "surrogatepass"))))
    assert time.monotonic() - start < 10


def test_json_values_are_cleaned_all_through() -> None:
    value = {"k\0": ["\ud800", {"x": "ok", "y": ("\0", 1)}], "n": None, "b": True, "i": 7, "f": 0.5}
    assert clean_json(value) == (
        {"k\ufffd": ["\ufffd", {"x": "ok", "y": ["\ufffd", 1]}], "n": None, "b": True, "i": 7, "f": 0.5},
        3,
    )


@pytest.mark.parametrize(
    ("value", "cleaned"),
    [
        (math.nan, "NaN"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        (10**99, 10**99),
        (10**100, hex(10**100)),
        ({1: 2}, {"1": 2}),
        (b"bytes", "b'bytes'"),
        ({1}, "{1}"),
    ],
)
def test_what_json_cannot_say_becomes_text(value: object, cleaned: object) -> None:
    assert clean_json(value) == (cleaned, 0)


def test_numbers_that_python_does_not_print_become_text() -> None:
    huge = -(10**5000)
    assert clean_json([huge, {huge: 1}]) == ([hex(huge), {"[int without a text]": 1}], 0)


def test_an_object_that_cannot_even_be_named_becomes_text() -> None:
    class Hostile:
        def __str__(self) -> str:
            raise RuntimeError("no")

    assert clean_json([Hostile()]) == (["[Hostile without a text]"], 0)


def test_deep_nesting_ends_in_a_remark() -> None:
    deep: object = "bottom"
    for _ in range(5000):
        deep = [deep]
    cleaned, repairs = clean_json(deep)
    assert repairs == 1
    for _ in range(DEEPEST):
        assert isinstance(cleaned, list)
        [cleaned] = cleaned
    assert cleaned == TOO_DEEP


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1, "b": [0.5, true, null, "한"]}', {"a": 1, "b": [0.5, True, None, "한"]}),
        ("[NaN, Infinity, -Infinity]", ["NaN", "Infinity", "-Infinity"]),
        ("[1e400, -1e400, 1e308]", ["1e400", "-1e400", 1e308]),
        ("9" * 100, int("9" * 100)),
        ("9" * 101, "9" * 101),
        ("9" * 5000, "9" * 5000),
    ],
)
def test_no_number_of_a_json_text_is_lost(text: str, value: object) -> None:
    assert parse_json(text) == value


@pytest.mark.parametrize("text", ["", "{", "{'a': 1}", "[" * 100_000, '"\n"', "nan"])
def test_what_is_no_json_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_json(text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(ANY_TEXT, inner),
)


@settings(deadline=None)
@given(JSON)
def test_a_cleaned_value_is_json_that_can_be_encoded(value: object) -> None:
    cleaned, _ = clean_json(value)
    text = json.dumps(cleaned, ensure_ascii=False, allow_nan=False)
    text.encode()
    assert "\\u0000" not in text.replace("\\\\", "")
    assert clean_json(cleaned) == (cleaned, 0)
