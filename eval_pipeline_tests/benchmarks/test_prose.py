from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.benchmarks.prose import MARK, Kind, blocks, cells, sentences, tidy
from eval_pipeline_tests.benchmarks.hostile_texts import HOSTILE


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("It is 3.5 m tall. Yes.", ["It is 3.5 m tall.", "Yes."]),
        ("Dr. Kim came, e.g. by No. 7. He left.", ["Dr. Kim came, e.g. by No. 7.", "He left."]),
        ("J. K. Rowling wrote it. Then she rested.", ["J. K. Rowling wrote it.", "Then she rested."]),
        ("It ended. and went on", ["It ended. and went on"]),
        ("In 1889. 330 metres.", ["In 1889.", "330 metres."]),
        ("1. The first point.", ["1. The first point."]),
        ('He said "No." Then he went.', ['He said "No."', "Then he went."]),
        ("탑은 1889년에 열렸다. 높이는 330미터이다.", ["탑은 1889년에 열렸다.", "높이는 330미터이다."]),
        ("塔は高い。川は長い。", ["塔は高い。", "川は長い。"]),
        (f"Open. {MARK} {MARK} Tall.{MARK} Wide", [f"Open. {MARK} {MARK}", f"Tall.{MARK}", "Wide"]),
        (f"{MARK} Open.", [f"{MARK} Open."]),
        ("wrapped\n  line. Next", ["wrapped line.", "Next"]),
        ("", []),
    ],
)
def test_sentences_end_where_a_reader_would_end_them(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


def kinds(text: str) -> list[tuple[Kind, str]]:
    return [(block.kind, block.text) for block in blocks(text)]


def test_every_kind_of_block_is_told_apart() -> None:
    text = (
        "# Title #\nA paragraph\nover two lines.\n\nSetext\n------\n- an item\n  goes on\n2. second\n> quoted\n\n"
        "**Bold line**\n**A bold sentence.**\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n---\n```py\n# no heading\n```\nend"
    )
    assert kinds(text) == [
        (Kind.HEADING, "Title"),
        (Kind.PARAGRAPH, "A paragraph over two lines."),
        (Kind.HEADING, "Setext"),
        (Kind.ITEM, "an item goes on"),
        (Kind.ITEM, "second quoted"),
        (Kind.HEADING, "Bold line"),
        (Kind.PARAGRAPH, "**A bold sentence.**"),
        (Kind.HEADING, "a ; b"),
        (Kind.ROW, "1 ; 2"),
        (Kind.CODE, "# no heading"),
        (Kind.PARAGRAPH, "end"),
    ]


def test_headings_have_levels_and_bold_lines_and_table_headers_have_none() -> None:
    found = {block.text: block.level for block in blocks("# a\n### b\nc\n===\nd\n---\n**e**\n|f|\n|---|\n")}
    assert found == {"a": 1, "b": 3, "c": 1, "d": 2, "e": 0, "f": 0}


def test_a_rule_right_below_a_sentence_makes_no_heading_of_it() -> None:
    assert kinds(f"The tower opened.\n---\nThe tower is tall {MARK}\n---\n") == [
        (Kind.PARAGRAPH, "The tower opened."),
        (Kind.PARAGRAPH, f"The tower is tall {MARK}"),
    ]


@pytest.mark.parametrize(("title", "kept"), [("# C#", "C#"), ("# C #", "C"), ("## a ##", "a"), ("# F# ##", "F#")])
def test_only_a_closing_row_of_signs_is_taken_off_a_heading(title: str, kept: str) -> None:
    assert kinds(title) == [(Kind.HEADING, kept)]


def test_cells_keep_an_escaped_bar() -> None:
    assert cells(r"| a \| b |  | c |") == ["a | b", "", "c"]
    assert cells("a | b") == ["a", "b"]


def test_circled_numbers_count_items_and_are_no_figures() -> None:
    assert tidy("① 첫째\n  ② 둘째, ③ 셋째") == "- 첫째\n  - 둘째,  셋째"


@pytest.mark.parametrize("invisible", ["\u200b", "\u200d", "\ufeff", "\u202e", "\u00ad", "\0", "\ud800", "\ue000"])
def test_what_cannot_be_seen_makes_no_difference(invisible: str) -> None:
    assert tidy(f"한{invisible}강 to{invisible}wer") == "한강 tower"


@given(st.text())
def test_tidy_gives_one_form_for_all_and_nothing_that_a_database_refuses(text: str) -> None:
    once = tidy(text)
    once.encode()
    assert "\0" not in once
    assert MARK not in once
    assert tidy(once) == once
    assert tidy(unicodedata.normalize("NFD", text)) == once


@given(st.text(alphabet="ab.!? \n|#-*>`1)\ue000가다。"))
def test_no_character_of_content_and_no_mark_is_lost(text: str) -> None:
    for block in blocks(text):
        if block.kind is Kind.CODE:
            continue
        joined = "".join(sentences(block.text))
        assert "".join(joined.split()) == "".join(block.text.split())


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_are_read(name: str) -> None:
    for block in blocks(tidy(HOSTILE[name][:1_000_000])):
        sentences(block.text)
