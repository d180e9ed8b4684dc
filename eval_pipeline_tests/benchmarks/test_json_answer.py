"""Finding the one JSON value of an answer, and refusing everything that only looks like one."""

from __future__ import annotations

import json
import time
import unicodedata
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.benchmarks.json_answer import MAX_DEPTH, MAX_VALUES, NotJsonError, find_json, read_json
from eval_pipeline_tests.benchmarks.hostile_texts import HOSTILE


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1}',
        ' \n{"a": 1}\n',
        '\ufeff{"a": 1}',
        '```json\n{"a": 1}\n```',
        '```\n{"a": 1}\n```',
        '~~~\n{"a": 1}\n~~~',
        'Here it is:\n```json\n{"a": 1}\n```\nAnything else?',
        'The object is {"a": 1}.',
        '```json\n{"a": 1}',
    ],
)
def test_one_object_is_found_whatever_is_around_it(text: str) -> None:
    assert find_json(text) == {"a": 1}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "there is no text"),
        ("\u200b", "there is no text"),
        ("no object here", "not valid JSON"),
        ("{'a': 1}", "not valid JSON"),
        ('{"a": 1,}', "not valid JSON"),
        ('{"a": 1} {"a": 1}', "not valid JSON"),
        ('```\n{"a": 1}\n```\n```\n{"a": 2}\n```', "2 fenced blocks"),
        ('{"a": 1, "a": 1}', "the key 'a' stands twice in one object"),
        ('[{"b": {"a": 1, "a": 2}}]', "the key 'a' stands twice"),
        ('{"가": 1, "' + unicodedata.normalize("NFD", "가") + '": 2}', "the key '가' stands twice"),
        ('{"a": NaN}', "NaN is no JSON number"),
        ('{"a": -Infinity}', "-Infinity is no JSON number"),
        ('{"a": 1e9999999}', "a number that is too long"),
        ('{"a": ' + "9" * 401 + "}", "a number that is too long"),
        ('{"a": 0.' + "9" * 5000 + "}", "a number that is too long"),
        ("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1), "nested deeper"),
        ("[" * 100_000 + "]" * 100_000, "nested deeper"),
        ("[" + "1," * MAX_VALUES + "1]", f"more than {MAX_VALUES:,} values"),
        ('"' + "x" * 2_000_000 + '"', "longer than 2,000,000 characters"),
    ],
)
def test_what_is_not_one_json_value_is_refused_in_one_short_line(text: str, said: str) -> None:
    with pytest.raises(NotJsonError) as caught:
        find_json(text)
    message = str(caught.value)
    assert said in message
    assert message.isprintable()
    assert len(message) < 200


def test_no_digit_is_lost_and_keys_are_composed() -> None:
    decomposed = unicodedata.normalize("NFD", "합계")
    assert read_json(f'{{"{decomposed}": [0.1000000000000000000001, 12345678901234567890, true]}}') == {
        "합계": [Decimal("0.1000000000000000000001"), 12345678901234567890, True]
    }


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_are_read_or_refused_soon(name: str) -> None:
    started = time.monotonic()
    try:
        find_json(HOSTILE[name])
    except NotJsonError as error:
        assert str(error).isprintable()
    assert time.monotonic() - started < 20


@given(st.text(st.characters(exclude_categories=())))
def test_no_text_raises_anything_else(text: str) -> None:
    try:
        found = find_json(text)
    except NotJsonError:
        return
    json.dumps(found, default=str)
