from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_pipeline.benchmarks.fences import Block, fenced_blocks, unfenced


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("```sql\nselect 1\n```", [Block("sql", "select 1\n")]),
        ("``` SQL  title\nx\n```", [Block("sql", "x\n")]),
        ("```\nx\n```", [Block("", "x\n")]),
        ("~~~py\nx\n~~~", [Block("py", "x\n")]),
        ("before\n```a\n1\n```\nbetween\n```b\n2\n```\nafter", [Block("a", "1\n"), Block("b", "2\n")]),
        ("````\n```py\nx\n```\n````", [Block("", "```py\nx\n```\n")]),
        ("```python\n```python\nx\n```\n```", [Block("python", "```python\nx\n"), Block("", "")]),
        ("~~~\n```\n~~~", [Block("", "```\n")]),
        ("```py\nx = 1", [Block("py", "x = 1")]),
        ("```py\r\nx\r\n```\r\n", [Block("py", "x\r\n")]),
        ("  ```py\n  if x:\n    y\n  ```", [Block("py", "if x:\n  y\n")]),
        ("a ```inline``` b", []),
        ("```inline``` x\nmore", []),
        ("", []),
        ("```", [Block("", "")]),
    ],
)
def test_blocks_are_what_stands_between_fences(text: str, expected: list[Block]) -> None:
    assert fenced_blocks(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  ```sql\nselect 1\n```\n", "select 1"),
        ("```\nselect 1\n```", "select 1"),
        ("```select 1```", "select 1"),
        ("```sql select 1```", "select 1"),
        ("select 1", "select 1"),
        ("```sql\nselect 1\n```\nor not", "```sql\nselect 1\n```\nor not"),
        ("see ```sql\nselect 1\n```", "see ```sql\nselect 1\n```"),
        ("```a\n1\n```\n```b\n2\n```", "```a\n1\n```\n```b\n2\n```"),
    ],
)
def test_one_fence_around_everything_is_taken_off(text: str, expected: str) -> None:
    assert unfenced(text) == expected


@settings(deadline=None)
@given(st.text(alphabet=st.sampled_from(list("`~ \n\ra한\t\u2028\0")), max_size=80))
def test_any_text_has_blocks_of_its_own_characters(text: str) -> None:
    for block in fenced_blocks(text):
        assert block.label == block.label.lower()
        assert all(line.strip() in text for line in block.body.split("\n"))
    assert unfenced(text).strip() in text


@settings(deadline=None)
@given(st.text(alphabet=st.characters(blacklist_characters="`\r", blacklist_categories=["Cs"]), max_size=80))
def test_what_is_put_into_a_block_comes_out_again(body: str) -> None:
    assert fenced_blocks(f"Text.\n```py\n{body}\n```\nMore.") == [Block("py", f"{body}\n")]


@pytest.mark.parametrize("piece", ["```\n", "`", "\n", " ", "```py\nx\n```\n", "~~~", "a", "` ", " ```\n"])
def test_megabytes_take_time_in_proportion(piece: str) -> None:
    begin = time.perf_counter()
    fenced_blocks(piece * (2_000_000 // len(piece)))
    assert time.perf_counter() - begin < 20
