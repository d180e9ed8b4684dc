from __future__ import annotations

import pytest

from eval_pipeline.tools.sandbox.output import Shown


def shown(*chunks: bytes, limit: int = 8000) -> str:
    kept = Shown(limit)
    for chunk in chunks:
        kept.feed(chunk)
    kept.feed(b"", final=True)
    return kept.text()


def test_output_up_to_the_limit_is_whole() -> None:
    assert shown(b"x" * 7999, b"y") == "x" * 7999 + "y"


@pytest.mark.parametrize("size", [8001, 8100, 20_000, 3_000_000])
def test_beginning_and_end_are_kept_and_the_cut_is_counted(size: int) -> None:
    text = shown(b"B" + b"." * (size - 2), b"E")

    head, note, tail = text.split("\n")
    assert len(text) <= 8000
    assert (text[0], text[-1]) == ("B", "E")
    assert int(note.split()[1].replace(",", "")) == size - len(head) - len(tail)


def test_a_character_cut_in_two_by_a_chunk_is_one() -> None:
    whole = "매출 합계".encode()

    assert shown(whole[:4], whole[4:5], whole[5:]) == "매출 합계"


def test_bytes_that_are_no_text_are_marked() -> None:
    assert shown(b"a\xffb", b"\xed") == "a\ufffdb\ufffd"


def test_the_limit_counts_characters_and_not_bytes() -> None:
    assert shown(("가" * 8000).encode()) == "가" * 8000
