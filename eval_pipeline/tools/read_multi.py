"""``read_attached_file`` as v5 has it: every usual format as text, by extension.

The formats belong to :mod:`eval_pipeline.tools.readers`; the check of the path to
:mod:`eval_pipeline.tools.read_text`.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from eval_pipeline.tools.read_text import attached
from eval_pipeline.tools.readers import client, kinds, text


async def read_multi(path: str, attachment: Path | None, *, seconds: float) -> str:
    """The attachment as text of at most 20,000 characters.

    Raises:
        FileNotFoundError: ``path`` is not the task's attachment.
        UnreadableFileError: it is encrypted, corrupt, or of no format that can be read.
        ToolTimeoutError: it took longer than ``seconds``.
    """
    file = await asyncio.to_thread(attached, path, attachment)
    if notice := kinds.notice(file):
        return notice
    if kinds.extension(file) in kinds.TEXTS:
        return await asyncio.to_thread(text.read, file, is_text=True)
    return await client.read(file, seconds=seconds)
