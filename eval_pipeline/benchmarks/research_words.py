"""What a sentence is made of, for the support that research looks for: content words, numbers, dates and quotations.

This is the plain reader: rules of ours for English and Korean, the same wherever it runs. The one with a morphological
analyser is in :mod:`~eval_pipeline.benchmarks.research_kiwi`; what support means is said in
:mod:`~eval_pipeline.benchmarks.research_grounding`.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Protocol

from eval_pipeline.benchmarks import numerals, prose

Term = frozenset[str]
"""One content word in every form that it may be compared in; two words are the same if they share a form."""

LONGEST_SENTENCE = 5000
"""Characters of a sentence that are looked at; no sentence of a person is longer."""

_WORD = re.compile(r"[가-힣]+|[^\W_가-힣]+(?:['’][^\W_가-힣]+)*")
_ENGLISH_STOP_WORDS = """
    a an the and or but nor of in on at to for from by with as is are was were be been being am has have had having do
    does did will would can could may might shall should must it its this that these those there here he she they him
    his her hers their them we our us you your i me my who whom whose which what than then so such also
"""
_KOREAN_STOP_WORDS = """
    것 수 등 및 또는 그리고 그러나 하지만 또한 이 그 저 때 중 더 년 월 일
    있다 있는 있으며 있었다 하다 한다 하는 했다 된다 되는 됐다 되었다 이다 입니다
    있습니다 합니다 했습니다 됩니다 위해 위한 대한 대해 통해 따라 따르면
"""
_STOP_WORDS = frozenset((_ENGLISH_STOP_WORDS + _KOREAN_STOP_WORDS).split())
_PARTICLES = """
    은 는 이 가 을 를 의 에 에서 에게 께서 으로 로 으로서 로서 으로써 로써 와 과 도 만 까지 부터
    에는 에서는 에도 으로는 로는 보다 처럼 마다 이나 이라는 라는 이라고 라고 이며 이고 이다 다
    입니다 이었다 였다 인 에서의 으로의 로의 까지의 만의 이자 들 들은 들이 들을 들의
    했다 하였다 한다 합니다 했습니다 하였습니다 하는 한 할 하여 해 하고 하며 했으며 하였으며
    했고 하였고 하지 됐다 되었다 된다 됩니다 됐습니다 되었습니다 되는 된 될 되어 돼 되고 되며
    됐으며 되었으며 됐고 되었고 되지
"""
_LONGEST_FIRST = tuple(sorted(_PARTICLES.split(), key=lambda particle: (-len(particle), particle)))
_AMBIGUOUS = "이 가 도 만 의 과 로 다 인 들 한 할 해 된 될 돼"
_NEED_TWO = frozenset(_AMBIGUOUS.split())
"""These also end many words that have no particle, so what is left must still look like a word."""


@dataclass(frozen=True, slots=True)
class Content:
    """What a sentence is made of. ``figures`` are its numbers, dates and times as keys; they are among ``terms`` too.

    ``plain`` is the sentence as quotations are looked up in it.
    """

    terms: tuple[Term, ...]
    figures: tuple[str, ...]
    quotes: tuple[str, ...]
    plain: str


class Reader(Hashable, Protocol):
    """Splits blocks into sentences and finds their content words. Implementations are safe to call from threads."""

    name: str
    """Recorded with every score; part of the scorer's version where it is not the plain one."""

    def sentences(self, text: str) -> list[str]:
        """The sentences of one block."""
        ...

    def words(self, text: str) -> Iterable[Term]:
        """The content words of one sentence in order, stop words left out; numbers are spaces in it."""
        ...


class PlainReader:
    """Rules alone, without any model. Korean particles and the commonest endings are taken off."""

    name = "rules"

    def sentences(self, text: str) -> list[str]:
        return prose.sentences(text)

    def words(self, text: str) -> Iterable[Term]:
        for match in _WORD.finditer(text.casefold()):
            word = match[0].replace("’", "'").removesuffix("'s")
            forms = _korean_forms(word) if "가" <= word[0] <= "힣" else frozenset({word})
            if forms.isdisjoint(_STOP_WORDS):
                yield forms


def content(reader: Reader, sentence: str) -> Content:
    """What ``sentence`` is made of; each word, number and date once."""
    sentence = sentence[:LONGEST_SENTENCE]
    figures = dict.fromkeys(_figures(sentence))
    blank = list(sentence)
    for start, end in numerals.spans(sentence):
        blank[start:end] = " " * (end - start)
    words = dict.fromkeys(reader.words("".join(blank)))
    return Content(
        terms=(*words, *(frozenset({figure}) for figure in figures)),
        figures=tuple(figures),
        quotes=tuple(dict.fromkeys(numerals.quotes(sentence))),
        plain=numerals.plain(sentence),
    )


def _figures(sentence: str) -> Iterable[str]:
    """Keys of numbers and dates. A date is its year, which is a number, and its month or day of the year."""
    for date in numerals.dates(sentence):
        if date.year is not None:
            yield numerals.key(Decimal(date.year))
        yield f"{date.month}월" if date.day is None else f"{date.month}월 {date.day}일"
    for number in numerals.numbers(sentence):
        yield numerals.key(number.value)
    yield from numerals.times(sentence)


def implied(figures: Iterable[str]) -> frozenset[str]:
    """``figures`` of a source with what they say besides: the day of a month names the month."""
    return frozenset(figures) | {figure.partition(" ")[0] for figure in figures if figure.endswith("일")}


@lru_cache(maxsize=50_000)
def _korean_forms(word: str) -> Term:
    forms = {word}
    for particle in _LONGEST_FIRST:
        stem = word.removesuffix(particle)
        if stem != word and len(stem) >= (2 if particle in _NEED_TWO else 1):
            forms.add(stem)
            break
    return frozenset(forms)
