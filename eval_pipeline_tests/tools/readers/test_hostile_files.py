"""Files that are encrypted, corrupt or made to hurt get one clear line, in bounded time and memory."""

from __future__ import annotations

import io
import os
import struct
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import docx
import openpyxl
import pptx
import pytest
import xlwt
from reportlab.lib import pdfencrypt
from reportlab.pdfgen.canvas import Canvas

from eval_pipeline.tools.errors import ToolError, UnreadableFileError
from eval_pipeline_tests.tools.readers.conftest import Read

BOUND_S = 25


def workbook() -> bytes:
    book = openpyxl.Workbook()
    assert book.active is not None
    book.active.append(["Item", 1])
    data = io.BytesIO()
    book.save(data)
    return data.getvalue()


def word() -> bytes:
    data = io.BytesIO()
    document = docx.Document()
    document.add_paragraph("text")
    document.save(data)
    return data.getvalue()


def slides() -> bytes:
    data = io.BytesIO()
    pptx.Presentation().save(data)
    return data.getvalue()


def old_workbook() -> bytes:
    book = xlwt.Workbook()
    book.add_sheet("Sheet").write(0, 0, "x")
    data = io.BytesIO()
    book.save(data)
    return data.getvalue()


def pdf(**options: object) -> bytes:
    data = io.BytesIO()
    canvas = Canvas(data, **options)  # type: ignore[arg-type]
    canvas.drawString(50, 700, "text of a page")
    canvas.save()
    return data.getvalue()


MAKERS = {"xlsx": workbook, "docx": word, "pptx": slides, "xls": old_workbook, "pdf": pdf}


def replaced(package: bytes, name: str, content: bytes, *, compress: bool = True) -> bytes:
    """The Office file with one member replaced."""
    data = io.BytesIO()
    kind = zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED
    with zipfile.ZipFile(io.BytesIO(package)) as old, zipfile.ZipFile(data, "w", kind) as new:
        for member in old.namelist():
            new.writestr(member, content if member == name else old.read(member))
        if name not in old.namelist():
            new.writestr(name, content)
    return data.getvalue()


MAIN = {"xlsx": "xl/worksheets/sheet1.xml", "docx": "word/document.xml", "pptx": "ppt/presentation.xml"}
LAUGHS = b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "ha">' + b"".join(
    b'<!ENTITY %s "%s">' % (name, b"&%s;" % before * 10)
    for before, name in [
        (b"a", b"b"),
        (b"b", b"c"),
        (b"c", b"d"),
        (b"d", b"e"),
        (b"e", b"f"),
        (b"f", b"g"),
        (b"g", b"h"),
    ]
)
LAUGHS += b"]><x>&h;</x>"
OUTSIDE = b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><x>&a;</x>'


async def failure(read: Read, file: Path) -> str:
    """The message of the error that reading the file must be."""
    started = time.monotonic()
    with pytest.raises(ToolError) as error:
        await read(file)
    assert time.monotonic() - started < BOUND_S
    message = str(error.value)
    assert file.name in message
    assert "\n" not in message
    assert str(file.parent) not in message
    return message


@pytest.mark.parametrize("kind", MAKERS)
async def test_an_empty_file_says_so(tmp_path: Path, read: Read, kind: str) -> None:
    (tmp_path / f"a.{kind}").touch()

    assert await failure(read, tmp_path / f"a.{kind}") == f"a.{kind} is empty (0 bytes)"


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("part", [0.2, 0.6, 0.95])
async def test_a_file_that_was_cut_off_says_so(tmp_path: Path, read: Read, kind: str, part: float) -> None:
    data = MAKERS[kind]()
    file = tmp_path / f"a.{kind}"
    file.write_bytes(data[: int(len(data) * part)])

    try:
        text = await read(file)
    except UnreadableFileError as error:
        assert f"a.{kind} is corrupt or not really a .{kind} file" in str(error)
    else:
        # What is missing may be something that no text comes from.
        assert kind in ("pdf", "xls"), text


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("seed", range(4))
async def test_bytes_that_were_changed_never_hang_or_kill(tmp_path: Path, read: Read, kind: str, seed: int) -> None:
    data = bytearray(MAKERS[kind]())
    for number in range(30):
        data[(seed * 7919 + number * 104729) % len(data)] ^= 0xFF
    file = tmp_path / f"a.{kind}"
    file.write_bytes(data)

    try:
        assert isinstance(await read(file), str)
    except UnreadableFileError as error:
        assert "a." in str(error)


@pytest.mark.parametrize("kind", ["xlsx", "docx", "pptx", "pdf", "zip"])
async def test_random_bytes_are_corrupt(tmp_path: Path, read: Read, kind: str) -> None:
    start = {"pdf": b"%PDF-1.7\n", "zip": b"PK\3\4"}.get(kind, b"")
    (tmp_path / f"a.{kind}").write_bytes(start + os.urandom(5000) + b"\0")

    message = await failure(read, tmp_path / f"a.{kind}")

    assert "is corrupt or not really" in message or "is binary" in message


