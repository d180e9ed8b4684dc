"""How a table's cells and rows are written, the same for every format that has tables.

A row is ``cell | cell | cell`` without the empty cells at its end; inside a cell a line break is the two
characters ``\\n`` and a bar is ``\\|``.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable


def cell_text(value: object) -> str:
    """One value as text: dates as ISO, numbers with at most the 15 digits that a spreadsheet shows, ``""``
    for none.
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float):
        return format(value, ".15g")
    if isinstance(value, dt.datetime):
        # A spreadsheet has no type for a day: it is a moment at midnight.
        return value.date().isoformat() if value.time() == dt.time() else value.isoformat(sep=" ")
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    return "\\n".join(str(value).strip().splitlines()).replace("|", "\\|")


def row_text(cells: Iterable[str]) -> str:
    """The cells of a row, already text, joined by bars."""
    kept = list(cells)
    while kept and not kept[-1]:
        kept.pop()
    return " | ".join(kept)


def column_letters(number: int) -> str:
    """The name of a column counted from 1: A … Z, AA …"""
    letters = ""
    while number:
        number, rest = divmod(number - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters
