"""``read_page``: the OCR text of one page, and nothing but the task's pages."""

from __future__ import annotations

from pathlib import Path

import pytest

from eval_pipeline.benchmarks.registry import benchmark
from eval_pipeline.teams.registry import load_teams
from eval_pipeline.tools.context import ToolContext
from eval_pipeline.tools.errors import ToolError
from eval_pipeline.tools.pages import MAX_CHARACTERS, read_page
from eval_pipeline.tools.registry import TOOLS


@pytest.fixture
def materials(tmp_path: Path) -> Path:
    for number in range(1, 13):
        file = tmp_path / "doc" / f"page-{number}.txt"
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"글 {number}", encoding="utf-8")
    return tmp_path


def test_pages_come_in_the_order_of_their_numbers(materials: Path) -> None:
    assert [read_page(number, materials) for number in (1, 2, 10, 12)] == ["글 1", "글 2", "글 10", "글 12"]


@pytest.mark.parametrize("page", [0, -1, 13, 10**30])
def test_a_page_that_there_is_not_tells_which_there_are(materials: Path, page: int) -> None:
    with pytest.raises(ToolError, match="the document has the pages 1 to 12"):
        read_page(page, materials)


def test_a_task_of_one_page_or_of_none_says_so(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="no pages to read"):
        read_page(1, None)
    with pytest.raises(ToolError, match="no pages to read"):
        read_page(1, tmp_path)
    (tmp_path / "only.txt").write_text("x")
    with pytest.raises(ToolError, match="the document has only page 1"):
        read_page(2, tmp_path)


def test_a_long_page_is_cut_and_bytes_that_are_no_text_are_replaced(tmp_path: Path) -> None:
    (tmp_path / "1.txt").write_bytes(b"\xff" + b"x" * MAX_CHARACTERS)
    text = read_page(1, tmp_path)
    assert text.startswith("\ufffdxxx")
    assert text.endswith(f"[cut: {MAX_CHARACTERS} of {MAX_CHARACTERS + 1} characters]")


async def test_the_tool_is_the_benchmarks_and_no_teams(materials: Path) -> None:
    assert benchmark("ocrproxy").tools == ("read_page",)
    assert not any("read_page" in spec.tools for spec in load_teams(None).values())
    assert await TOOLS["read_page"].bind(ToolContext(materials=materials))(page=3) == "글 3"
