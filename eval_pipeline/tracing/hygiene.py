"""Cleaning and masking of what goes into a row, in this order and before anything is cut; counts the repairs.

What is refused by PostgreSQL is known to :mod:`eval_pipeline.tracing.text`, what is secret to
:mod:`eval_pipeline.tracing.masking`.
"""

from __future__ import annotations

import json

from eval_pipeline.jsontypes import JsonValue
from eval_pipeline.teams.spec import ROLES
from eval_pipeline.tracing.masking import Masker
from eval_pipeline.tracing.rows import CONTENT_KEPT, NAME_KEPT, Cut, CutJson
from eval_pipeline.tracing.text import clean, clean_json, parse_json

SELECTOR = "selector"
TEAM = "team"
UNNAMED = "unnamed"
"""Stands for a source or tool whose name is empty."""
RAW = "_raw"
"""The only key of tool arguments that are not a JSON object; its value is their text."""

_OWN_NAMES = frozenset({*ROLES, SELECTOR, TEAM, "user"})


class TextHygiene:
    """Cleans and masks what goes into rows, and counts the repairs."""

    def __init__(self, masker: Masker) -> None:
        self._masker = masker
        self.repairs = 0

    def text(self, text: str) -> str:
        cleaned, repairs = clean(text)
        self.repairs += repairs
        return self._masker.text(cleaned)

    def json(self, value: object) -> JsonValue:
        cleaned, repairs = clean_json(value)
        self.repairs += repairs
        return self._masker.value(cleaned)

    def name(self, text: str) -> str:
        """A name, on one line and short enough for an index. Our own names are never masked."""
        if text in _OWN_NAMES:
            return text
        return " ".join(self.text(text).split())[:NAME_KEPT] or UNNAMED

    def arguments(self, text: str) -> CutJson:
        """Tool arguments: the JSON object that ``text`` is, else the text itself under ``_raw``."""
        try:
            parsed = parse_json(text)
        except ValueError:
            return self._raw(self.text(text))
        value = self.json(parsed)
        if isinstance(value, dict):
            return CutJson.of(value)
        return self._raw(json.dumps(value, ensure_ascii=False))

    @staticmethod
    def _raw(text: str) -> CutJson:
        cut = Cut.of(text, CONTENT_KEPT)
        length = None if cut.sha256 is None else cut.length
        return CutJson({RAW: cut.kept}, length, cut.sha256, cut.texts)