@pytest.mark.parametrize("kind", MAIN)
@pytest.mark.parametrize("content", [LAUGHS, OUTSIDE, LAUGHS.decode().encode("utf-16")])
async def test_entities_are_not_resolved(tmp_path: Path, read: Read, kind: str, content: bytes) -> None:
    (tmp_path / f"a.{kind}").write_bytes(replaced(MAKERS[kind](), MAIN[kind], content))

    assert "declares XML entities" in await failure(read, tmp_path / f"a.{kind}")


@pytest.mark.parametrize("kind", MAIN)
async def test_entities_that_are_declared_late_do_no_harm(tmp_path: Path, read: Read, kind: str) -> None:
    late = LAUGHS.replace(b"<!DOCTYPE", b"<!--" + b" " * 100_000 + b"--><!DOCTYPE", 1)
    (tmp_path / f"a.{kind}").write_bytes(replaced(MAKERS[kind](), MAIN[kind], late))

    assert "is corrupt" in await failure(read, tmp_path / f"a.{kind}")


@pytest.mark.parametrize("kind", MAIN)
async def test_a_bomb_is_not_unpacked(tmp_path: Path, read: Read, kind: str) -> None:
    bomb = replaced(MAKERS[kind](), MAIN[kind], b"<x>" + b" " * (40 * 2**20))
    (tmp_path / f"a.{kind}").write_bytes(bomb)

    assert "and is not unpacked" in await failure(read, tmp_path / f"a.{kind}")


@pytest.mark.parametrize("kind", MAIN)
async def test_a_bomb_whose_directory_lies_is_stopped(tmp_path: Path, read: Read, kind: str) -> None:
    data = bytearray(replaced(MAKERS[kind](), MAIN[kind], b"<x>" + b" " * (60 * 2**20)))
    name = MAIN[kind].encode()
    entry = data.rindex(b"PK\1\2", 0, data.rindex(name))
    struct.pack_into("<I", data, entry + 24, 1000)
    (tmp_path / f"a.{kind}").write_bytes(data)

    assert "is corrupt" in await failure(read, tmp_path / f"a.{kind}")


@pytest.mark.parametrize("kind", MAIN)
async def test_too_many_members_are_refused(tmp_path: Path, read: Read, kind: str) -> None:
    data = io.BytesIO(MAKERS[kind]())
    with zipfile.ZipFile(data, "a") as archive:
        for number in range(10_001):
            archive.writestr(f"x/{number}", b"")
    (tmp_path / f"a.{kind}").write_bytes(data.getvalue())

    assert "members, at most 10000" in await failure(read, tmp_path / f"a.{kind}")


async def test_a_huge_sheet_is_cut_in_bounded_time(tmp_path: Path, read: Read) -> None:
    text_cell, number_cell = (
        b'<c r="A%d" t="inlineStr"><is><t>some text in a cell</t></is></c>',
        b'<c r="B%d"><v>12345.678</v></c>',
    )
    row = b'<row r="%d">' + text_cell + number_cell + b"</row>"
    rows = b"".join(row % (number, number, number) for number in range(1, 400_001))
    head = (
        b'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><dimension ref="A1:XFD1048576"/>'
    )
    sheet = head + b"<sheetData>" + rows + b"</sheetData></worksheet>"
    (tmp_path / "huge.xlsx").write_bytes(replaced(workbook(), MAIN["xlsx"], sheet))
    started = time.monotonic()

    text = await read(tmp_path / "huge.xlsx")

    assert time.monotonic() - started < BOUND_S
    assert "row | A | B\n1 | some text in a cell | 12345.678" in text
    assert "of more than 100,0" in text.splitlines()[-1]


async def test_one_cell_of_many_megabytes_is_cut(tmp_path: Path, read: Read) -> None:
    head = b'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
    cell = (
        b'<sheetData><row r="1"><c r="A1" t="inlineStr"><is><t>'
        + b"x" * (20 * 2**20)
        + b"</t></is></c></row></sheetData>"
    )
    (tmp_path / "a.xlsx").write_bytes(replaced(workbook(), MAIN["xlsx"], head + cell + b"</worksheet>"))

    try:
        text = await read(tmp_path / "a.xlsx")
    except UnreadableFileError as error:
        assert "unpacked" in str(error)
    else:
        assert len(text) <= 20_000


@pytest.mark.parametrize("kind", ["docx", "pptx"])
async def test_xml_nested_without_end_is_an_error(tmp_path: Path, read: Read, kind: str) -> None:
    deep = b"<x>" * 500_000 + b"</x>" * 500_000
    (tmp_path / f"a.{kind}").write_bytes(replaced(MAKERS[kind](), MAIN[kind], deep))

    assert "is corrupt" in await failure(read, tmp_path / f"a.{kind}")


