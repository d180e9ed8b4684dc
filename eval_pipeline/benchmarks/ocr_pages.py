"""The pages of a transcription: how an answer marks where each one begins.

What a page is worth belongs to :mod:`~eval_pipeline.benchmarks.ocrproxy`.
"""

from __future__ import annotations

import re

from eval_pipeline.benchmarks.fences import unfenced

_MARKER = re.compile(r"^[^\S\n]*={2,}[^\S\n]*(?:page|쪽|페이지)[^\S\n]*(\d{1,4})[^\S\n]*={2,}[^\S\n]*$", re.I | re.M)


def split_pages(text: str, pages: int) -> list[str] | None:
    """The text of each of ``pages`` pages; ``None`` where more than one is expected and no line marks any.

    A marker is a line such as ``=== page 2 ===``. Text before the first marker belongs to the page of that marker, text
    of a page that there is not to the last one: nothing is lost. A page without a marker is empty.
    """
    text = unfenced(text.replace("\r\n", "\n"))
    markers = list(_MARKER.finditer(text))
    if not markers:
        return [text] if pages == 1 else None
    found: list[list[str]] = [[] for _ in range(pages)]
    starts = [0, *(marker.start() for marker in markers[1:]), len(text)]
    for marker, start, end in zip(markers, starts, starts[1:], strict=False):
        number = int(marker[1])
        place = number - 1 if 1 <= number <= pages else pages - 1
        found[place] += text[start : marker.start()], text[marker.end() : end]
    return list(map("\n".join, found))
