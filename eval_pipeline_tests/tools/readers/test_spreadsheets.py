"""Workbooks: the layout is what prompts, scripts and stored traces rely on, so it is spelled out in full here."""

from __future__ import annotations

import datetime as dt
import zipfile
from pathlib import Path

import openpyxl
import pytest
import xlwt
from openpyxl.chart import BarChart
from openpyxl.comments import Comment

from eval_pipeline_tests.tools.readers.conftest import Read


async def test_every_sheet_with_its_name_its_numbers_and_letters(tmp_path: Path, read: Read) -> None:
    book = openpyxl.Workbook()
    sales = book.active
    assert sales is not None
    sales.title = "Sales"
    sales.append(["Cafe sales"])
    sales.merge_cells("A1:D1")
    sales.append(["Item", "Group", "Price", "Sold on"])
    sales.append(["Latte | large", "Drink", 4.5, dt.datetime(2026, 1, 31)])
    sales["B6"] = "after two empty rows"
    notes = book.create_sheet("메모")
    notes.sheet_state = "hidden"
    notes["C3"] = "two\nlines"
    book.create_sheet("Empty")
    book.save(tmp_path / "cafe.xlsx")

    assert await read(tmp_path / "cafe.xlsx") == "\n".join(
        [
            "Workbook: 3 sheets (Sales; 메모 (hidden); Empty)",
            "",
            "Sheet 1: Sales",
            "Merged cells: A1:D1",
            "row | A | B | C | D",
            "1 | Cafe sales",
            "2 | Item | Group | Price | Sold on",
            r"3 | Latte \| large | Drink | 4.5 | 2026-01-31",
            "6 |  | after two empty rows",
            "",
            "Sheet 2: 메모 (hidden)",
            "row | A | B | C",
            r"3 |  |  | two\nlines",
            "",
            "Sheet 3: Empty",
            "(no values)",
        ]
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3, "3"),
        (3.0, "3"),
        (0.1 + 0.2, "0.3"),
        (89706.00, "89706"),
        (1234567.891, "1234567.891"),
        (1e-7, "1e-07"),
        (True, "TRUE"),
        (dt.date(2026, 2, 28), "2026-02-28"),
        (dt.datetime(2026, 2, 28, 13, 5, 9), "2026-02-28 13:05:09"),
        (dt.time(9, 30), "09:30:00"),
        ("  spaces  ", "spaces"),
        ("=1+1", "=1+1"),
        ("#DIV/0!", "#DIV/0!"),
        ("한글", "한글"),
    ],
)
async def test_how_a_value_is_written(tmp_path: Path, read: Read, value: object, text: str) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.append([value, "end"])  # type: ignore[list-item]
    book.save(tmp_path / "book.xlsx")

    assert (await read(tmp_path / "book.xlsx")).splitlines()[-1] == f"1 | {text} | end"


async def test_a_formula_is_shown_as_the_value_that_was_stored_with_it(tmp_path: Path, read: Read) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet["A1"], sheet["A2"], sheet["A3"] = "=1+1", "=2+2", "plain"
    book.save(tmp_path / "plain.xlsx")
    with (
        zipfile.ZipFile(tmp_path / "plain.xlsx") as old,
        zipfile.ZipFile(tmp_path / "book.xlsx", "w") as new,
    ):
        for name in old.namelist():
            data = old.read(name)
            if name == "xl/worksheets/sheet1.xml":
                assert b"<f>1+1</f><v></v>" in data or b"<f>1+1</f><v />" in data
                data = data.replace(b"<f>1+1</f><v></v>", b"<f>1+1</f><v>2</v>")
                data = data.replace(b"<f>1+1</f><v />", b"<f>1+1</f><v>2</v>")
            new.writestr(name, data)

    assert (await read(tmp_path / "book.xlsx")).splitlines()[-3:] == ["1 | 2", "2 | =2+2", "3 | plain"]


async def test_charts_comments_and_cells_far_away_do_no_harm(tmp_path: Path, read: Read) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet["A1"] = "here"
    sheet["A1"].comment = Comment("a comment", "someone")
    sheet["XFD1048576"] = "far away"
    sheet.add_chart(BarChart(), "E5")
    book.create_chartsheet("Chart").add_chart(BarChart())
    book.save(tmp_path / "book.xlsx")

    lines = (await read(tmp_path / "book.xlsx")).splitlines()

    assert lines[:4] == ["Workbook: 1 sheet (Sheet)", "", "Sheet 1: Sheet", lines[3]]
    assert "[cut: the first " in lines[-1]


async def test_a_large_workbook_is_cut_and_says_so(tmp_path: Path, read: Read) -> None:
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("Large")
    for number in range(1500):
        sheet.append([number, "some text to fill the row", number / 7])
    book.create_sheet("Second").append(["not reached"])
    book.save(tmp_path / "book.xlsx")

    text = await read(tmp_path / "book.xlsx")

    assert len(text) <= 20_000
    assert text.startswith("Workbook: 2 sheets (Large; Second)")
    assert text.splitlines()[-1].startswith("[cut: the first 19,9")
    assert "more than" not in text.splitlines()[-1]


async def test_a_workbook_of_before_2007_has_the_same_layout(tmp_path: Path, read: Read) -> None:
    book = xlwt.Workbook()
    sheet = book.add_sheet("Sales")
    sheet.write_merge(0, 0, 0, 2, "Cafe sales")
    day, moment, clock = (xlwt.easyxf(num_format_str=text) for text in ("yyyy-mm-dd", "yyyy-mm-dd hh:mm:ss", "hh:mm"))
    sheet.write(1, 0, dt.date(2026, 1, 31), day)
    sheet.write(1, 1, dt.datetime(2026, 1, 31, 13, 5, 9), moment)
    sheet.write(1, 2, dt.time(9, 30), clock)
    for column, value in enumerate([3, 4.25, True, "한글 | x"]):
        sheet.write(3, column, value)
    hidden = book.add_sheet("Hidden")
    hidden.visibility = 1
    book.save(str(tmp_path / "old.xls"))

    assert await read(tmp_path / "old.xls") == "\n".join(
        [
            "Workbook: 2 sheets (Sales; Hidden (hidden))",
            "",
            "Sheet 1: Sales",
            "Merged cells: A1:C1",
            "row | A | B | C | D",
            "1 | Cafe sales",
            "2 | 2026-01-31 | 2026-01-31 13:05:09 | 09:30:00",
            r"4 | 3 | 4.25 | TRUE | 한글 \| x",
            "",
            "Sheet 2: Hidden (hidden)",
            "(no values)",
        ]
    )


async def test_a_workbook_under_the_other_extension_is_read_all_the_same(tmp_path: Path, read: Read) -> None:
    old = xlwt.Workbook()
    old.add_sheet("Old").write(0, 0, "written by xlwt")
    old.save(str(tmp_path / "wrong.xlsx"))
    new = openpyxl.Workbook()
    assert new.active is not None
    new.active["A1"] = "written by openpyxl"
    new.save(tmp_path / "wrong.xls")
    (tmp_path / "text.xls").write_text("a,b\n1,2\n")

    assert "1 | written by xlwt" in await read(tmp_path / "wrong.xlsx")
    assert "1 | written by openpyxl" in await read(tmp_path / "wrong.xls")
    assert await read(tmp_path / "text.xls") == "a,b\n1,2\n"
