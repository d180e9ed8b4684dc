"""Workbooks of Excel since 2007 (.xlsx, .xlsm), read with openpyxl.

The layout is that of :mod:`eval_pipeline.tools.readers.sheets`. A formula is shown as the value that was
stored with it, and as itself where none was.
"""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import openpyxl

from eval_pipeline.tools.readers.cells import cell_text
from eval_pipeline.tools.readers.sheets import Sheet, workbook_lines

if TYPE_CHECKING:
    from openpyxl.workbook.workbook import Workbook

_WHOLE_BELOW = 4 * 1024 * 1024
"""Bytes of sheet XML up to which a workbook is also loaded whole (about a second), for merged cells and
formulas.
"""


def read(path: Path) -> Iterator[str]:
    """The lines of every sheet."""
    # A file that is open already is judged by its content, a path by its extension too.
    with path.open("rb") as file, warnings.catch_warnings():
        # openpyxl warns about parts that it does not keep (validations, images); none of them is text.
        warnings.simplefilter("ignore")
        whole = _whole(file)
        values = openpyxl.load_workbook(file, read_only=True, data_only=True)
        yield from workbook_lines([_sheet(sheet, whole) for sheet in values.worksheets])


def _whole(file: BinaryIO) -> Workbook | None:
    with zipfile.ZipFile(file) as archive:
        size = sum(info.file_size for info in archive.infolist() if info.filename.startswith("xl/worksheets/"))
    if size > _WHOLE_BELOW:
        return None
    try:
        return openpyxl.load_workbook(file)
    except (ValueError, TypeError, AttributeError, LookupError):
        # A drawing or a style that openpyxl does not understand; the values do not depend on it.
        return None


def _sheet(values: Any, whole: Workbook | None) -> Sheet:
    title = str(values.title)
    return Sheet(
        title=title,
        hidden=values.sheet_state != "visible",
        rows=_rows(values, whole),
        merged=sorted(str(cells) for cells in whole[title].merged_cells.ranges) if whole else (),
        notes=() if whole else ("(merged cells and formulas without a stored value could not be looked up)",),
    )


def _rows(values: Any, whole: Workbook | None) -> Iterator[tuple[int, Sequence[str]]]:
    # The size that a sheet states about itself is often wrong, and every row would be padded to it.
    values.reset_dimensions()
    formulas = whole[values.title] if whole else None
    for number, row in enumerate(values.iter_rows(), 1):
        cells = []
        for cell in row:
            value = cell.value
            if value is None and formulas is not None and hasattr(cell, "coordinate"):
                value = formulas[cell.coordinate].value
            cells.append(cell_text(value))
        yield number, cells
