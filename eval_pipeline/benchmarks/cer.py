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
"""Characters of one text times those of the other up to which any distance is exact: one or two seconds."""
_MAX_BAND_WORK = 20_000_000_000
_MAX_OPERATIONS_WORK = 1_000_000_000
_LINE_END = re.compile(r"\r\n?|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
# marks and single jamo that NFC has left alone have no composed form
_NEEDS_CLUSTERS = regex.compile(r"[\p{M}\u1100-\u11ff\ua960-\ua97f\ud7b0-\ud7ff]")


@dataclass(frozen=True, slots=True)
class Errors:
    """What turns one text into another: ``edits``, of them each kind where it is known, and the reference's length.

    ``exact`` is false for texts that are long and far apart; ``edits`` is then only a number that there are at least.
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


def errors(reference: str, hypothesis: str) -> Errors:
    """The edits between two normalised texts, by kind where that is not too much work.

    By code points; where a combining mark has no composed form, by what people take for one character.
    """
    ours, theirs = _units(reference, hypothesis)
    if len(ours) * len(theirs) <= _MAX_OPERATIONS_WORK:
        counts = Counter(operation.tag for operation in Levenshtein.editops(ours, theirs))
        return Errors(
            edits=counts.total(),
            characters=len(ours),
            substitutions=counts["replace"],
            deletions=counts["delete"],
            insertions=counts["insert"],
        )
    return _distance(ours, theirs)


def jamo_errors(reference: str, hypothesis: str) -> Errors:
    """The edits between two normalised texts with Hangul in its letters (NFD), so that 글 and 국 share two of three."""
    return _distance(unicodedata.normalize("NFD", reference), unicodedata.normalize("NFD", hypothesis))


def cer(reference: str, hypothesis: str) -> float | None:
    """The character error rate of ``hypothesis`` after :func:`normalise`; ``None`` for text where nothing should be."""
    return errors(normalise(reference), normalise(hypothesis)).rate


def _units(reference: str, hypothesis: str) -> tuple[Units, Units]:
    if not (_NEEDS_CLUSTERS.search(reference) or _NEEDS_CLUSTERS.search(hypothesis)):
        return reference, hypothesis
    return regex.findall(r"\X", reference), regex.findall(r"\X", hypothesis)


def _distance(ours: Units, theirs: Units) -> Errors:
    """Exact for texts that are short, or long and alike; else the least that it can be."""
    if len(ours) * len(theirs) <= MAX_WORK:
        return Errors(Levenshtein.distance(ours, theirs, score_hint=len(ours) // 20), len(ours))
    # a band of this width around the diagonal is searched, and nothing at all if the lengths differ by more
    band = min(len(ours) // 8, _MAX_BAND_WORK // len(theirs))
    edits = Levenshtein.distance(ours, theirs, score_cutoff=band)
    if edits <= band:
        return Errors(edits, len(ours))
    return Errors(max(edits, abs(len(ours) - len(theirs))), len(ours), exact=False)
