"""How a critic's verdict is read. Pure; what follows from it is decided where the team is built."""

from __future__ import annotations

import string
import unicodedata

APPROVE = "APPROVE"
_AROUND = string.punctuation + string.whitespace


def is_approval(text: str) -> bool:
    """Whether the last non-empty line, without Markdown and punctuation, is ``APPROVE`` and nothing else.

    A word in passing is no verdict: ``I cannot APPROVE this``, ``DISAPPROVE`` and ``approve?`` in a sentence are not.
    """
    lines = [line for line in unicodedata.normalize("NFC", text).splitlines() if line.strip(_AROUND)]
    return bool(lines) and lines[-1].strip(_AROUND) == APPROVE
