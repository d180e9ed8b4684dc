"""Writes the attachments of the sample suite: ``python scripts/make_sample_files.py [folder]``.

The files in ``eval_pipeline/sample_data/tasks`` come from here and nowhere else, so that a reviewer can see
what is in them. Office formats are made here, plain texts stand in ``sample_texts.py``, image and sound in
``sample_media.py``. Two runs give the same bytes: dates inside the files are fixed, and zip containers are
packed again with a fixed time. Questions and answers are not made here, they stand in ``metadata.jsonl``.

Needs the ``test`` extra (xlwt, reportlab) besides the package's own dependencies.
"""

from __future__ import annotations

import datetime as dt
import io
import re
import sys
import zipfile
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import openpyxl
import xlwt
from docx import Document
from openpyxl.styles import Alignment, Font
from openpyxl.utils import get_column_letter
from pptx import Presentation
from reportlab.lib import colors
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.platypus import Paragraph, SimpleDocTemplate, Spacer, Table, TableStyle
from sample_media import recording, shapes
from sample_texts import (
    FERRIES,
    GARDEN_DIARY,
    LIBRARY_LOANS,
    PUMP_STATION,
    RIVER_LEVELS,
    SHOP_LEDGER,
    bike_trips,
)

TASKS = Path(__file__).parents[1] / "eval_pipeline" / "sample_data" / "tasks"
MADE = dt.datetime(2026, 3, 9, 9, 0, 0)


def packed_again(data: bytes, changes: dict[str, Callable[[str], str]] | None = None) -> bytes:
    """The zip container ``data`` with every member dated ``MADE`` and the named members changed."""
    target = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            content = old.read(name)
            if changes and name in changes:
                content = changes[name](content.decode()).encode()
            info = zipfile.ZipInfo(name, MADE.timetuple()[:6])
            info.compress_type = zipfile.ZIP_DEFLATED
            info.create_system = 3  # Python writes the system it runs on, and the bytes would differ with it
            new.writestr(info, content)
    return target.getvalue()


# The reader's text of this workbook has 3,914 characters, which the reference run counts on: after a change
# here, the title or a remark makes up for the difference.
CAFE_TITLE = "Mill Lane Cafés: sales by branch and day, 2 to 7 March 2026, in dollars without tips"
CAFE_BRANCHES = ("Mill Lane", "Old Dock", "Station", "University", "Park")
CAFE_DAYS = 6
CAFE_MENU = (
    ("Croissant", "food", "butter, baked in house"),
    ("Latte", "drink", "single or double shot, any milk"),
    ("Sandwich", "food", "on rye or white bread"),
    ("Salad", "food", "small and large plates together"),
    ("Lemonade", "drink", "still or sparkling"),
    ("Soup", "food", "one kind each day; a dish, not a drink"),
    ("Tea", "drink", "by the pot, black or green"),
    ("Cake", "food", "by the slice; whole cakes are twelve"),
)
CAFE_FOOD_TOTAL = Decimal("89706.00")


def cafe_amounts() -> list[list[Decimal]]:
    """One row per day and branch, one amount per item of the menu, in dollars and cents.

    The last amount of food is what is missing to ``CAFE_FOOD_TOTAL``.
    """
    rows = [
        [
            Decimal(28_000 + (row * 7_919 + column * 12_553 + row * column * 1_031) % 63_500) / 100
            for column in range(len(CAFE_MENU))
        ]
        for row in range(CAFE_DAYS * len(CAFE_BRANCHES))
    ]
    food = [column for column, (_, kind, _) in enumerate(CAFE_MENU) if kind == "food"]
    rows[-1][food[-1]] += CAFE_FOOD_TOTAL - sum(row[column] for row in rows for column in food)
    return rows


