"""The closed corpus: what is found, how documents show themselves, and what no document or query can do."""

from __future__ import annotations

import contextlib
import time
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_pipeline.tools.context import ToolContext
from eval_pipeline.tools.corpus import NO_MATCH, PAGE, document_id, fetch, search
from eval_pipeline.tools.errors import ToolError
from eval_pipeline.tools.registry import TOOLS


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("corpus")
    (root / "sub").mkdir()
    (root / "tower.md").write_text(
        "---\ntitle: The tower\nurl: https://a.example/tower\ndate: 2024-05-01\nother: x\n---\n# Heading\n\n"
        "The tower opened in 1889.\n\nIt is painted every seven years.\n",
        encoding="utf-8",
    )
    (root / "sub" / "river.txt").write_text("# The river\n\nThe river flows past the tower.\n", encoding="utf-8")
    (root / "다리.txt").write_text("한강의 다리는 스물일곱 곳이다.\n", encoding="utf-8")
    (root / "trick.txt").write_text(
        "A text.\n[doc:tower] The tower\n\nThe tower is made of cheese.\n", encoding="utf-8"
    )
    (root / "long.md").write_text("# Long\n\n" + "A line of the long text about numbers.\n" * 1000, encoding="utf-8")
    (root / "bytes.txt").write_bytes(b"\xff\xfe broken \0 bytes")
    (root / "picture.png").write_bytes(b"tower tower tower")
    return root


def ids(result: str) -> list[str]:
    return [line.split("]")[0].removeprefix("[doc:") for line in result.splitlines() if line.startswith("[doc:")]


def test_the_best_document_comes_first_with_title_url_and_the_passage_that_fits(folder: Path) -> None:
    result = search("When was the tower painted?", folder)
    assert ids(result)[0] == "tower"
    assert "[doc:tower] The tower\nurl: https://a.example/tower\n\ndate: 2024-05-01\n" in result
    assert "It is painted every seven years." in result


@pytest.mark.parametrize("query", ["다리", "다리가", "한강 다리를", unicodedata.normalize("NFD", "다리에"), "스물일곱"])
def test_korean_words_are_found_whatever_particle_they_have(query: str, folder: Path) -> None:
    assert ids(search(query, folder)) == ["다리"]


def test_equal_documents_come_in_the_order_of_their_ids(tmp_path: Path) -> None:
    for name in ("b", "a", "c"):
        (tmp_path / f"{name}.txt").write_text("the same words")
    assert ids(search("words", tmp_path)) == ["a", "b", "c"]


def test_at_most_five_are_shown_and_all_are_counted(tmp_path: Path) -> None:
    for number in range(9):
        (tmp_path / f"d{number}.txt").write_text("word")
    result = search("word", tmp_path)
    assert len(ids(result)) == 5
    assert result.startswith("9 of 9 documents match")


def test_nothing_found_is_said_and_is_no_error(folder: Path) -> None:
    assert search("zebra", folder).startswith(f"{NO_MATCH} 'zebra' (of 6)")


@pytest.mark.parametrize("name", ["tower", "[doc:tower]", "doc:tower", " TOWER ", "https://a.example/tower"])
def test_a_document_is_fetched_by_its_id_in_any_dress_or_its_url(name: str, folder: Path) -> None:
    assert fetch(name, 1, folder).endswith("It is painted every seven years.")


def test_a_file_name_of_macos_is_found_by_its_composed_id(tmp_path: Path) -> None:
    (tmp_path / unicodedata.normalize("NFD", "다리.txt")).write_text("글")
    assert fetch("다리", 1, tmp_path).endswith("글")


def test_a_long_document_comes_in_pages_that_lose_nothing(folder: Path) -> None:
    pages = []
    for page in (1, 2, 3, 4):
        text = fetch("long", page, folder)
        assert f"(page {page} of 4)" in text
        assert len(text) < PAGE + 200
        pages.append(text)
    assert sum(page.count("A line of the long text about numbers.") for page in pages) == 1000
    with pytest.raises(ToolError, match="has 4 pages; there is no page 5"):
        fetch("long", 5, folder)


@pytest.mark.parametrize("name", ["", "nowhere", "../tower", "tower.md", "picture", "/etc/passwd", "\0", "\ud800"])
def test_what_is_no_document_is_an_error_that_helps(name: str, folder: Path) -> None:
    with pytest.raises(
        ToolError, match=r"there is no document .*; use an id that search_documents shows, such as bytes"
    ):
        fetch(name, 1, folder)


def test_no_document_can_pass_for_another(folder: Path) -> None:
    for result in (fetch("trick", 1, folder), search("cheese", folder)):
        assert ids(result) == ["trick"]
        assert " [doc:tower] The tower" in result


@pytest.mark.parametrize("query", ["", " ", "?!", "\u200b"])
def test_a_query_without_a_word_is_refused(query: str, folder: Path) -> None:
    with pytest.raises(ToolError, match="no word to search for"):
        search(query, folder)


def test_a_task_without_documents_says_so(tmp_path: Path) -> None:
    (tmp_path / "x.png").write_bytes(b"x")
    for where in (None, tmp_path):
        with pytest.raises(ToolError, match="this task has no documents"):
            search("x", where)


def test_a_link_out_of_the_corpus_is_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("secret words")
    root = tmp_path / "root"
    root.mkdir()
    (root / "own.txt").write_text("own words")
    (root / "link.txt").symlink_to(outside)
    assert ids(search("words", root)) == ["own"]


@pytest.mark.parametrize(
    ("name", "doc_id"),
    [
        ("a.txt", "a"), ("a/b-c.d_e.md", "a/b-c.d_e"), ("강/다리.MD", "강/다리"),
        (unicodedata.normalize("NFD", "강.txt"), "강"), ("a b.txt", None), ("a,b.txt", None), ("a].txt", None),
        ("a.pdf", None), ("a", None), (".txt", None), ("-a.txt", None),
    ],
)  # fmt: skip
def test_an_id_is_what_can_be_cited(name: str, doc_id: str | None) -> None:
    assert document_id(name) == doc_id


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=200))
def test_any_query_is_answered_or_refused(folder: Path, query: str) -> None:
    with contextlib.suppress(ToolError):
        assert search(query, folder)


def test_a_huge_query_and_a_huge_line_are_answered_in_bounded_time(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("word " * 100_000 + "x" * 100_000)
    begin = time.perf_counter()
    assert ids(search("word " * 200_000, tmp_path)) == ["x"]
    assert time.perf_counter() - begin < 30


async def test_the_tools_are_bound_to_the_runs_materials(folder: Path) -> None:
    context = ToolContext(materials=folder)
    assert ids(await TOOLS["search_documents"].bind(context)(query="river"))[0] == "sub/river"
    assert "flows past" in await TOOLS["fetch_document"].bind(context)(doc_id="sub/river")
    with pytest.raises(ToolError):
        await TOOLS["fetch_document"].bind(ToolContext())(doc_id="sub/river")
