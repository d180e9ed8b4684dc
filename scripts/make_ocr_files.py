"""Draws the images of the ocrproxy sample tasks: ``python scripts/make_ocr_files.py [folder]``.

The text of each image is the gold text of its task in ``eval_pipeline/sample_data/ocrproxy/tasks.jsonl``; pages stand
one below the other. Needs the ``test`` extra (pillow), ``fc-match`` and a font with Hangul. The committed images are
what counts: another font or another version of pillow gives other bytes.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

DATA = Path(__file__).parents[1] / "eval_pipeline" / "sample_data" / "ocrproxy"
FONT = "Noto Sans CJK KR"
WIDTH, MARGIN, SIZE, LEADING = 900, 50, 22, 34
TWO_COLUMNS = {"newsletter.png"}


def font() -> ImageFont.FreeTypeFont:
    """The first installed font that fontconfig finds for Hangul; in a collection, the face of that name."""
    asked = ["fc-match", "--format=%{file}\n%{index}", f"{FONT}:lang=ko"]
    file, index = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split("\n")
    return ImageFont.truetype(file, SIZE, index=int(index) & 0xFFFF)


def wrapped(text: str, face: ImageFont.FreeTypeFont, width: float) -> Iterator[str]:
    """The lines of ``text`` broken at spaces so that none is wider than ``width`` pixels."""
    for paragraph in text.split("\n"):
        line = ""
        for word in paragraph.split(" "):
            longer = f"{line} {word}" if line else word
            if line and face.getlength(longer) > width:
                yield line
                line = word
            else:
                line = longer
        yield line


def columns(page: str) -> tuple[list[str], list[str], list[str]]:
    """The title, the left and the right column of a page whose parts are paragraphs."""
    title, left, right = page.split("\n\n")
    return [title, ""], left.split("\n"), right.split("\n")


def drawn(page: str, face: ImageFont.FreeTypeFont, *, two_columns: bool) -> Image.Image:
    title, left, right = columns(page) if two_columns else ([], list(wrapped(page, face, WIDTH - 2 * MARGIN)), [])
    height = 2 * MARGIN + LEADING * (len(title) + max(len(left), len(right)))
    image = Image.new("L", (WIDTH, height), 255)
    pen = ImageDraw.Draw(image)
    for x, first, lines in ((MARGIN, 0, title), (MARGIN, len(title), left), (WIDTH // 2, len(title), right)):
        for number, line in enumerate(lines, first):
            pen.text((x, MARGIN + LEADING * number), line, font=face, fill=20)
    return image


def document(pages: list[str], face: ImageFont.FreeTypeFont, *, two_columns: bool) -> bytes:
    """The pages below each other with a line between them, as a PNG of sixteen greys."""
    images = [drawn(page, face, two_columns=two_columns) for page in pages]
    sheet = Image.new("L", (WIDTH, sum(image.height for image in images)), 255)
    top = 0
    for image in images:
        sheet.paste(image, (0, top))
        if top:
            ImageDraw.Draw(sheet).line([(0, top), (WIDTH, top)], fill=120)
        top += image.height
    buffer = io.BytesIO()
    sheet.quantize(16).save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    face = font()
    for line in (DATA / "tasks.jsonl").read_text(encoding="utf-8").splitlines():
        task = json.loads(line)
        pages = task["gold"] if isinstance(task["gold"], list) else [task["gold"]]
        name = task["file_name"]
        (folder / name).write_bytes(document(pages, face, two_columns=name in TWO_COLUMNS))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else DATA / "files")
