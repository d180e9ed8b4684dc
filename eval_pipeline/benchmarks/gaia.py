"""GAIA: questions with one short answer, compared as numbers, lists or texts.

The rule for ``success`` and the benchmark as an object belong here; the answer line is read by
:mod:`~eval_pipeline.benchmarks.final_answer`, the files by :mod:`~eval_pipeline.benchmarks.gaia_data`, and
the leaderboard's verdict comes from :mod:`~eval_pipeline.benchmarks.gaia_official`. Only ``load`` does I/O.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from eval_pipeline.benchmarks.base import DEFAULTS, Answer, AnswerKind, Score, Task
from eval_pipeline.benchmarks.final_answer import extract_final_answer
from eval_pipeline.benchmarks.gaia_data import load_gaia
from eval_pipeline.benchmarks.gaia_official import official_success

__all__ = ["Gaia", "extract_final_answer", "normalize", "official_success", "score"]

Normal: TypeAlias = "float | str | tuple[Normal, ...]"
"""A normalised answer: a number, a text, or a list of such."""

_TOLERANCE = 1e-6
_SIGNS = "$€£¥₩%"
_GROUPED = re.compile(r"[+-]?(?!0)\d{1,3}(?:,\d{3})+(?:\.\d*)?(?:[eE][+-]?\d+)?")
# all of ASCII's, but for a point between two digits and a minus before a digit and behind no letter or digit
_PUNCTUATION = re.compile(r"""(?<!\d)\.|\.(?!\d)|(?<=[^\W_])-|-(?!\d)|[!"#$%&'()*+,/:;<=>?@\[\\\]^_`{|}~]""")


def normalize(text: str) -> Normal:
    """``text`` as GAIA's rule compares it.

    Without currency and per-cent signs, and without commas that group thousands correctly, it may read as a
    number (``nan`` does not). Else, with a ``;`` or at least two commas, it is a list whose elements follow
    this same rule. Else it is a text: lower-cased, without white space and without the punctuation that
    carries no meaning, or as it stands where nothing would be left.
    """
    value = _read(text)
    return tuple(map(normalize, value)) if isinstance(value, list) else value


def score(predicted: str | None, gold: str) -> Score:
    """The verdict on ``predicted``, the value of the answer line, or ``None`` where there was no such line.

    Numbers must be equal or less than 1e-6 apart, lists have the same length and order; different kinds never
    match. ``reason`` does not quote the gold answer, since it stands in reports.
    """
    if predicted is None or not predicted.strip():
        return Score(success=False, format_valid=False, reason="no final answer")
    difference = _difference(predicted, gold)
    return Score(success=difference is None, format_valid=True, reason=difference or "matches the gold answer")


class Gaia:
    """GAIA, its layout of files and its rule; see :class:`eval_pipeline.benchmarks.base.Benchmark`."""

    name: str = "gaia"
    answers: AnswerKind = "line"
    scorer_version: str = "gaia-1"
    format_block: str = ""
    thresholds: Mapping[str, float] = DEFAULTS
    tools: tuple[str, ...] = ()
    needs_evidence: bool = False
    grounding_table: str | None = None

    def load(self, data_dir: Path) -> list[Task]:
        return load_gaia(data_dir)

    def score(self, task: Task, answer: Answer, thresholds: Mapping[str, float] = DEFAULTS) -> Score:
        official = official_success(answer.final, task.gold)
        return replace(score(answer.final, task.gold), metrics={"official_success": float(official)})


def _read(text: str) -> float | str | list[str]:
    """``text`` as a number, a normalised text, or the elements of a list, which are not read yet."""
    text = unicodedata.normalize("NFC", text).strip()
    number = _number(text)
    if number is not None:
        return number
    if ";" in text:
        return text.split(";")
    if text.count(",") >= 2:
        return text.split(",")
    return _PUNCTUATION.sub("", "".join(text.lower().split())) or text


def _number(text: str) -> float | None:
    bare = text
    for sign in _SIGNS:
        bare = bare.replace(sign, "")
    bare = bare.strip()
    if "," in bare:
        if not _GROUPED.fullmatch(bare):
            return None
        bare = bare.replace(",", "")
    try:
        number = float(bare)
    except ValueError:
        return None
    return None if math.isnan(number) else number


def _difference(predicted: str, gold: str) -> str | None:
    """In what ``predicted`` differs from ``gold``, without quoting either; ``None`` where it does not.

    Elements are read only where the lists are equally long: a huge list costs no more than a huge text.
    """
    given, expected = _read(predicted), _read(gold)
    if isinstance(given, list) and isinstance(expected, list):
        if len(given) != len(expected):
            return f"a list of {len(given)} where the gold answer has {len(expected)}"
        differences = map(_difference, given, expected)
        return next((f"element {place}: {why}" for place, why in enumerate(differences, 1) if why), None)
    if _kind(given) != _kind(expected):
        return f"a {_kind(given)} where the gold answer is a {_kind(expected)}"
    return None if _equal(given, expected) else f"another {_kind(expected)} than the gold answer"


def _equal(given: object, expected: object) -> bool:
    if isinstance(given, float) and isinstance(expected, float):
        # two infinite numbers are equal though their difference is not a number
        return given == expected or abs(given - expected) < _TOLERANCE
    return given == expected


def _kind(value: float | str | list[str]) -> str:
    return {float: "number", str: "text", list: "list"}[type(value)]
