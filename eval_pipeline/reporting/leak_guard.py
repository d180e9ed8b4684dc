"""Keeps protected strings out of a report: replaces them in its texts, and refuses finished bytes that still hold one.

Both halves are independent on purpose: the first knows the report's texts, the second only bytes. What is protected is
decided in :mod:`eval_pipeline.reporting.protected`.
"""

from __future__ import annotations

import html
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal, TypeVar
from urllib.parse import unquote

from eval_pipeline.errors import EvalPipelineError
from eval_pipeline.reporting.foreign import changed

T = TypeVar("T")
SHORTEST = 8
"""Characters of the shortest text that is protected; a shorter one would shred ordinary words."""
Kind = Literal["key", "gold answer", "attachment"]
MARKERS: Mapping[Kind, str] = {
    "key": "[key withheld]",
    "gold answer": "[gold answer withheld]",
    "attachment": "[attachment text withheld]",
}
_FEW = 60
"""Up to this many strings are looked for one by one, which is faster than looking at every place of a text."""
_ENCODED = re.compile(r"[\\&%+]")
"""Without one of these signs, a text has no reading but itself."""
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}


class LeakError(EvalPipelineError):
    """A finished report still holds a protected string. It is not published; the results are untouched."""


class LeakGuard:
    """Knows the protected strings of one report; counts what it replaces in :attr:`replaced`."""

    def __init__(self, protected: Mapping[str, Kind]) -> None:
        self._kinds = dict(protected)
        self._meant = {form: text for text in protected for form in _written_forms(text)}
        self._meant |= {text: text for text in protected}
        self._needles = _Needles(self._meant)
        self.replaced: Counter[Kind] = Counter()

    def replace(self, value: T) -> T:
        """``value`` with a marker for every protected string in its foreign texts.

        A text that holds one in a form of its own, such as percent signs, is withheld as a whole.
        """
        return changed(value, self._replaced) if self._kinds else value

    def _replaced(self, text: str) -> str:
        pieces, done = [], 0
        for start, form in self._needles.find(text):
            pieces += [text[done:start], self._marker(form)]
            done = start + len(form)
        clean = "".join((*pieces, text[done:])) if pieces else text
        if _ENCODED.search(clean):
            for reading in _readings(clean):
                for _, form in self._needles.find(reading):
                    return self._marker(form)
        return clean

    def _marker(self, form: str) -> str:
        kind = self._kinds[self._meant[form]]
        self.replaced[kind] += 1
        return MARKERS[kind]

    def leaks(self, finished: bytes) -> dict[str, Kind]:
        """The protected strings that ``finished`` holds, raw, or escaped for HTML, JSON, Markdown or a URL."""
        found: dict[str, Kind] = {}
        for text in _readings(finished.decode("utf-8", "replace")):
            for _, form in self._needles.find(text):
                found[self._meant[form]] = self._kinds[self._meant[form]]
        return found

    def refuse(self, finished: bytes, what: str, own: Callable[[], Mapping[Kind, str]]) -> None:
        """Refuse ``finished``, which ``what`` names, if it still holds a protected string.

        ``own`` gives, for each kind, the text that the report says by itself: a string of that kind in it is no leak.
        It is only asked where something was found.

        Raises:
            LeakError: says how many of what kind, never what.
        """
        found = self.leaks(finished)
        if not found:
            return
        said_anyway = own()
        counts = Counter(kind for needle, kind in found.items() if needle not in said_anyway[kind])
        if counts:
            said = ", ".join(f"{kind}: {count}" for kind, count in sorted(counts.items()))
            hint = "; a password that is also a part of an id has to be changed" if counts["key"] else ""
            raise LeakError(
                f"{what} is not published, since it still holds protected strings ({said}){hint}; "
                "every result is kept, see eval-pipeline status and trace"
            )


class _Needles:
    """Strings to be looked for in a text: from left to right, the longest first, without overlaps."""

    def __init__(self, needles: Iterable[str]) -> None:
        self._all = sorted(needles, key=len, reverse=True)
        self._shortest = min(map(len, self._all), default=1)
        self._by_start: dict[str, list[str]] = {}
        for needle in self._all:
            self._by_start.setdefault(needle[: self._shortest], []).append(needle)
        self._pattern = re.compile("|".join(map(re.escape, self._all))) if 0 < len(self._all) <= _FEW else None

    def find(self, text: str) -> Iterator[tuple[int, str]]:
        """(where it begins, the string) of every occurrence."""
        if self._pattern is not None:
            if any(needle in text for needle in self._all):
                yield from ((match.start(), match[0]) for match in self._pattern.finditer(text))
            return
        width, done = self._shortest, 0
        starts = self._by_start
        for place in [at for at in range(len(text) - width + 1) if text[at : at + width] in starts]:
            if place < done:
                continue
            needle = next((one for one in starts[text[place : place + width]] if text.startswith(one, place)), None)
            if needle is not None:
                yield place, needle
                done = place + len(needle)


def _written_forms(text: str) -> set[str]:
    """``text`` in both normal forms, since a Mac writes Hangul in another than the data do, and as in JSON and HTML."""
    forms = {text, unicodedata.normalize("NFC", text), unicodedata.normalize("NFD", text)}
    for form in list(forms):
        forms |= {json.dumps(form)[1:-1], json.dumps(form, ensure_ascii=False)[1:-1]}
        forms |= {html.escape(form), html.escape(form, quote=False)}
    return forms


def _readings(text: str) -> Iterator[str]:
    """``text`` as it stands and as a browser, a JSON reader or a URL would read it, and each inside the others."""
    seen = {text}
    yield text
    for decoders in (
        (html.unescape,),
        (_unescaped,),
        (unquote,),
        (_plus_unquoted,),
        (_unescaped, html.unescape),
        (html.unescape, _unescaped),
        (_unescaped, _unescaped),
        (_unescaped, html.unescape, unquote),
    ):
        reading = text
        for decode in decoders:
            reading = decode(reading)
        if reading not in seen:
            seen.add(reading)
            yield reading


def _plus_unquoted(text: str) -> str:
    return unquote(text.replace("+", " "))


def _unescaped(text: str) -> str:
    """Without the backslashes of JSON, JavaScript and Markdown; two halves of a character become one."""
    if "\\" not in text:
        return text
    plain = _ESCAPE.sub(_meant, text)
    return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _meant(escape: re.Match[str]) -> str:
    return chr(int(escape[1], 16)) if escape[1] else _CONTROLS.get(escape[2], escape[2])
