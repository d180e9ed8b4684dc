"""Text files in the encodings that people really have, notices, archives, and files of no known kind."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from eval_pipeline.tools.errors import UnreadableFileError
from eval_pipeline_tests.tools.readers.conftest import Read


@pytest.mark.parametrize(
    "name", ["a.csv", "a.TSV", "a.json", "a.txt", "a.md", "a.py", "a.xml", "a.html", "a.pdb", "a", "a.xyz"]
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp949", "utf-16"])
async def test_a_text_is_shown_as_it_stands(tmp_path: Path, read: Read, name: str, encoding: str) -> None:
    text = "품목,가격\n라떼,4.5\n\n똠방각하\n"
    (tmp_path / name).write_bytes(text.encode(encoding))

    assert await read(tmp_path / name) == text


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"caf\xe9 latte\n", "caf\ufffd latte\n"),
        (b"", ""),
        (b"a\0b", "a\0b"),
        (b"\xef\xbb\xbf", ""),
        (b"\xff\xfe", ""),
        (b"a\r\nb\r\n", "a\r\nb\r\n"),
        ("😀 é".encode(), "😀 é"),
    ],
)
async def test_bytes_of_any_kind_become_text(tmp_path: Path, read: Read, data: bytes, text: str) -> None:
    (tmp_path / "a.txt").write_bytes(data)

    assert await read(tmp_path / "a.txt") == text


@pytest.mark.parametrize("size", [19_999, 20_000, 20_001, 25_000, 700_000, 3_000_000])
async def test_a_long_text_is_cut_and_says_how_much(tmp_path: Path, read: Read, size: int) -> None:
    (tmp_path / "a.txt").write_text("가" * size)

    text = await read(tmp_path / "a.txt")

    assert len(text) == min(size, 20_000)
    if size > 20_000:
        shown, note = text.split("\n")
        amount = f"{size:,}" if size < 700_000 else "more than "
        assert note.startswith(f"[cut: the first {len(shown):,} of {amount}")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.png", "an image"),
        ("a.JPG", "an image"),
        ("a.webp", "an image"),
        ("a.gif", "an image"),
        ("b.mp3", "an audio file"),
        ("b.M4A", "an audio file"),
        ("b.wav", "an audio file"),
    ],
)
async def test_pictures_and_recordings_get_a_notice(tmp_path: Path, read: Read, name: str, kind: str) -> None:
    (tmp_path / name).write_bytes(b"\x89PNG" * 5)

    assert await read(tmp_path / name) == f"{name} is {kind} (20 bytes); its content cannot be read here."


async def test_an_archive_is_listed(tmp_path: Path, read: Read) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("folder/매출.csv", "a,b\n")
        archive.writestr("../evil.txt", "x")

    assert (await read(tmp_path / "a.zip")).splitlines() == [
        "Archive: 2 members; their content is not read here",
        "4 bytes | folder/매출.csv",
        "1 bytes | ../evil.txt",
    ]


@pytest.mark.parametrize("name", ["a.bin", "a", "a.parquet", "a.xls.bak"])
async def test_binary_content_of_no_known_kind_is_an_error(tmp_path: Path, read: Read, name: str) -> None:
    (tmp_path / name).write_bytes(bytes(range(256)) * 4)

    with pytest.raises(UnreadableFileError, match="is binary \\(1024 bytes\\)"):
        await read(tmp_path / name)