def cafe_sales() -> bytes:
    """Two sheets: amounts under merged cells with formulas, and which item is food and which a drink."""
    amounts = cafe_amounts()
    first, last = 3, 2 + len(amounts)
    columns = [get_column_letter(3 + index) for index in range(len(CAFE_MENU))]
    sum_column = get_column_letter(3 + len(CAFE_MENU))

    book = openpyxl.Workbook()
    book.remove(book.worksheets[0])
    sales = book.create_sheet("Sales")
    sales.append([CAFE_TITLE])
    sales.append(["Date", "Branch", *(item for item, _, _ in CAFE_MENU), "All items"])
    sales.merge_cells(f"A1:{sum_column}1")
    cached: dict[str, Decimal] = {}
    for index, row in enumerate(amounts):
        number = first + index
        day, branch = divmod(index, len(CAFE_BRANCHES))
        date = dt.date(2026, 3, 2) + dt.timedelta(days=day) if branch == 0 else None
        formula = f"=SUM({columns[0]}{number}:{columns[-1]}{number})"
        sales.append([date, CAFE_BRANCHES[branch], *map(float, row), formula])
        cached[f"{sum_column}{number}"] = sum(row, Decimal())
        if branch == 0:
            sales.merge_cells(f"A{number}:A{number + len(CAFE_BRANCHES) - 1}")
            sales[f"A{number}"].alignment = Alignment(vertical="top")
    totals = last + 1
    sales.append(["All days", None, *(f"=SUM({c}{first}:{c}{last})" for c in [*columns, sum_column])])
    for index, column in enumerate(columns):
        cached[f"{column}{totals}"] = sum((row[index] for row in amounts), Decimal())
    cached[f"{sum_column}{totals}"] = sum((sum(row, Decimal()) for row in amounts), Decimal())
    for cell in (sales["A1"], *sales[2], *sales[totals]):
        cell.font = Font(bold=True)

    menu = book.create_sheet("Menu")
    for line in (("Item", "Kind", "Remark"), *CAFE_MENU):
        menu.append(line)
    return with_cached_values(book, "xl/worksheets/sheet1.xml", cached)


def with_cached_values(book: openpyxl.Workbook, sheet: str, cached: dict[str, Decimal]) -> bytes:
    """The saved workbook with the value of every formula beside it, as a spreadsheet program stores it.

    openpyxl writes formulas without values, and a reader that asks for values would find nothing.
    """
    buffer = io.BytesIO()
    book.save(buffer)

    def valued(xml: str) -> str:
        return re.sub(
            r'(<c r="([A-Z]+[0-9]+)"[^>]*><f>[^<]*</f>)<v\s*(?:/>|></v>)',
            lambda cell: f"{cell[1]}<v>{cached[cell[2]]}</v>",
            xml,
        )

    def dated(xml: str) -> str:
        return re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", MADE.strftime("%Y-%m-%dT%H:%M:%SZ"), xml)

    return packed_again(buffer.getvalue(), {sheet: valued, "docProps/core.xml": dated})


def museum_february() -> bytes:
    """The old Excel format: opening days (all but Mondays) with real date cells, and a second sheet."""
    book = xlwt.Workbook(encoding="utf-8")
    visitors = book.add_sheet("관람객")
    for column, title in enumerate(("날짜", "성인", "청소년", "어린이")):
        visitors.write(0, column, title)
    date_style = xlwt.easyxf(num_format_str="YYYY-MM-DD")
    days = [dt.date(2026, 2, day) for day in range(1, 29)]
    for row, day in enumerate((day for day in days if day.weekday() != 0), start=1):
        busy = 3 if day.weekday() >= 5 else 1
        visitors.write(row, 0, day, date_style)
        visitors.write(row, 1, 120 * busy + day.day * 17 % 50)
        visitors.write(row, 2, 30 * busy + day.day * 7 % 20)
        visitors.write(row, 3, 45 * busy + day.day * 11 % 30)
    about = book.add_sheet("안내")
    about.write(0, 0, "월요일은 휴관입니다. 어린이는 만 12세까지입니다.")
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def team_minutes() -> bytes:
    """A Word document with a table of what is to be done, not in the order of its dates."""
    document = Document()
    document.core_properties.author = "축제 준비 모임"
    document.core_properties.created = document.core_properties.modified = MADE
    document.add_heading("봄 축제 준비 회의록", level=1)
    document.add_paragraph("2026년 3월 26일 오후 3시, 주민센터 2층. 참석 여섯 명.")
    rows = (
        ("할 일", "담당", "기한", "상태"),
        ("무대 업체와 계약", "윤서아", "2026-04-10", "진행"),
        ("포스터 시안 확정", "강도현", "2026-03-30", "완료"),
        ("자원봉사자 교육", "임하준", "2026-04-21", "시작 전"),
        ("보험 가입", "조은별", "2026-04-03", "진행"),
        ("전기 용량 점검", "한지우", "2026-05-02", "시작 전"),
        ("주차장 사용 허가", "오세린", "2026-04-17", "진행"),
        ("현수막 주문", "문태경", "2026-04-08", "완료"),
    )
    table = document.add_table(rows=0, cols=4, style="Table Grid")
    for row in rows:
        for cell, text in zip(table.add_row().cells, row, strict=True):
            cell.text = text
    document.add_paragraph("다음 회의: 2026년 4월 9일 오후 3시, 같은 장소.")
    buffer = io.BytesIO()
    document.save(buffer)
    return packed_again(buffer.getvalue())


