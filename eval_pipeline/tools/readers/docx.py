"""Documents of Word since 2007 (.docx), read with python-docx: paragraphs and tables in the order of the
document.

A heading begins with ``#`` (one per level), an item of a list with ``- ``; a table is the line ``Table:``
with a row per line. Headers, footers and text boxes follow the body.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import docx
from docx.table import Table
from docx.text.paragraph import Paragraph

from eval_pipeline.tools.readers.cells import cell_text, row_text


def read(path: Path) -> Iterator[str]:
    """The lines of the document."""
    document = docx.Document(str(path))
    for block in document.iter_inner_content():
        yield from _table(block) if isinstance(block, Table) else _paragraph(block)
    for number, section in enumerate(document.sections, 1):
        yield from _part(f"Header of section {number}", section.header)
        yield from _part(f"Footer of section {number}", section.footer)
    for box in document.element.body.iterfind(".//{*}txbxContent"):
        text = "\n".join("".join(run.text or "" for run in line.iterfind(".//{*}t")) for line in box.iterfind("{*}p"))
        # Word stores a text box a second time, in a fallback for old versions.
        if text.strip() and not any(parent.tag.endswith("}Fallback") for parent in box.iterancestors()):
            yield f"Text box: {text}"


def _part(what: str, part: Any) -> Iterator[str]:
    if not part.is_linked_to_previous and (text := "\n".join(line.text for line in part.paragraphs).strip()):
        yield f"{what}: {text}"


def _paragraph(paragraph: Paragraph) -> Iterator[str]:
    text = paragraph.text.strip()
    style = str(paragraph.style.name) if paragraph.style is not None else ""
    if not text:
        return
    if style == "Title":
        yield f"# {text}"
    elif style.startswith("Heading ") and style[8:].isdigit():
        yield f"{'#' * min(int(style[8:]), 6)} {text}"
    else:
        yield f"- {text}" if style.startswith("List") else text


def _table(table: Table) -> Iterator[str]:
    yield "Table:"
    for row in table.rows:
        # A merged cell comes once for each column that it spans.
        cells = {id(cell._tc): cell for cell in row.cells}
        yield row_text(cell_text(cell.text) for cell in cells.values())
