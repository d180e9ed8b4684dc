"""GAIA's own verdict, for comparison with published figures; it never decides ``success``.

Written from the description of ``question_scorer`` in the leaderboard's Space, with its quirks: the gold
answer alone decides the kind, no tolerance, no Unicode normalisation, an unreadable number is infinite.
"""

from __future__ import annotations

import math
import re
import string

_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)
_SEPARATOR = re.compile("[,;]")


def official_success(predicted: str | None, gold: str) -> bool:
    """What the leaderboard's scorer says of ``predicted``; no prediction becomes the text ``None`` there."""
    given = "None" if predicted is None else predicted
    number = _float(gold)
    if number is not None:
        return _as_number(given) == number
    if not _SEPARATOR.search(gold):
        return _squeezed(given).translate(_WITHOUT_PUNCTUATION) == _squeezed(gold).translate(_WITHOUT_PUNCTUATION)
    expected, elements = _SEPARATOR.split(gold), _SEPARATOR.split(given)
    return len(expected) == len(elements) and all(map(_same_element, elements, expected))


def _same_element(given: str, gold: str) -> bool:
    number = _float(gold)
    return _squeezed(given) == _squeezed(gold) if number is None else _as_number(given) == number


def _float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _as_number(text: str) -> float:
    number = _float(re.sub("[$%,]", "", text))
    return math.inf if number is None else number


def _squeezed(text: str) -> str:
    return re.sub(r"\s", "", text).lower()
