"""The source tree: listing, reading and searching it, with patterns that take for ever and paths that lead out."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from eval_pipeline.tools import source_tree
from eval_pipeline.tools.context import ToolContext
from eval_pipeline.tools.errors import ToolError, ToolTimeoutError
from eval_pipeline.tools.registry import TOOLS
from eval_pipeline.tools.source_tree import MOST_CHARACTERS, MOST_LINES, listing, read, search


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tree")
    for name in ("src", "lib"):
        (root / name).mkdir()
        (root / name / "same.cpp").write_text(f"int {name};\n")
    (root / "src" / "cache.cpp").write_text("// 캐시\nbool put(int key);\nint size_ = 0;  // (a+)+\n", encoding="utf-8")
    (root / "long.cpp").write_text("".join(f"int value_{number};\n" for number in range(1, 1001)))
    (root / "wide.cpp").write_text("a" * 5000 + "\n" + "b" * 100 + "\n")
    (root / "bytes.bin").write_bytes(b"\xff\0\xfe")
    return root


def test_every_file_is_listed_with_its_lines(folder: Path) -> None:
    assert listing(folder).splitlines() == [
        "bytes.bin (1 lines)", "lib/same.cpp (1 lines)", "long.cpp (1000 lines)", "src/cache.cpp (3 lines)",
        "src/same.cpp (1 lines)", "wide.cpp (2 lines)",
    ]  # fmt: skip


@pytest.mark.parametrize("path", ["src/cache.cpp", "./src/cache.cpp", "cache.cpp", " cache.cpp "])
def test_lines_are_numbered_and_chosen(path: str, folder: Path) -> None:
    assert read(path, 2, 3, folder) == (
        "src/cache.cpp, lines 2-3 of 3\n    2| bool put(int key);\n    3| int size_ = 0;  // (a+)+"
    )
    assert read(path, 3, 99, folder).startswith("src/cache.cpp, lines 3-3 of 3")
    assert "    1| // 캐시" in read(path, 1, None, folder)


def test_long_files_and_long_lines_are_cut_and_say_so(folder: Path) -> None:
    text = read("long.cpp", 1, None, folder)
    assert text.count("\n") == MOST_LINES + 1
    assert text.endswith(f"(cut; long.cpp goes on at line {MOST_LINES + 1})")
    assert "a…" in read("wide.cpp", 1, None, folder)
    assert len(read("long.cpp", 1, None, folder)) < MOST_CHARACTERS + 200


@pytest.mark.parametrize(
    "path", ["", "nowhere.cpp", "../tree/src/cache.cpp", "/etc/passwd", "src", "ache.cpp", "\0", "src/../src/cache.cpp"]
)
def test_what_is_no_file_of_the_tree_is_not_found(path: str, folder: Path) -> None:
    with pytest.raises(FileNotFoundError, match="list_source shows the files"):
        read(path, 1, None, folder)


def test_a_name_that_two_files_have_is_asked_back(folder: Path) -> None:
    with pytest.raises(ToolError, match=r"several files are called same\.cpp: lib/same\.cpp, src/same\.cpp"):
        read("same.cpp", 1, None, folder)


@pytest.mark.parametrize(("first", "last"), [(0, 1), (-1, None), (4, None), (3, 2), (1, 0)])
def test_lines_that_are_not_there_are_refused(first: int, last: int | None, folder: Path) -> None:
    with pytest.raises(ToolError, match=r"src/cache\.cpp has 3 lines"):
        read("cache.cpp", first, last, folder)


def test_a_literal_is_found_as_it_stands(folder: Path) -> None:
    assert search("(a+)+", False, folder) == "src/cache.cpp:3: int size_ = 0;  // (a+)+"
    assert search("캐시", False, folder) == "src/cache.cpp:1: // 캐시"
    assert search("nothing like it", False, folder) == "no line has 'nothing like it'"


def test_a_regular_expression_is_found_too(folder: Path) -> None:
    assert search(r"^bool\s+(\w+)\(", True, folder) == "src/cache.cpp:2: bool put(int key);"
    assert search(r"value_99\d;", True, folder).count("\n") == 9
    assert search("zzz", True, folder) == "no line has 'zzz'"


@pytest.mark.parametrize("regex", [False, True])
def test_too_many_hits_are_cut_and_say_so(regex: bool, folder: Path) -> None:
    lines = search("value_", regex, folder).splitlines()
    assert len(lines) == 101
    assert lines[-1].startswith("(cut at 100 lines")


@pytest.mark.parametrize("pattern", ["(", "[z-a]", "(?P<x", "a{2,1}", "(?<=a+)b", "(" * 400])
def test_what_is_no_regular_expression_is_said(pattern: str, folder: Path) -> None:
    with pytest.raises(ToolError, match="is no regular expression of Python"):
        search(pattern, True, folder)


@pytest.mark.parametrize("pattern", ["", "a\nb", "a" * 501])
def test_a_pattern_is_one_short_line(pattern: str, folder: Path) -> None:
    with pytest.raises(ToolError, match="a pattern is 1 to 500 characters"):
        search(pattern, False, folder)


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*$", "(?:a*)*b", "((a{1000}){1000}){1000}", "(?:a{1,99}){1,99}c"])
def test_a_pattern_that_takes_for_ever_is_stopped(pattern: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_tree, "SEARCH_S", 1.0)
    begin = time.perf_counter()
    try:
        search(pattern, True, folder)
    except ToolError as error:
        assert isinstance(error, ToolTimeoutError) or "more memory" in str(error) or "no regular" in str(error)
    assert time.perf_counter() - begin < 20


def test_a_task_without_a_tree_says_so() -> None:
    with pytest.raises(ToolError, match="this task has no source tree"):
        listing(None)


def test_a_link_out_of_the_tree_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "outside.cpp").write_text("secret")
    root = tmp_path / "root"
    root.mkdir()
    (root / "own.cpp").write_text("own")
    (root / "link.cpp").symlink_to(tmp_path / "outside.cpp")
    assert listing(root) == "own.cpp (1 lines)"


async def test_the_tools_are_bound_to_the_runs_materials(folder: Path) -> None:
    context = ToolContext(materials=folder)
    assert "src/cache.cpp (3 lines)" in await TOOLS["list_source"].bind(context)()
    assert "2| bool put" in await TOOLS["read_source"].bind(context)(path="cache.cpp", first_line=2, last_line=2)
    assert "cache.cpp:2" in await TOOLS["search_source"].bind(context)(pattern="put(")
    assert "cache.cpp:2" in await TOOLS["search_source"].bind(context)(pattern="p.t", regex=True)
