"""Character error rate: how many characters of a reference are wrong, missing or too many in a hypothesis.

CER = (substitutions + deletions + insertions) ÷ characters of the reference; above 1 where much is too many. Texts are
expected to be normalised by :func:`normalise`. How an answer is split into pages belongs to
:mod:`~eval_pipeline.benchmarks.ocr_pages`.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import regex
from rapidfuzz.distance import Levenshtein

from eval_pipeline.benchmarks.visible import visible

Units: TypeAlias = "str | Sequence[str]"

MAX_WORK = 4_000_000_000
"""Characters of one text times those of the other up to which the distance is exact: one or two seconds."""
_MAX_OPERATIONS_WORK = 1_000_000_000
_LINE_END = re.compile(r"\r\n?|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
# marks and single jamo that NFC has left alone have no composed form
_NEEDS_CLUSTERS = regex.compile(r"[\p{M}\u1100-\u11ff\ua960-\ua97f\ud7b0-\ud7ff]")


@dataclass(frozen=True, slots=True)
class Errors:
    """What turns one text into another: ``edits``, of them each kind where it is known, and the reference's length.

    ``exact`` is false for texts that are too long to be compared; ``edits`` is then the least it can be.
    """

    edits: int
    characters: int
    exact: bool = True
    substitutions: int | None = None
    deletions: int | None = None
    insertions: int | None = None

    @property
    def rate(self) -> float | None:
        """``None`` for text where nothing should be: no share of nothing says how much."""
        if self.characters == 0:
            return 0.0 if self.edits == 0 else None
        return self.edits / self.characters


def normalise(text: str, *, keep_lines: bool = False, nfkc: bool = False) -> str:
    """``text`` as it is compared: NFC (or NFKC), nothing invisible, no white space around, runs of it as one space.

    With ``keep_lines`` a run with a line break in it is one line break.
    """
    text = unicodedata.normalize("NFKC" if nfkc else "NFC", visible(text))
    if not keep_lines:
        return " ".join(text.split())
    lines = (" ".join(line.split()) for line in _LINE_END.sub("\n", text).split("\n"))
    return "\n".join(filter(None, lines))


def errors(reference: str, hypothesis: str, *, kinds: bool = False) -> Errors:
    """The edits between two normalised texts, by code points; where a combining mark has no composed form, by what
    people take for one character. ``kinds`` asks for the edits by kind as well, where that is not too much work.
    """
    ours, theirs = _units(reference, hypothesis)
    work = len(ours) * len(theirs)
    if kinds and work <= _MAX_OPERATIONS_WORK:
        counts = Counter(operation.tag for operation in Levenshtein.editops(ours, theirs))
        return Errors(
            edits=counts.total(),
            characters=len(ours),
            substitutions=counts["replace"],
            deletions=counts["delete"],
            insertions=counts["insert"],
        )
    if work <= MAX_WORK:
        return Errors(Levenshtein.distance(ours, theirs, score_hint=len(ours) // 20), len(ours))
    return Errors(_least(ours, theirs), len(ours), exact=False)


def cer(reference: str, hypothesis: str) -> float | None:
    """The character error rate of ``hypothesis`` after :func:`normalise`; ``None`` for text where nothing should be."""
    return errors(normalise(reference), normalise(hypothesis)).rate


def jamo(text: str) -> str:
    """``text`` with its Hangul syllables in their letters (NFD), so that 글 and 국 share two of three."""
    return unicodedata.normalize("NFD", text)


def _units(reference: str, hypothesis: str) -> tuple[Units, Units]:
    if not (_NEEDS_CLUSTERS.search(reference) or _NEEDS_CLUSTERS.search(hypothesis)):
        return reference, hypothesis
    return regex.findall(r"\X", reference), regex.findall(r"\X", hypothesis)


def _least(ours: Units, theirs: Units) -> int:
    """A lower bound of the distance: what one text has more of than the other must be replaced or go."""
    counts, others = Counter(ours), Counter(theirs)
    return max((counts - others).total(), (others - counts).total())
