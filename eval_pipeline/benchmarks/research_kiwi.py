"""Korean sentences and words by the morphological analyser kiwipiepy, an extra that needs no network.

Where it is installed, research is scored with it, under a scorer version that says so: its verdicts may differ from
those of the plain reader. Everything but Hangul is read by the plain rules.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import threading
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

from eval_pipeline.benchmarks.research_words import LONGEST_SENTENCE, PlainReader, Reader, Term

if TYPE_CHECKING:
    from kiwipiepy import Kiwi, Token

_HANGUL = re.compile(r"[가-힣]")
_LONG = LONGEST_SENTENCE
"""Characters of a block past which plain rules split it: the analyser slows down with the length of its text."""
# words that say little: copula and auxiliaries, bound nouns, pointers
_LIGHT_WORDS = "이다 하다 되다 있다 위하다 대하다 통하다 따르다 것 수 등 및 때 중 년 월 일 이 그 저"
_LIGHT = frozenset(_LIGHT_WORDS.split())


class KiwiReader:
    """Morphemes tagged as nouns, verbs and adjectives are the words of Korean; what has no Hangul is read plainly."""

    def __init__(self) -> None:
        self.name = f"kiwi-{importlib.metadata.version('kiwipiepy')}"
        self._plain = PlainReader()
        self._lock = threading.Lock()

    @cached_property
    def _kiwi(self) -> Kiwi:
        try:
            from kiwipiepy import Kiwi  # noqa: PLC0415 - loading takes seconds and half a gigabyte

            return Kiwi(num_workers=1)
        except Exception as error:
            raise ValueError(f"kiwipiepy cannot be loaded ({error}); mend or uninstall it") from error

    def sentences(self, text: str) -> list[str]:
        if len(text) > _LONG or not _HANGUL.search(text):
            return self._plain.sentences(text)
        with self._lock:
            starts = [sentence.start for sentence in self._kiwi.split_into_sents(text)]
        # by where they start, so that no mark between two of them is lost
        bounds = [0, *starts[1:], len(text)]
        parts = (text[start:end].strip() for start, end in pairwise(bounds))
        return [part for part in parts if part]

    def words(self, text: str) -> Iterable[Term]:
        if not _HANGUL.search(text):
            yield from self._plain.words(text)
            return
        with self._lock:
            tokens = self._kiwi.tokenize(text)
        for run in _runs(token for token in tokens if _HANGUL.search(token.form)):
            # a compound is split or not, as the sentence around it has it
            compound = "".join(token.form for token in run)
            for token in run:
                form = f"{token.form}다" if token.tag.startswith("V") else token.form
                if form not in _LIGHT:
                    yield frozenset({form, compound} if len(run) > 1 else {form})
        yield from self._plain.words(_HANGUL.sub(" ", text))


def _runs(tokens: Iterable[Token]) -> Iterator[list[Token]]:
    """Nouns that stand side by side without a space, together; verbs and adjectives alone."""
    run: list[Token] = []
    for token in tokens:
        joined = run and token.tag.startswith("N") and token.start == run[-1].start + run[-1].len
        if run and not joined:
            yield run
            run = []
        if token.tag.startswith("V"):
            yield [token]
        elif token.tag.startswith("N"):
            run.append(token)
    if run:
        yield run


@lru_cache(maxsize=1)
def best_reader() -> Reader:
    """The reader with the analyser where it is installed, else the plain one."""
    installed = all(importlib.util.find_spec(name) is not None for name in ("kiwipiepy", "kiwipiepy_model"))
    return KiwiReader() if installed else PlainReader()
