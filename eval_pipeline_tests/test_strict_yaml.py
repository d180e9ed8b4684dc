"""Hand-written YAML: plain values come through, surprises are refused in one line with the place."""

from __future__ import annotations

from pathlib import Path

import pytest

from eval_pipeline.errors import SuiteError
from eval_pipeline.strict_yaml import MAX_BYTES, parse_yaml, read_yaml

BILLION_LAUGHS = "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n"


def parsed(text: str) -> object:
    return parse_yaml(text, "file.yaml", SuiteError)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("# only a comment\n", None),
        (
            "a: 1\nb: -2\nc: 0.5\nd: true\ne: false\nf: null\ng:\n",
            {"a": 1, "b": -2, "c": 0.5, "d": True, "e": False, "f": None, "g": None},
        ),
        ("[a, 'b', \"c\"]", ["a", "b", "c"]),
        ("a: |\n  one\n  two\n", {"a": "one\ntwo\n"}),
        ("가: 나", {"가": "나"}),
        ("1: x", {"1": "x"}),
        ("a: '1'", {"a": "1"}),
    ],
)
def test_plain_values_come_through(text: str, value: object) -> None:
    assert parsed(text) == value


@pytest.mark.parametrize(
    "word",
    [
        "no",
        "yes",
        "on",
        "off",
        "2026-11-30",
        "007",
        "0x10",
        "1_000",
        "12:30",
        ".inf",
        ".nan",
        "1e999",
        "9" * 5000,
    ],
)
def test_words_that_yaml_would_turn_into_something_else_stay_texts(word: str) -> None:
    assert parsed(f"a: {word}") == {"a": word}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: 1\nb: 2\na: 3\n", "line 3: the key 'a' stands twice"),
        (BILLION_LAUGHS, "line 2: the alias *a is not supported"),
        ("<<: *x\n", "alias *x"),
        ("a: !!int x\n", "tag 'tag:yaml.org,2002:int' is not supported"),
        ("!!str a: x\n", "tag"),
        ("a: !!python/object/apply:os.system [ls]\n", "line 1: the tag"),
        ("? [a]\n: b\n", "a key must be a plain text"),
        ("? {a: b}\n: c\n", "a key must be a plain text"),
        ("a: 1\n---\nb: 2\n", "a second document begins"),
        ("[" * 100_000, "deep"),
        ("- " * 5_000 + "x", "deep"),
        ("a: b: c\n", "line 1: mapping values are not allowed here"),
        ("a: 'x\n", "not valid YAML"),
        ("a:\n\t- b\n", "not valid YAML"),
        ('a: "\\U99999999"\n', "not valid YAML"),
        ("a: \x00\n", "not valid YAML"),
    ],
)
def test_what_would_surprise_is_refused_in_one_line(text: str, expected: str) -> None:
    with pytest.raises(SuiteError) as caught:
        parsed(text)
    message = str(caught.value)
    assert message.startswith("file.yaml: ")
    assert expected in message
    assert "\n" not in message


def test_a_byte_order_mark_and_windows_line_ends_are_read_over(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: |\r\n  one\r\n  two\r\n")
    assert read_yaml(path, "x.yaml", SuiteError) == {"a": "one\ntwo\n"}


def test_a_file_in_another_encoding_is_refused_with_the_place(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes("a: 가\n".encode("cp949"))
    with pytest.raises(SuiteError, match=r"^x.yaml: byte 3 \(0xb0\) is not UTF-8"):
        read_yaml(path, "x.yaml", SuiteError)


def test_a_file_that_is_too_large_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(b"#" * (MAX_BYTES + 1))
    with pytest.raises(SuiteError, match="larger than 256 KiB"):
        read_yaml(path, "x.yaml", SuiteError)


@pytest.mark.parametrize("name", [".", "missing.yaml"])
def test_what_is_no_file_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(SuiteError, match=r"^x.yaml: is not a file"):
        read_yaml(tmp_path / name, "x.yaml", SuiteError)
