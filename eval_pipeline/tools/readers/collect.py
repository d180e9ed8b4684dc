"""How much of a reader's text is shown: the first characters, and a line that says how much was cut.

What the text is belongs to the readers.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

MAX_CHARACTERS = 20_000
"""Characters of an answer, the line about the cut included."""
COUNTED_CHARACTERS = 100_000
"""How far a reader goes on, only to say how much was cut: some 25 pages of a PDF, which take seconds."""


def collect(lines: Iterable[str], *, seconds: float) -> str:
    """The lines as one text of at most :data:`MAX_CHARACTERS`; reading stops after ``seconds``."""
    shown: list[str] = []
    total = 0
    complete = True
    deadline = time.monotonic() + seconds
    for text in lines:
        # One cell can hold megabytes: no more of a line is kept than is counted.
        line = text[: COUNTED_CHARACTERS + 1]
        if total < MAX_CHARACTERS:
            shown.append(line)
        total += len(line) + 1
        if total > COUNTED_CHARACTERS or time.monotonic() > deadline:
            complete = False
            break
    return shorten("\n".join(shown), total=max(total - 1, 0), complete=complete)


def shorten(text: str, *, total: int, complete: bool) -> str:
    """``text``, the beginning of ``total`` characters, with a line about the cut where it is not all.

    ``complete`` is false where reading stopped early, so that ``total`` is a lower bound.
    """
    if complete and total <= MAX_CHARACTERS:
        return text
    shown = min(len(text), MAX_CHARACTERS)
    while True:
        of = f"{total:,}" if complete else f"more than {total:,}"
        note = f"\n[cut: the first {shown:,} of {of} characters are shown]"
        if shown + len(note) <= MAX_CHARACTERS:
            return text[:shown] + note
        shown = MAX_CHARACTERS - len(note)
