"""Markdown prose as blocks and sentences, by plain rules for English and Korean.

Shared by the benchmarks that judge what an answer states. What a sentence is worth, and what its marks mean, belongs to
the benchmark. Pure, and linear in the length of the text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Literal

MARK = "\ue000"
"""Stands for a mark, such as a citation, that a benchmark has taken out of a text.

It belongs to the sentence before it, also behind the full stop. :func:`tidy` leaves no such character in a text.
"""

_UNWANTED = frozenset({"Cf", "Co", "Cs"})
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")
_LINE_ENDS = re.compile(r"\r\n?|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_ATX_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+|$)(.*)")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*")
_RULE = re.compile(r" {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})")
_BOLD_LINE = re.compile(r"(\*\*|__)(?=\S)([^*_]{1,100})(?<=\S)\1:?")
_ITEM = re.compile(r"[ \t]*(?:[-*+•‣◦·∙][ \t]+|\(?\d{1,3}[.)][ \t]+|[가나다라마바사아자차카타파하][.)][ \t]+)")
_DELIMITER_ROW = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*")
_CIRCLED = re.compile(r"(?m)(^[ \t]*)?[①-⑳㉠-㉻][ \t]*")
_ENDS_A_SENTENCE = (".", "!", "?", "。", MARK)
_LONGEST_TITLE = 100

# a full stop, whatever closes after it, and the marks that still belong to the sentence
_STOP = re.compile(
    rf"""(?<![.!?])[.!?]++[*_~`"'”’»」』)\]]*+(?:\s*+{MARK})*+(?=\s|$)|(?<![。！？])[。！？]++[”’」』）]*+(?:\s*+{MARK})*+"""
)
_BEFORE = r"""(?:^|[\s("“'‘\[])"""
_ABBREVIATION = re.compile(_BEFORE + r"(?:[A-Z]|[Dd]r|[Mm]rs?|[Mm]s|[Pp]rof|[Ss]t|vs|cf|ca|approx|e\.g|i\.e)\.$")
_BEFORE_A_NUMBER = re.compile(
    _BEFORE + r"(?:[Nn]os?|[Ff]igs?|[Ee]qs?|[Vv]ol|[Cc]h|[Ss]ec|pp?|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\.$"
)
_LONGEST_ABBREVIATION = 9
_ONLY_A_NUMBER = re.compile(r"\s*\d{1,3}\.\s*")


class Kind(Enum):
    """What a block of a text is."""

    HEADING = "heading"
    PARAGRAPH = "paragraph"
    ITEM = "item"
    ROW = "row"
    CODE = "code"


@dataclass(frozen=True, slots=True)
class Block:
    """A heading, a paragraph, one item of a list, one row of a table, or what stands in a code fence.

    ``text`` is without the marks of its kind. ``level`` is a heading's, from 1; a line that is only bold and the header
    of a table are headings of level 0. ``cells`` are those of a row or a header.
    """

    kind: Kind
    text: str
    level: int = 0
    cells: tuple[str, ...] = ()


def tidy(text: str, form: Literal["NFC", "NFKC"] = "NFKC") -> str:
    """``text`` in a normal form of Unicode, without invisible characters, and with ``\\n`` for every end of a line.

    Zero-width and bidirectional controls, soft hyphens and private characters would make equal words differ; control
    characters and halves of surrogate pairs fit no database.
    """
    text = _CONTROLS.sub("", text)
    if text.isascii():
        return _LINE_ENDS.sub("\n", text)
    unwanted = {ord(character): None for character in set(text) if unicodedata.category(character) in _UNWANTED}
    text = _LINE_ENDS.sub("\n", text.translate(unwanted))
    # NFKC would make a number of a circled one, which only counts the items of a list
    text = _CIRCLED.sub(lambda circled: " " if circled[1] is None else f"{circled[1]}- ", text)
    return unicodedata.normalize(form, text)


def blocks(text: str) -> list[Block]:
    """The blocks of a Markdown text, in order, without what separates them; quotations are read as what is in them."""
    return list(_Blocks(text.split("\n")).read())


def sentences(text: str) -> list[str]:
    """The sentences of one block by plain rules; marks (:data:`MARK`) behind a full stop belong to what is before it.

    Not a full stop are those of abbreviations, initials and ordinals, and one that a small letter follows.
    """
    text = " ".join(text.split())
    found: list[str] = []
    start = 0
    for stop in _STOP.finditer(text):
        if _is_a_stop(text, start, stop):
            found.append(text[start : stop.end()].strip())
            start = stop.end()
    found.append(text[start:].strip())
    return [sentence for sentence in found if sentence]


def _is_a_stop(text: str, start: int, stop: re.Match[str]) -> bool:
    if not stop[0].startswith("."):
        return True
    following = text[stop.end() :][:2].lstrip()
    if following.islower() and following.isascii():
        return False
    until = stop.start() + 1
    if _ONLY_A_NUMBER.fullmatch(text, start, until):
        return False
    before = text[max(start, until - _LONGEST_ABBREVIATION) : until]
    if following[:1].isdigit() and _BEFORE_A_NUMBER.search(before):
        return False
    return _ABBREVIATION.search(before) is None


def _closes(line: str, opening: str) -> bool:
    fence = _FENCE.fullmatch(line)
    return fence is not None and fence[1].startswith(opening) and not fence[2].strip()


class _Blocks:
    """One pass over the lines, with the block that is being read."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._kind = Kind.PARAGRAPH
        self._open: list[str] = []

    def read(self) -> Iterator[Block]:
        fence: str | None = None
        in_table = False
        for number, line in enumerate(self._lines):
            opening = _FENCE.fullmatch(line)
            if fence is not None:
                if _closes(line, fence):
                    fence = None
                    yield from self._close()
                else:
                    self._open.append(line)
                continue
            if opening and not (opening[1].startswith("`") and "`" in opening[2]):
                yield from self._close()
                fence, self._kind, in_table = opening[1], Kind.CODE, False
                continue
            line = _unquoted(line)  # noqa: PLW2901 - a quotation is read as what stands in it
            following = self._lines[number + 1] if number + 1 < len(self._lines) else ""
            if "|" in line and (in_table or line.lstrip().startswith("|") or _is_delimiter_row(following)):
                yield from self._close()
                header = not in_table and _is_delimiter_row(following)
                in_table = True
                if not _is_delimiter_row(line):
                    yield from _row(line, Kind.HEADING if header else Kind.ROW)
                continue
            in_table = False
            yield from self._line(line)
        yield from self._close()

    def _line(self, line: str) -> Iterator[Block]:
        if not line.strip():
            yield from self._close()
        elif heading := _ATX_HEADING.fullmatch(line):
            yield from self._close()
            yield from _heading(_unclosed(heading[2]), len(heading[1]))
        elif (underline := _UNDERLINE.fullmatch(line)) and self._is_a_title():
            (text,), self._open = self._open, []
            yield from _heading(text, 1 if underline[1].startswith("=") else 2)
        elif _RULE.fullmatch(line):
            yield from self._close()
        elif item := _ITEM.match(line):
            yield from self._close()
            self._kind = Kind.ITEM
            self._open.append(line[item.end() :])
        elif (bold := _BOLD_LINE.fullmatch(line.strip())) and not bold[2].endswith(_ENDS_A_SENTENCE):
            yield from self._close()
            yield from _heading(bold[2], 0)
        else:
            self._open.append(line.strip())

    def _is_a_title(self) -> bool:
        """Whether what is open can be a title: a rule drawn right below a sentence does not make one of it."""
        if self._kind is not Kind.PARAGRAPH or len(self._open) != 1:
            return False
        return len(self._open[0]) <= _LONGEST_TITLE and not self._open[0].endswith(_ENDS_A_SENTENCE)

    def _close(self) -> Iterator[Block]:
        joint = "\n" if self._kind is Kind.CODE else " "
        text = joint.join(self._open)
        kind, self._kind, self._open = self._kind, Kind.PARAGRAPH, []
        if text.strip():
            yield Block(kind, text if kind is Kind.CODE else text.strip())


def _unquoted(line: str) -> str:
    rest = line.lstrip()
    return rest.lstrip("> ") if rest.startswith(">") else line


def _unclosed(title: str) -> str:
    """A title without the row of ``#`` that may close it; that of ``C#`` is its own."""
    title = title.rstrip()
    bare = title.rstrip("#")
    return bare if not bare or bare[-1] in " \t" else title


def _heading(text: str, level: int) -> Iterable[Block]:
    text = text.strip()
    return [Block(Kind.HEADING, text, level)] if text else []


def _is_delimiter_row(line: str) -> bool:
    return "-" in line and "|" in line and _DELIMITER_ROW.fullmatch(line) is not None


def cells(line: str) -> list[str]:
    """The cells of one row of a table, without the bars around it; ``\\|`` is a bar inside a cell."""
    parts = re.split(r"(?<!\\)\|", line.strip())
    if parts and not parts[0].strip():
        parts = parts[1:]
    if parts and not parts[-1].strip():
        parts = parts[:-1]
    return [part.strip().replace("\\|", "|") for part in parts]


def _row(line: str, kind: Kind) -> Iterable[Block]:
    parts = tuple(cells(line))
    text = " ; ".join(part for part in parts if part)
    return [Block(kind, text, cells=parts)] if text else []
