"""PDF files, read with pdfplumber: the text of each page, then the tables that its ruled lines make.

Each page begins with ``Page 1 of 9``; a table is the line ``Table:`` with a row per line. A page that is only
a picture has no text, and says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pdfplumber
from pdfminer.pdfdocument import PDFEncryptionError, PDFPasswordIncorrect
from pdfplumber.utils.exceptions import PdfminerException

from eval_pipeline.tools.errors import UnreadableFileError
from eval_pipeline.tools.readers.cells import cell_text, row_text


def read(path: Path) -> Iterator[str]:
    """The lines of every page.

    Raises:
        UnreadableFileError: the file is encrypted with a password.
    """
    try:
        document = pdfplumber.open(path)
    except PdfminerException as error:
        if any(isinstance(cause, PDFEncryptionError | PDFPasswordIncorrect) for cause in error.args):
            raise UnreadableFileError(f"{path.name} is encrypted and cannot be read without its password") from error
        raise
    with document:
        count = len(document.pages)
        for number, page in enumerate(document.pages, 1):
            if number > 1:
                yield ""
            yield f"Page {number} of {count}"
            text = page.extract_text()
            yield text.strip() or "(no text on this page, it may be a picture)"
            for table in page.extract_tables():
                yield "Table:"
                yield from (row_text(map(cell_text, row)) for row in table)
            page.close()
