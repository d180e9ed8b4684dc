"""Texts as a reader sees them: without the characters that show nothing.

Which normal form of Unicode a benchmark compares in, and what it does with white space, belongs to the benchmark.
"""

from __future__ import annotations

import unicodedata


def visible(text: str) -> str:
    """``text`` without format characters: zero-width and bidirectional controls, soft hyphens, byte-order marks."""
    if text.isascii():
        return text
    unseen = {ord(character): None for character in set(text) if unicodedata.category(character) == "Cf"}
    return text.translate(unseen) if unseen else text
