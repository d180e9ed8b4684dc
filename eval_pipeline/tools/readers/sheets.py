"""How a spreadsheet is laid out as text, whichever library read it.

::

    Workbook: 2 sheets (Sales; Notes)

    Sheet 1: Sales
    Merged cells: A1:D1
    row | A | B | C
    1 | Cafe sales
    2 | Item | Group | Price
    4 | Latte | Drink | 4.5

The number of a row and the letters of the columns are the sheet's own; rows without a value are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice

from eval_pipeline.tools.readers.cells import column_letters, row_text

_ROWS_AHEAD = 1000
"""Rows that are looked at before the line of column letters is written."""
_MAX_MERGED = 200


@dataclass(frozen=True)
class Sheet:
    """One sheet: ``rows`` are (number counted from 1, cells as text); ``merged`` ranges such as ``A1:D1``.

    ``notes`` are lines that stand above the table.
    """

    title: str
    rows: Iterable[tuple[int, Sequence[str]]]
    hidden: bool = False
    merged: Sequence[str] = ()
    notes: Sequence[str] = field(default_factory=tuple)


def workbook_lines(sheets: Sequence[Sheet]) -> Iterator[str]:
    """Every sheet with its name, in the order of the workbook."""
    titles = "; ".join(_titled(sheet) for sheet in sheets)
    yield f"Workbook: {len(sheets)} sheet{'s' if len(sheets) != 1 else ''} ({titles})"
    for number, sheet in enumerate(sheets, 1):
        yield ""
        yield f"Sheet {number}: {_titled(sheet)}"
        yield from sheet.notes
        if sheet.merged:
            more = len(sheet.merged) - _MAX_MERGED
            yield f"Merged cells: {', '.join(sheet.merged[:_MAX_MERGED])}{f' and {more} more' if more > 0 else ''}"
        yield from _table(sheet.rows)


def _titled(sheet: Sheet) -> str:
    return f"{sheet.title} (hidden)" if sheet.hidden else sheet.title


def _table(rows: Iterable[tuple[int, Sequence[str]]]) -> Iterator[str]:
    filled = ((number, text, cells) for number, cells in rows if (text := row_text(cells)))
    ahead = list(islice(filled, _ROWS_AHEAD))
    if not ahead:
        yield "(no values)"
        return
    width = max(index for _, _, cells in ahead for index, cell in enumerate(cells, 1) if cell)
    yield row_text(["row", *map(column_letters, range(1, width + 1))])
    for number, text, _ in chain(ahead, filled):
        yield f"{number} | {text}"
