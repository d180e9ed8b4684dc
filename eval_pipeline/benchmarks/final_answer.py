"""The ``FINAL ANSWER:`` line of a text, for the benchmarks whose answer is one line.

Pure and linear in the length of the text. What an answer is worth belongs to the benchmark's scorer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_LABEL_WORDS = "FINAL ANSWER"
_LABEL = re.compile(_LABEL_WORDS + r"[^\S\n]*+[:：]")
# U+3000 is the last white space of Unicode
_WHITE_SPACE = "".join(filter(str.isspace, map(chr, range(0x3001))))
_MARKUP = _WHITE_SPACE + "*`"
_QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’", "„": "“", "«": "»", "「": "」", "『": "』"}
_PLACEHOLDER = re.compile(r"<[^<>]*>\Z|\[\s*YOUR\b", re.IGNORECASE)
_BESIDE_PLACEHOLDER = _MARKUP + "\"'“”‘’().,;:!?"


def extract_final_answer(text: str) -> str | None:
    """The value of the last ``FINAL ANSWER:`` label that has one; ``None`` for none.

    The label has its capitals; spaces may stand before the colon, which may be full-width. Its value is the
    rest of the line, or the next line when the rest is empty, but not the next paragraph; another label ends
    it. White space, ``*``, backticks and one pair of quotes around the value are not part of it. A label
    whose value is then empty or a placeholder (``<…>``, ``[YOUR …]``) does not count.
    """
    stop = len(text)
    for label in _labels_from_the_end(text):
        value = _unwrapped(_value(text, label.end(), stop))
        if value and not _PLACEHOLDER.match(value.strip(_BESIDE_PLACEHOLDER)):
            return value
        stop = label.start()
    return None


def _labels_from_the_end(text: str) -> Iterator[re.Match[str]]:
    position = len(text)
    while (position := text.rfind(_LABEL_WORDS, 0, position)) != -1:
        label = _LABEL.match(text, position)
        if label:
            yield label


def _value(text: str, start: int, stop: int) -> str:
    """What belongs to the label that ends at ``start``; ``stop`` is the next label or the end of the text."""
    line_end = text.find("\n", start, stop)
    if line_end == -1:
        return text[start:stop]
    rest = text[start:line_end]
    # a bold label leaves its closing stars behind it, which are not an answer
    if rest.strip(_MARKUP):
        return rest
    next_end = text.find("\n", line_end + 1, stop)
    return text[line_end + 1 : stop if next_end == -1 else next_end]


def _unwrapped(value: str) -> str:
    value = value.strip(_MARKUP)
    if len(value) < 2 or _QUOTES.get(value[0]) != value[-1]:
        return value
    inner = value[1:-1]
    return inner.strip(_MARKUP) if _is_one_quotation(inner, value[-1]) else value


def _is_one_quotation(inner: str, closing: str) -> bool:
    """Whether the quotes around ``inner`` belong together, unlike the outer ones of ``"a" and "b"``.

    They do unless the first quote inside closes what the outer one opened. An apostrophe in a word is none.
    """
    first = re.search(rf"(?<!\w){closing}|{closing}(?!\w)", inner)
    return first is None or first.start() == 0 or inner[first.start() - 1].isspace()
