"""Writes the attachments of the extract sample tasks: ``python scripts/make_extract_files.py [folder]``.

The files in ``eval_pipeline/sample_data/extract/files`` come from here and nowhere else. Two runs give the same bytes.
Questions, gold objects and schemas stand in ``tasks.jsonl``. Needs the ``test`` extra (reportlab) besides the package's
own dependencies.
"""

from __future__ import annotations

import datetime as dt
import io
import sys
from collections.abc import Callable
from pathlib import Path

import openpyxl
from docx import Document
from make_sample_files import MADE, packed_again, with_cached_values
from reportlab.lib import colors
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.platypus import Paragraph, SimpleDocTemplate, Spacer, Table, TableStyle

FILES_FOLDER = Path(__file__).parents[1] / "eval_pipeline" / "sample_data" / "extract" / "files"

RECEIPT = """\
        달빛서점 연남점
  사업자번호 214-81-50937
  서울 마포구 연남로 17, 1층
--------------------------------
거래일시 2026년 2월 14일 18:42
영수증번호 Y-000417
--------------------------------
품명              수량      금액
여행 수첩            2    13,000
연필 세트            1     4,500
시집 《느린 강》     1    12,000
--------------------------------
합계                  29,500원
받은 금액             30,000원
거스름돈                 500원
결제 현금
  교환은 14일 안에, 영수증 지참
"""

MAIL = """\
From: Ines Duarte <ines@northquay.example>
To: bookings@harbourhall.example
Subject: Hall for our autumn concert

Dear Mr Okafor,

thank you for holding the great hall for us. The concert moves from 04/10/2026 to 05/11/2026; the rehearsal is the day
before, 04/11/2026, from 14:00. We expect 180 guests instead of 150 and will need 12 music stands. The fee of
€1,240.50 stays as agreed, and so does our booking number HH 2026-77.

(All our dates are day first, as always.)

Kind regards
Ines Duarte
North Quay Chamber Choir
"""

VISITORS = """\
방문일,방문증,이름,소속,만난 사람,입실,퇴실
2026-03-03,V-101,서지안,한빛계측,오세훈,09:20,11:05
2026-03-03,V-102,마르코 벨리니,Officina Bellini,유나래,10:00,15:40
2026-03-04,V-101,장보라,푸른물류,오세훈,13:10,13:55
"""


def invoice() -> bytes:
    """An English invoice with three lines and an amount that is already paid."""
    rows = [
        ["Item", "Description", "Quantity", "Unit price", "Amount"],
        ["KT-20", "Kettle, 2 l, steel", "4", "$38.50", "$154.00"],
        ["CP-07", "Cup, blue glaze", "24", "$6.25", "$150.00"],
        ["TR-01", "Serving tray, oak", "3", "$41.00", "$123.00"],
    ]
    styles = getSampleStyleSheet()
    table = Table(rows, colWidths=[60, 160, 70, 80, 80])
    table.setStyle(TableStyle([("GRID", (0, 0), (-1, -1), 0.5, colors.black)]))
    lines = (
        "Birchwood Table Ware, 8 Kiln Lane",
        "Invoice no. BTW-2026/0318",
        "Date: March 9, 2026",
        "Payable by: April 8, 2026",
        "To: Teahouse Mirae",
    )
    sums = ("Subtotal: $427.00", "Tax (10%): $42.70", "Total: $469.70", "Deposit received: $100.00")
    buffer = io.BytesIO()
    document = SimpleDocTemplate(buffer, pagesize=A4, title="Invoice", author="Birchwood Table Ware", invariant=True)
    document.build(
        [
            *(Paragraph(line, styles["Normal"]) for line in lines),
            Spacer(1, 12),
            table,
            Spacer(1, 12),
            *(Paragraph(line, styles["Normal"]) for line in sums),
        ]
    )
    return buffer.getvalue()


def lease() -> bytes:
    """A Korean lease as a Word document: a table of terms, and special conditions in their order."""
    document = Document()
    document.core_properties.author = "은행나무공인중개사"
    document.core_properties.created = document.core_properties.modified = MADE
    document.add_heading("부동산 임대차 계약서", level=1)
    document.add_paragraph("소재지: 대전광역시 서구 은행로 42, 301호 (전용면적 59.8제곱미터)")
    rows = (
        ("항목", "내용"),
        ("임대인", "남기태"),
        ("임차인", "문가람"),
        ("보증금", "금 30,000,000원정"),
        ("차임", "월 550,000원 (매월 25일 지급)"),
        ("기간", "2026년 4월 1일부터 2028년 3월 31일까지"),
    )
    table = document.add_table(rows=0, cols=2, style="Table Grid")
    for row in rows:
        for cell, text in zip(table.add_row().cells, row, strict=True):
            cell.text = text
    document.add_paragraph("특약사항")
    for text in ("반려동물은 고양이에 한한다.", "벽에 못을 박지 않는다.", "퇴거 시 도배 비용은 임대인이 낸다."):
        document.add_paragraph(text, style="List Number")
    buffer = io.BytesIO()
    document.save(buffer)
    return packed_again(buffer.getvalue())


def orders() -> bytes:
    """Orders of two customers over several rows, one of them cancelled, with dates as real date cells."""
    book = openpyxl.Workbook()
    book.remove(book.worksheets[0])
    sheet = book.create_sheet("Orders")
    rows: tuple[tuple[object, ...], ...] = (
        ("Order", "Customer", "Ordered", "Article", "Pieces", "State"),
        ("S-310", "Lumen Studio", dt.date(2026, 2, 2), "lamp shade", 6, "shipped"),
        ("S-310", "Lumen Studio", dt.date(2026, 2, 2), "brass hook", 12, "shipped"),
        ("S-311", "Café Nord", dt.date(2026, 2, 5), "lamp shade", 2, "cancelled"),
        ("S-312", "Café Nord", dt.date(2026, 2, 11), "wall lamp", 3, "open"),
        ("S-312", "Café Nord", dt.date(2026, 2, 11), "brass hook", 12, "open"),
        ("S-312", "Café Nord", dt.date(2026, 2, 11), "cable, 3 m", 3, "open"),
    )
    for row in rows:
        sheet.append(row)
    return with_cached_values(book, "xl/worksheets/sheet1.xml", {})


FILES: dict[str, Callable[[], bytes]] = {
    "invoice.pdf": invoice,
    "receipt.txt": RECEIPT.encode,
    "lease.docx": lease,
    "orders.xlsx": orders,
    "mail.txt": MAIL.encode,
    "visitors.csv": VISITORS.encode,
}


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in FILES.items():
        (folder / name).write_bytes(make())


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FILES_FOLDER)