async def test_an_encrypted_pdf_says_so(tmp_path: Path, read: Read) -> None:
    (tmp_path / "a.pdf").write_bytes(pdf(encrypt=pdfencrypt.StandardEncryption("secret", "owner", strength=128)))

    assert await failure(read, tmp_path / "a.pdf") == "a.pdf is encrypted and cannot be read without its password"


async def test_a_pdf_that_only_its_owner_may_change_is_read(tmp_path: Path, read: Read) -> None:
    (tmp_path / "a.pdf").write_bytes(pdf(encrypt=pdfencrypt.StandardEncryption("", "owner", canPrint=0)))

    assert "text of a page" in await read(tmp_path / "a.pdf")


@pytest.mark.parametrize("kind", ["xlsx", "docx", "pptx", "xls"])
async def test_an_encrypted_office_file_says_so(tmp_path: Path, read: Read, kind: str) -> None:
    # What Office writes: a compound file that holds the package encrypted, in a stream of this name.
    container = bytes.fromhex("D0CF11E0A1B11AE1") + bytes(2000) + "EncryptedPackage".encode("utf-16-le") + bytes(2000)
    (tmp_path / f"a.{kind}").write_bytes(container)

    assert "a." in await failure(read, tmp_path / f"a.{kind}")
    assert "is encrypted" in await failure(read, tmp_path / f"a.{kind}")


@pytest.mark.parametrize("kind", ["doc", "ppt"])
async def test_an_old_office_format_is_named(tmp_path: Path, read: Read, kind: str) -> None:
    (tmp_path / f"a.{kind}").write_bytes(bytes.fromhex("D0CF11E0A1B11AE1") + bytes(4000))

    assert "before 2007" in await failure(read, tmp_path / f"a.{kind}")


def pdf_with(objects: dict[int, bytes]) -> bytes:
    """A PDF of the given objects, of which 1 is the catalog."""
    data, offsets = b"%PDF-1.4\n", {}
    for number, content in objects.items():
        offsets[number] = len(data)
        data += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    start = len(data)
    data += b"xref\n0 %d\n0000000000 65535 f \n" % (max(objects) + 1)
    data += b"".join(b"%010d 00000 n \n" % offsets.get(number, 0) for number in range(1, max(objects) + 1))
    return data + b"trailer\n<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (max(objects) + 1, start)


HOSTILE_PDFS: dict[str, Callable[[], bytes]] = {
    "pages that contain themselves": lambda: pdf_with(
        {1: b"<</Type/Catalog/Pages 2 0 R>>", 2: b"<</Type/Pages/Kids[2 0 R 2 0 R]/Count 9999999>>"}
    ),
    "a stream that refers to its own length": lambda: pdf_with(
        {
            1: b"<</Type/Catalog/Pages 2 0 R>>",
            2: b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
            3: b"<</Type/Page/Parent 2 0 R/Contents 4 0 R/MediaBox[0 0 9 9]>>",
            4: b"<</Length 4 0 R>>\nstream\nBT ET\nendstream",
        }
    ),
    "arrays nested without end": lambda: pdf_with(
        {1: b"<</Type/Catalog/Pages " + b"[" * 200_000 + b"]" * 200_000 + b">>"}
    ),
    "a page of a million points": lambda: pdf_with(
        {
            1: b"<</Type/Catalog/Pages 2 0 R>>",
            2: b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
            3: b"<</Type/Page/Parent 2 0 R/Contents 4 0 R/MediaBox[0 0 99999999 99999999]>>",
            4: b"<</Length 9000000>>\nstream\n" + b"0 0 m 9 9 l S " * 300_000 + b"\nendstream",
        }
    ),
}


@pytest.mark.parametrize("name", HOSTILE_PDFS)
async def test_a_hostile_pdf_ends_in_bounded_time(tmp_path: Path, read: Read, name: str) -> None:
    (tmp_path / "a.pdf").write_bytes(HOSTILE_PDFS[name]())
    started = time.monotonic()

    try:
        await read(tmp_path / "a.pdf")
    except ToolError as error:
        assert "a.pdf" in str(error)
    assert time.monotonic() - started < BOUND_S


@pytest.mark.parametrize("kind", [*MAKERS, "zip"])
async def test_another_format_under_this_extension_is_not_taken_for_it(tmp_path: Path, read: Read, kind: str) -> None:
    (tmp_path / f"a.{kind}").write_text("just text\n")

    try:
        assert await read(tmp_path / f"a.{kind}") == "just text\n"
    except UnreadableFileError as error:
        assert f"not really a .{kind} file" in str(error)


async def test_a_docx_under_another_office_name_is_an_error(tmp_path: Path, read: Read) -> None:
    (tmp_path / "a.xlsx").write_bytes(word())
    (tmp_path / "a.pptx").write_bytes(workbook())
    (tmp_path / "a.docx").write_bytes(slides())

    for kind in ("xlsx", "pptx", "docx"):
        assert f"not really a .{kind} file" in await failure(read, tmp_path / f"a.{kind}")
