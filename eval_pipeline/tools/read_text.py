"""The check that a path is the task's own attachment, and ``read_attached_file`` as v1 to v4 have it: UTF-8
text, uncut.

Every other format belongs to :mod:`eval_pipeline.tools.read_multi`.
"""

from __future__ import annotations

import errno
import os
import unicodedata
from pathlib import Path

from eval_pipeline.tools.errors import ToolError

MAX_BYTES = 32 * 1024 * 1024
"""A text that is given uncut stands in every later request of the run; past this size no model could take it.
"""
_SHOWN_PATH = 300


def attached(path: str, attachment: Path | None) -> Path:
    """The staged attachment, if ``path`` names it; links and ``..`` are followed first.

    Raises:
        FileNotFoundError: it does not; the text is Python's own, whether or not there is another file.
    """
    if attachment is not None and (_same(path, attachment) or _same(unicodedata.normalize("NFC", path), attachment)):
        return attachment
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path[:_SHOWN_PATH])


def _same(path: str, attachment: Path) -> bool:
    try:
        return bool(path) and os.path.realpath(path) == os.path.realpath(attachment)
    except (ValueError, OSError):
        # NUL, a lone surrogate or a name longer than the file system takes: not a path of any file.
        return False


def read_text(path: str, attachment: Path | None) -> str:
    """The attachment as strict UTF-8, every character of it.

    Raises:
        FileNotFoundError: ``path`` is not the task's attachment.
        UnicodeDecodeError: the file is not UTF-8 text.
        ToolError: it is larger than any model could take.
    """
    file = attached(path, attachment)
    size = file.stat().st_size
    if size > MAX_BYTES:
        raise ToolError(f"{file.name} has {size} bytes, at most {MAX_BYTES} can be read as text")
    return file.read_bytes().decode("utf-8")