def harbour_launch() -> bytes:
    """Four slides whose speaker notes correct what one of them says."""
    slides = (
        (
            "Harbour Lights 2026",
            "Launch of the evening ferry line",
            "Welcome everyone. Wait until the doors are shut.",
        ),
        (
            "Programme",
            "18:30 Doors\n19:00 Speeches\n20:00 First crossing",
            "The mayor speaks first, four minutes.",
        ),
        (
            "Venue",
            "Old Customs House, great hall",
            "Do not read the slide out: the launch has moved to Lantern Pier.",
        ),
        (
            "Contact",
            "Desk at the ticket office",
            "Ask for questions. The Old Customs House stays closed that day.",
        ),
    )
    show = Presentation()
    show.core_properties.author = "Harbour Lights"
    show.core_properties.created = show.core_properties.modified = MADE
    for title, body, notes in slides:
        slide = show.slides.add_slide(show.slide_layouts[1])
        slide.shapes.title.text = title
        slide.placeholders[1].text = body
        slide.notes_slide.notes_text_frame.text = notes
    buffer = io.BytesIO()
    show.save(buffer)
    return packed_again(buffer.getvalue())


def orchard_harvest() -> bytes:
    """A text PDF: a table of whole tonnes, and below it a correction of one of its cells."""
    rows = [
        ["Orchard", "Apples", "Pears", "Plums"],
        ["Hillside", "212", "64", "38"],
        ["Brookfield", "158", "97", "41"],
        ["Longmeadow", "305", "120", "76"],
        ["Stonegate", "94", "53", "59"],
        ["Eastwood", "187", "71", "44"],
    ]
    styles = getSampleStyleSheet()
    table = Table(rows, colWidths=[110, 70, 70, 70])
    table.setStyle(TableStyle([("GRID", (0, 0), (-1, -1), 0.5, colors.black)]))
    buffer = io.BytesIO()
    document = SimpleDocTemplate(
        buffer, pagesize=A4, title="Harvest report 2025", author="Growers' Union", invariant=True
    )
    document.build(
        [
            Paragraph("Harvest report 2025", styles["Title"]),
            Paragraph("Fruit by orchard, in tonnes, as weighed at the gate.", styles["Normal"]),
            Spacer(1, 12),
            table,
            Spacer(1, 12),
            Paragraph(
                "Correction of 3 November 2025: two digits of one entry were swapped. "
                "The pears of Hillside are 46 tonnes.",
                styles["Normal"],
            ),
        ]
    )
    return buffer.getvalue()


FILES: dict[str, Callable[[], bytes]] = {
    "cafe_sales.xlsx": cafe_sales,
    "museum_february.xls": museum_february,
    "team_minutes.docx": team_minutes,
    "harbour_launch.pptx": harbour_launch,
    "orchard_harvest.pdf": orchard_harvest,
    "shop_ledger.txt": lambda: SHOP_LEDGER.encode("cp949"),
    "library_loans.csv": LIBRARY_LOANS.encode,
    "river_levels.tsv": RIVER_LEVELS.encode,
    "bike_trips.json": bike_trips,
    "pump_station.txt": PUMP_STATION.encode,
    "garden_diary.txt": GARDEN_DIARY.encode,
    "ferries.csv": FERRIES.encode,
    "shapes.png": shapes,
    "recording.mp3": recording,
}


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in FILES.items():
        (folder / name).write_bytes(make())


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else TASKS)
