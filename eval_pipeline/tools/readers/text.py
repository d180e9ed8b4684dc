"""Text files of any kind: the characters as they stand, in the encoding that the bytes allow.

A byte order mark decides; else UTF-8 if every byte is valid in it; else CP949 (the encoding of Korean
Windows) if every byte is valid in that; else UTF-8 with U+FFFD for what is not.
"""

from __future__ import annotations

import codecs
from pathlib import Path

from eval_pipeline.tools.errors import UnreadableFileError
from eval_pipeline.tools.readers.collect import MAX_CHARACTERS, shorten

_READ_BYTES = 2 * 1024 * 1024
"""Bytes that are read, many times what is shown; the rest of a larger file is only counted in bytes."""
_SNIFFED = 8192
_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


def read(path: Path, *, is_text: bool) -> str:
    """The beginning of the file, at most :data:`~eval_pipeline.tools.readers.collect.MAX_CHARACTERS`.

    ``is_text`` is false where the extension says nothing, so that binary content is refused.

    Raises:
        UnreadableFileError: the content is binary.
    """
    text, complete = content(path, is_text=is_text)
    return shorten(text[:MAX_CHARACTERS], total=len(text), complete=complete)


def content(path: Path, *, is_text: bool, most: int = _READ_BYTES) -> tuple[str, bool]:
    """The text of the file's first ``most`` bytes, and whether that is all of it; ``is_text`` as for :func:`read`.

    Raises:
        UnreadableFileError: the content is binary.
    """
    with path.open("rb") as file:
        data = file.read(most)
        complete = not file.read(1)
    mark = next((encoding for bom, encoding in _MARKS if data.startswith(bom)), None)
    if not is_text and mark is None and b"\0" in data[:_SNIFFED]:
        size = path.stat().st_size
        raise UnreadableFileError(f"{path.name} is binary ({size} bytes) and of no format that can be read here")
    return _decode(data, mark, final=complete), complete


def _decode(data: bytes, mark: str | None, *, final: bool) -> str:
    if mark is not None:
        return data.decode(mark, errors="replace")
    for encoding in ("utf-8", "cp949"):
        try:
            # Where the file goes on, a character may be cut in two at the end.
            return codecs.getincrementaldecoder(encoding)().decode(data, final)
        except UnicodeDecodeError:
            continue
    return data.decode("utf-8", errors="replace")
