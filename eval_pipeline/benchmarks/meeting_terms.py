"""Whether a term occurs in a line of minutes, and which names a line lists; Korean and English.

Texts are compared in NFC, case-folded, without invisible characters. What follows from an occurrence belongs to
:mod:`~eval_pipeline.benchmarks.meeting_match`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cached_property, lru_cache

from eval_pipeline.benchmarks.research_kiwi import KiwiReader
from eval_pipeline.benchmarks.research_words import LONGEST_SENTENCE
from eval_pipeline.benchmarks.visible import visible

_HANGUL = re.compile(r"[가-힣]")
# no letter or digit of another script than Hangul: particles follow a foreign word directly
_EDGE = r"[^\W_가-힣]"
# 미승인 is no 승인; only at the start of a word, since 개발비승인 is one
_NO_NEGATION = r"(?<!\b미)(?<!\b불)(?<!\b비)(?<!\b부)(?<!\b무)"

# longer ones first where one ends in another
_TITLES_KO = (
    "선생|연구원|매니저|본부장|센터장|그룹장|파트장|부위원장|위원장|부사장|부회장|사무국장|과장|부장|차장|대리|사원|주임"
    "|책임|선임|수석|팀장|실장|국장|처장|원장|소장|대표이사|이사|상무|전무|사장|대표|회장|교수|박사|변호사|위원|간사|총무|감사"
)
_TITLE_BEHIND = re.compile(rf"(?<=[가-힣]{{2}})[ ]?(?:(?:{_TITLES_KO})(?:님)?|님|씨)\Z")
_TITLE_BEFORE = re.compile(r"\A(?:mr|mrs|ms|miss|dr|prof|professor|sir|madam)\b\.?[ ]*")
_NAME_AND_JOB = re.compile(r"([가-힣]{2,4}) [가-힣]{2,10}")
_BRACKETS = re.compile(r"\([^()]*\)|\[[^\[\]]*\]")
_BETWEEN_NAMES = re.compile(r"[,;/·•、|\n]|[ ]and[ ]|[ ]&[ ]|[ ]및[ ]|(?<=[가-힣]{2})[와과][ ]|[ ][-–—][ ]")
_LABEL = re.compile(r"\A[^:：,;|]{1,40}[:：]")
_MARKUP = " \t*_`#>-–—•·.,;:!?\"'“”‘’()[]"

SLOT_LABEL = re.compile(
    r"(?:\b(?:owners?|assignees?|assigned to|responsible|who|due(?: date)?|deadline|by|when)"
    r"|(?<![가-힣])(?:담당자?|책임자?|기한|마감(?:일|기한)?))[ ]?[*_]*[ ]?[:：]"
)
"""At the start of a line that belongs to the item above it: who does it, or until when."""
_ABSENT = re.compile(r"\b(?:absent|absentees|apologies|regrets|not present)\b|불참|결석|부재")


def folded(text: str) -> str:
    """``text`` as it is compared: NFC, case-folded, one space for white space, nothing invisible."""
    return " ".join(unicodedata.normalize("NFC", visible(text)).casefold().split())


class Term:
    """A word or phrase that a line may have.

    Words of other scripts than Hangul occur whole, or from the beginning where the term ends in ``*``. Hangul occurs
    anywhere in a word, since particles and endings follow it and compounds have it inside, but not behind a negating
    prefix; a single syllable only as a word of its own. Spaces of a Korean term may be left out in the line, with
    ``spaced`` (for names) also be added.
    """

    def __init__(self, text: str, *, spaced: bool = False) -> None:
        self.text = text
        self._folded = folded(text)
        self._pattern = _pattern(self._folded, spaced=spaced)
        # a pattern that begins with a look behind is tried at every place, plain text is looked up much faster
        first_word = self._folded.split()[0].removesuffix("*")
        self._needle = self._folded[0] if spaced else first_word

    def occurs(self, line: Line) -> bool:
        """Whether ``line`` has it, as it stands or in another form of the same words."""
        if self._needle in line.text and self._pattern.search(line.text):
            return True
        return self._stems_occur(line)

    def _stems_occur(self, line: Line) -> bool:
        own = _term_stems(self._folded, line.reader)
        if not own or not _HANGUL.search(line.text):
            return False
        stems = line.stems
        if not any(stems[start : start + len(own)] == own for start in range(len(stems) - len(own) + 1)):
            return False
        # the analyser passes over a negating prefix, which the plain rule sees
        nouns = (stem for word in own for stem in word if not stem.endswith("다"))
        return all(_pattern(noun, spaced=False).search(line.text) for noun in nouns)


class Line:
    """One item of the minutes as terms look at it; ``reader`` finds the basic forms of words, if there is one."""

    def __init__(self, text: str, reader: KiwiReader | None = None) -> None:
        self.text = folded(text)
        self.reader = reader

    @cached_property
    def stems(self) -> tuple[frozenset[str], ...]:
        return tuple(self.reader.words(self.text)) if self.reader and len(self.text) <= LONGEST_SENTENCE else ()


@lru_cache(maxsize=2000)
def _term_stems(term: str, reader: KiwiReader | None) -> tuple[frozenset[str], ...]:
    """The Korean words of a term in their basic form; none for a term of one syllable or without Hangul."""
    return tuple(reader.words(term)) if reader and len(_HANGUL.findall(term)) > 1 else ()


@lru_cache(maxsize=5000)
def _pattern(term: str, *, spaced: bool) -> re.Pattern[str]:
    prefix = term.endswith("*") and len(term) > 1
    term = term.removesuffix("*") if prefix else term
    korean = _HANGUL.search(term) is not None
    joint = "[ ]?" if korean else "[ ]"
    if korean and spaced:
        body = joint.join(re.escape(character) for character in term if character != " ")
    else:
        body = joint.join(map(re.escape, term.split()))
    if len(term) == 1 and korean:
        return re.compile(rf"(?<!\w){body}(?!\w)")
    return re.compile(_before(term[0]) + body + ("" if prefix else _behind(term[-1])))


def _before(character: str) -> str:
    if _HANGUL.match(character):
        return _NO_NEGATION
    if not character.isalnum():
        return ""
    # 30 is not part of 1.30 or 1,30
    return rf"(?<!{_EDGE})" + (r"(?<!\d[.,])" if character.isdigit() else "")


def _behind(character: str) -> str:
    if _HANGUL.match(character) or not character.isalnum():
        return ""
    return rf"(?!{_EDGE})" + (r"(?![.,]\d)" if character.isdigit() else "")


def name_key(text: str) -> str:
    """A name as it is compared: without title, brackets, markup and white space."""
    name = _BRACKETS.sub(" ", folded(text)).strip(_MARKUP)
    name = _TITLE_BEFORE.sub("", name)
    return "".join(_TITLE_BEHIND.sub("", name).split())


def names_of(text: str) -> frozenset[str]:
    """The names that ``text`` lists, as keys: a line with a label before them, or nothing but names.

    Those of the absent are none, nor are those in brackets or on a line that names an owner.
    """
    return frozenset(filter(None, map(name_key, _name_parts(folded(text)))))


def _name_parts(line: str) -> Iterator[str]:
    line = _BRACKETS.sub(" ", line).strip(_MARKUP.replace(":", ""))
    if len(line) > LONGEST_SENTENCE or SLOT_LABEL.search(line):
        return
    absent = _ABSENT.search(line)
    line = _LABEL.sub("", line[: absent.start()] if absent else line)
    for part in _BETWEEN_NAMES.split(line):
        if not _LABEL.match(part.strip()):
            yield part
            # a Korean name may be followed by any job, such as 김철수 사서
            if job := _NAME_AND_JOB.fullmatch(part.strip(_MARKUP)):
                yield job[1]
