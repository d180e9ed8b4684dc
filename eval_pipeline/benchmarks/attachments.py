"""The files that belong to tasks: found below the data folder and nowhere else, and hashed.

Staging a file for an agent belongs to :mod:`eval_pipeline.execution`.
"""

from __future__ import annotations

import hashlib
import os
import stat
import unicodedata
from collections.abc import Sequence
from pathlib import Path

from eval_pipeline.benchmarks.base import Attachment
from eval_pipeline.errors import TaskDataError
from eval_pipeline.ids import shown

_MAX_NAME_BYTES = 255


def check_file_name(name: str, where: str) -> str:
    """Return ``name`` in NFC if it is the name of one file, without any folder.

    ``where`` names file, line and field in the message.

    Raises:
        TaskDataError: a path, ``.`` or ``..``, control characters (the name stands in a line of the run
            message), or over 255 bytes.
    """
    if name in ("", ".", "..") or "/" in name or "\\" in name or not name.isprintable():
        raise TaskDataError(f"{where} is {shown(name)}; write the name of one file, without a folder")
    composed = unicodedata.normalize("NFC", name)
    if len(composed.encode()) > _MAX_NAME_BYTES:
        raise TaskDataError(f"{where} is {shown(name)}, longer than {_MAX_NAME_BYTES} bytes; shorten it")
    return composed


def find_attachment(name: str, places: Sequence[Path], root: Path, where: str) -> Attachment:
    """The first of ``places`` that exists, as the attachment called ``name``.

    File names written on macOS are decomposed, so each place is tried in both forms of Unicode. ``root`` is
    the data folder, which the file must not leave; ``where`` names file, line and field in messages.

    Raises:
        TaskDataError: none exists, or it is empty, not a regular file, unreadable, or lies outside ``root``.
    """
    for place in places:
        for form in dict.fromkeys((place.name, *(unicodedata.normalize(f, place.name) for f in ("NFC", "NFD")))):
            path = place.with_name(form)
            if os.path.lexists(path):
                return _attachment(name, path, root, where)
    raise TaskDataError(f"{where} names {shown(name)}, which is not in {places[0].parent}; put the file there")


def _attachment(name: str, path: Path, root: Path, where: str) -> Attachment:
    what = f"{where} names {shown(name)}, which"
    try:
        real = path.resolve(strict=True)
        if not real.is_relative_to(root.resolve(strict=True)):
            raise TaskDataError(f"{what} is a link that leaves {root}; put a copy of the file there (cp -L)")
        # a pipe would be waited for, so the kind is looked at before opening
        if not stat.S_ISREG(real.stat().st_mode):
            raise TaskDataError(f"{what} is not a regular file")
        with real.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            size = file.tell()
    except (OSError, RuntimeError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else "the link leads in a circle"
        raise TaskDataError(f"{what} cannot be read ({reason})") from exc
    if size == 0:
        raise TaskDataError(f"{what} is empty; put the whole file there")
    return Attachment(file_name=name, path=real, sha256=digest, size=size)
