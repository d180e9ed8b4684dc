"""The path check that both readers share, and the strict text reader of v1 to v4."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest

from eval_pipeline.tools import read_text as module
from eval_pipeline.tools.errors import ToolError
from eval_pipeline.tools.read_multi import read_multi
from eval_pipeline.tools.read_text import attached, read_text


@pytest.fixture
def attachment(tmp_path: Path) -> Path:
    file = tmp_path / "stage" / "task-1" / "매출 sales.csv"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"item,price\r\nlatte,4.5\r\n")
    return file


def test_text_is_returned_as_it_stands(attachment: Path) -> None:
    assert read_text(str(attachment), attachment) == "item,price\r\nlatte,4.5\r\n"


def test_text_is_not_cut(tmp_path: Path) -> None:
    file = tmp_path / "long.txt"
    file.write_text("가" * 500_000)

    assert len(read_text(str(file), file)) == 500_000


def test_a_binary_file_is_pythons_own_unicode_error(tmp_path: Path) -> None:
    file = tmp_path / "book.xlsx"
    file.write_bytes(b"PK\x03\x04\xff\xfe")

    with pytest.raises(UnicodeDecodeError, match="'utf-8' codec can't decode byte 0xff in position 4"):
        read_text(str(file), file)


def test_a_text_that_no_model_could_take_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BYTES", 10)
    file = tmp_path / "long.txt"
    file.write_text("x" * 11)

    with pytest.raises(ToolError, match=r"long\.txt has 11 bytes, at most 10"):
        read_text(str(file), file)


@pytest.mark.parametrize(
    "spelling",
    [
        str,
        lambda file: f"{file}/",
        lambda file: f"{file.parent}/../task-1/./{file.name}",
        lambda file: str(file).replace("/task-1/", "//task-1//"),
        lambda file: unicodedata.normalize("NFD", str(file)),
    ],
)
def test_every_spelling_of_the_path_is_the_attachment(attachment: Path, spelling: Callable[[Path], str]) -> None:
    assert attached(spelling(attachment), attachment) == attachment


def test_a_link_to_the_attachment_is_the_attachment(attachment: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.csv"
    link.symlink_to(attachment)

    assert read_text(str(link), attachment).startswith("item")


def wrong_paths(attachment: Path, tmp_path: Path) -> list[str]:
    existing = tmp_path / "metadata.jsonl"
    existing.write_text("the answer key")
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    out = attachment.parent / "out"
    out.symlink_to(existing)
    return [
        str(existing),
        str(tmp_path / "not-there.jsonl"),
        str(out),
        str(loop),
        attachment.name,
        str(attachment.parent),
        f"{attachment}\0",
        f"{attachment}\0.txt",
        f" {attachment}",
        f"file://{attachment}",
        f"{attachment.parent}/../../metadata.jsonl",
        "",
        ".",
        "\ud800",
        "/proc/self/environ",
        "~",
        "a" * 100_000,
        "/" + "a/" * 5000,
    ]


async def test_any_other_path_is_not_found_whether_it_exists_or_not(attachment: Path, tmp_path: Path) -> None:
    for path in wrong_paths(attachment, tmp_path):
        for holder in (attachment, None):
            with pytest.raises(FileNotFoundError) as error:
                read_text(path, holder)
            with pytest.raises(FileNotFoundError) as other:
                await read_multi(path, holder, seconds=5)

            assert str(error.value) == str(other.value)
            assert str(error.value) == f"[Errno 2] No such file or directory: {path[:300]!r}"
            str(error.value).encode()


def test_the_message_is_pythons_own(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as own:
        (tmp_path / "cafe.xlsx").open()
    with pytest.raises(FileNotFoundError) as ours:
        read_text(str(tmp_path / "cafe.xlsx"), None)

    assert str(ours.value) == str(own.value)


def test_a_relative_path_is_not_tried_in_the_folder_of_the_attachment(
    attachment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(FileNotFoundError):
        read_text(attachment.name, attachment)
    monkeypatch.chdir(attachment.parent)

    assert os.path.realpath(attachment.name) == str(attachment)
    assert read_text(attachment.name, attachment)
