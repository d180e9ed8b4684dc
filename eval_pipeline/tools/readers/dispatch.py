"""Which reader a file gets: by its extension, corrected by its first bytes where the name is wrong.

The formats themselves belong to their modules. Imports every parser: only the process that reads loads this.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path

from eval_pipeline.tools.errors import UnreadableFileError
from eval_pipeline.tools.readers import archive, collect, docx, pdf, pptx, text, xls, xlsx
from eval_pipeline.tools.readers.kinds import TEXTS, extension

OFFICE = {
    "xlsx": xlsx.read,
    "xlsm": xlsx.read,
    "xltx": xlsx.read,
    "docx": docx.read,
    "docm": docx.read,
    "pptx": pptx.read,
    "pptm": pptx.read,
}
_OLD = {"doc": "Word before 2007", "ppt": "PowerPoint before 2007"}
_ZIP = b"PK\x03\x04"
_EMPTY_ZIP = b"PK\x05\x06"
_COMPOUND = bytes.fromhex("D0CF11E0A1B11AE1")
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
_SNIFFED = 4096


def read(path: Path, *, seconds: float) -> str:
    """The file as text, cut as :mod:`.collect` says; reading stops after ``seconds``.

    Raises:
        UnreadableFileError: encrypted, corrupt, too large when unpacked, or of a format that cannot be read.
    """
    try:
        lines = _lines(path)
        if lines is not None:
            return collect.collect(lines, seconds=seconds)
    except (UnreadableFileError, MemoryError):
        raise
    except Exception as error:
        # The libraries raise anything, struct.error included, for a file that is not what it says.
        detail = " ".join(str(error).replace(str(path), path.name).split())[:200]
        raise UnreadableFileError(
            f"{path.name} is corrupt or not really a .{extension(path)} file ({type(error).__name__}: {detail})"
        ) from error
    return text.read(path, is_text=extension(path) in TEXTS)


def whole(path: Path, *, most: int) -> Iterator[str]:
    """The file as text, without what is shown of it being cut; of a text file the first ``most`` bytes.

    May raise whatever a parser raises.
    """
    lines = _lines(path)
    if lines is not None:
        yield from lines
    else:
        yield text.content(path, is_text=extension(path) in TEXTS, most=most)[0]


def _lines(path: Path) -> Iterator[str] | None:
    kind = extension(path)
    if path.stat().st_size == 0 and (kind in OFFICE or kind in ("xls", "pdf", "zip")):
        raise UnreadableFileError(f"{path.name} is empty (0 bytes)")
    if kind == "pdf":
        return pdf.read(path)
    with path.open("rb") as file:
        start = file.read(_SNIFFED)
    if start.startswith(_COMPOUND):
        return _compound(path)
    if kind in OFFICE or (kind == "xls" and start.startswith(_ZIP)):
        archive.check_office(path)
        return OFFICE.get(kind, xlsx.read)(path)
    if kind == "xls" and b"\0" in start:
        return xls.read(path)
    if start.startswith((_ZIP, _EMPTY_ZIP)) and zipfile.is_zipfile(path):
        return archive.listing(path)
    return None


def _compound(path: Path) -> Iterator[str]:
    kind = extension(path)
    if _ENCRYPTED in path.read_bytes():
        raise UnreadableFileError(f"{path.name} is encrypted and cannot be read without its password")
    if kind in _OLD:
        raise UnreadableFileError(f"{path.name} is a file of {_OLD[kind]}, a format that cannot be read here")
    return xls.read(path)
