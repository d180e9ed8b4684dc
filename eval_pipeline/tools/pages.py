"""``read_page``: the text that an OCR program has read on one page of the task's document.

The pages are the task's materials in the order of their names. Correcting them is the team's work.
"""

from __future__ import annotations

import re
from pathlib import Path

from eval_pipeline.tools.errors import ToolError

MAX_CHARACTERS = 20_000
_NUMBERS = re.compile(r"(\d+)")


def read_page(page: int, materials: Path | None) -> str:
    """The OCR text of ``page``, counted from 1, at most :data:`MAX_CHARACTERS` of it.

    Raises:
        ToolError: there is no such page; the message says which there are.
    """
    files = _pages(materials)
    if not files:
        raise ToolError("this task has no pages to read")
    if not 1 <= page <= len(files):
        there_are = f"the pages 1 to {len(files)}" if len(files) > 1 else "only page 1"
        raise ToolError(f"there is no page {page}, the document has {there_are}")
    text = files[page - 1].read_bytes().decode("utf-8", errors="replace")
    if len(text) > MAX_CHARACTERS:
        return f"{text[:MAX_CHARACTERS]}\n[cut: {MAX_CHARACTERS} of {len(text)} characters]"
    return text


def _pages(materials: Path | None) -> list[Path]:
    """The files by name, numbers in a name by their value: page-10 comes after page-9."""
    found = [file for file in materials.rglob("*") if file.is_file()] if materials is not None else []
    return sorted(found, key=lambda file: _natural(file.relative_to(str(materials)).as_posix()))


def _natural(name: str) -> list[tuple[int, int | str]]:
    parts = _NUMBERS.split(name)
    return [(0, int(part)) if part.isdigit() else (1, part) for part in parts]
