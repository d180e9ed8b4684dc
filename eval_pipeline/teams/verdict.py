"""How a critic's verdict is read. Pure; what follows from it is decided where the team is built."""

from __future__ import annotations

import string
import unicodedata

APPROVE = "APPROVE"
_AROUND = string.punctuation + string.whitespace
_THINK, _THOUGHT = "<think>", "</think>"


def is_approval(text: str) -> bool:
    """Whether the last non-empty line, without Markdown and punctuation, is ``APPROVE`` and nothing else.

    A word in passing is no verdict: ``I cannot APPROVE this``, ``DISAPPROVE`` and ``approve?`` in a sentence are not,
    nor is anything inside a ``<think>`` block, closed or cut off.
    """
    said = text.rpartition(_THOUGHT)[2]
    if said.lstrip().startswith(_THINK):
        return False
    lines = [line for line in unicodedata.normalize("NFC", said).splitlines() if line.strip(_AROUND)]
    return bool(lines) and lines[-1].strip(_AROUND) == APPROVE
