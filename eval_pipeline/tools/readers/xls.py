"""Workbooks of Excel before 2007 (.xls), read with xlrd. The layout is that of
:mod:`eval_pipeline.tools.readers.sheets`.
"""

from __future__ import annotations

import datetime as dt
import io
from collections.abc import Iterator, Sequence
from pathlib import Path

import xlrd

from eval_pipeline.tools.errors import UnreadableFileError
from eval_pipeline.tools.readers.cells import cell_text, column_letters
from eval_pipeline.tools.readers.sheets import Sheet, workbook_lines


def read(path: Path) -> Iterator[str]:
    """The lines of every sheet.

    Raises:
        UnreadableFileError: the workbook is encrypted.
    """
    try:
        # The log goes nowhere: xlrd otherwise prints what it finds odd about a file.
        book = xlrd.open_workbook(path, formatting_info=True, logfile=io.StringIO())
    except xlrd.XLRDError as error:
        if "encrypted" in str(error).lower():
            raise UnreadableFileError(f"{path.name} is encrypted and cannot be read without its password") from error
        raise
    yield from workbook_lines([_sheet(book, sheet) for sheet in book.sheets()])


def _sheet(book: xlrd.book.Book, sheet: xlrd.sheet.Sheet) -> Sheet:
    merged = [
        f"{column_letters(left + 1)}{top + 1}:{column_letters(right)}{bottom}"
        for top, bottom, left, right in sheet.merged_cells
    ]
    return Sheet(title=sheet.name, hidden=sheet.visibility != 0, rows=_rows(book, sheet), merged=merged)


def _rows(book: xlrd.book.Book, sheet: xlrd.sheet.Sheet) -> Iterator[tuple[int, Sequence[str]]]:
    for index in range(sheet.nrows):
        yield index + 1, [cell_text(_value(book, cell)) for cell in sheet.row(index)]


def _value(book: xlrd.book.Book, cell: xlrd.sheet.Cell) -> object:
    if cell.ctype == xlrd.XL_CELL_DATE:
        try:
            moment = xlrd.xldate_as_datetime(cell.value, book.datemode)
        except (ValueError, OverflowError, xlrd.xldate.XLDateError):
            return cell.value
        return moment.time() if 0 <= cell.value < 1 else _to_second(moment)
    if cell.ctype == xlrd.XL_CELL_BOOLEAN:
        return bool(cell.value)
    if cell.ctype == xlrd.XL_CELL_ERROR:
        return xlrd.error_text_from_code.get(cell.value, f"#ERROR {cell.value}")
    return cell.value


def _to_second(moment: dt.datetime) -> dt.datetime:
    # A day is a float: its seconds come out a few microseconds off.
    return (moment + dt.timedelta(microseconds=500_000)).replace(microsecond=0)
