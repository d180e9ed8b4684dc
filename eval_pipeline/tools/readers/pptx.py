"""Presentations of PowerPoint since 2007 (.pptx), read with python-pptx.

Each slide begins with ``Slide 1``; its texts, tables (``Table:`` and a row per line), charts and the names of
its pictures follow in the order of the slide, its notes last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pptx
from pptx.enum.shapes import MSO_SHAPE_TYPE

from eval_pipeline.tools.readers.cells import cell_text, row_text

_MAX_DEPTH = 20


def read(path: Path) -> Iterator[str]:
    """The lines of every slide."""
    slides = pptx.Presentation(str(path)).slides
    yield f"Presentation: {len(slides)} slide{'s' if len(slides) != 1 else ''}"
    for number, slide in enumerate(slides, 1):
        yield ""
        yield f"Slide {number}"
        yield from _shapes(slide.shapes)
        if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
            notes = slide.notes_slide.notes_text_frame.text.strip()
            if notes:
                yield f"Notes: {notes}"


def _shapes(shapes: Iterable[Any], depth: int = 0) -> Iterator[str]:
    for shape in shapes:
        if shape.shape_type == MSO_SHAPE_TYPE.GROUP and depth < _MAX_DEPTH:
            yield from _shapes(shape.shapes, depth + 1)
        elif getattr(shape, "has_table", False):
            yield "Table:"
            for row in shape.table.rows:
                yield row_text(cell_text(cell.text) for cell in row.cells)
        elif getattr(shape, "has_chart", False):
            yield from _chart(shape.chart)
        elif shape.has_text_frame and shape.text_frame.text.strip():
            # A line break inside a paragraph is a vertical tab here.
            yield shape.text_frame.text.strip().replace("\v", "\n")
        elif shape.shape_type == MSO_SHAPE_TYPE.PICTURE:
            yield f"[picture: {shape.name}]"


def _chart(chart: Any) -> Iterator[str]:
    title = chart.chart_title.text_frame.text.strip() if chart.has_title and chart.chart_title.has_text_frame else ""
    yield f"Chart: {title}".rstrip(": ")
    for plot in chart.plots:
        yield row_text(["", *map(cell_text, plot.categories)])
        for series in plot.series:
            yield row_text([cell_text(series.name), *map(cell_text, series.values)])
