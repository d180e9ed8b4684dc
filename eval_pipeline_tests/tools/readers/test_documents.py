"""Word, PowerPoint and PDF: what is shown, and in which order."""

from __future__ import annotations

from pathlib import Path

import docx
import pptx
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Inches
from reportlab.lib import colors
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Paragraph, SimpleDocTemplate, Table, TableStyle

from eval_pipeline_tests.tools.readers.conftest import Read


async def test_a_word_document_in_its_order(tmp_path: Path, read: Read) -> None:
    document = docx.Document()
    document.add_heading("보고서", 0)
    document.add_heading("Part one", 1)
    document.add_paragraph("A paragraph.")
    table = document.add_table(rows=2, cols=3)
    table.cell(0, 0).merge(table.cell(0, 1)).text = "merged"
    table.cell(0, 2).text = "a|b"
    table.cell(1, 0).text = "two\nlines"
    document.add_paragraph("")
    document.add_paragraph("first", style="List Bullet")
    document.add_paragraph("after the table")
    document.sections[0].header.paragraphs[0].text = "Confidential"
    document.save(str(tmp_path / "report.docx"))

    assert await read(tmp_path / "report.docx") == "\n".join(
        [
            "# 보고서",
            "# Part one",
            "A paragraph.",
            "Table:",
            r"merged | a\|b",
            r"two\nlines",
            "- first",
            "after the table",
            "Header of section 1: Confidential",
        ]
    )


async def test_a_presentation_slide_by_slide(tmp_path: Path, read: Read) -> None:
    show = pptx.Presentation()
    first = show.slides.add_slide(show.slide_layouts[5])
    assert first.shapes.title is not None
    first.shapes.title.text = "매출 Sales"
    table = first.shapes.add_table(2, 2, Inches(1), Inches(2), Inches(4), Inches(1)).table
    for row, column, text in [(0, 0, "Item"), (0, 1, "Sum"), (1, 0, "Latte"), (1, 1, "9")]:
        table.cell(row, column).text = text
    box = first.shapes.add_textbox(0, 0, Inches(1), Inches(1))
    box.text_frame.text = "in a box"
    notes = first.notes_slide.notes_text_frame
    assert notes is not None
    notes.text = "say this"
    second = show.slides.add_slide(show.slide_layouts[6])
    data = CategoryChartData()
    data.categories = ["Q1", "Q2"]
    data.add_series("Drinks", (1.5, 2))
    chart = second.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, 0, 0, Inches(4), Inches(3), data).chart
    chart.chart_title.text_frame.text = "Sold in thousands"
    show.save(str(tmp_path / "show.pptx"))

    assert await read(tmp_path / "show.pptx") == "\n".join(
        [
            "Presentation: 2 slides",
            "",
            "Slide 1",
            "매출 Sales",
            "Table:",
            "Item | Sum",
            "Latte | 9",
            "in a box",
            "Notes: say this",
            "",
            "Slide 2",
            "Chart: Sold in thousands",
            " | Q1 | Q2",
            "Drinks | 1.5 | 2",
        ]
    )


async def test_a_pdf_page_by_page_with_its_tables(tmp_path: Path, read: Read) -> None:
    style = TableStyle([("GRID", (0, 0), (-1, -1), 1, colors.black)])
    SimpleDocTemplate(str(tmp_path / "report.pdf"), pagesize=A4).build(
        [
            Paragraph("Yearly report", getSampleStyleSheet()["Title"]),
            Table([["Item", "Sum"], ["Latte", "9.50"]], style=style),
        ]
    )

    lines = (await read(tmp_path / "report.pdf")).splitlines()

    assert lines[:2] == ["Page 1 of 1", "Yearly report"]
    assert lines[-3:] == ["Table:", "Item | Sum", "Latte | 9.50"]


async def test_a_page_without_text_says_so(tmp_path: Path, read: Read) -> None:
    canvas = Canvas(str(tmp_path / "scan.pdf"))
    canvas.rect(10, 10, 50, 50)
    canvas.showPage()
    canvas.drawString(50, 700, "second page")
    canvas.save()

    assert await read(tmp_path / "scan.pdf") == "\n".join(
        ["Page 1 of 2", "(no text on this page, it may be a picture)", "", "Page 2 of 2", "second page"]
    )


async def test_a_long_pdf_is_cut_long_before_its_end(tmp_path: Path, read: Read) -> None:
    canvas = Canvas(str(tmp_path / "long.pdf"))
    for page in range(10):
        for line in range(60):
            canvas.drawString(40, 800 - 12 * line, f"page {page} line {line} with some words to make it long")
        canvas.showPage()
    canvas.save()

    text = await read(tmp_path / "long.pdf")

    assert len(text) <= 20_000
    assert text.splitlines()[-1].startswith("[cut: the first 19,9")
