"""An answer about C++ code: the units that can state a fact, the names in its code marks, and the locations it gives.

Whether a name or a location is there is known to :mod:`~eval_pipeline.benchmarks.cppx_source`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from eval_pipeline.benchmarks import prose
from eval_pipeline.benchmarks.fences import fenced_blocks, unfenced
from eval_pipeline.benchmarks.prose import Kind

LONGEST_UNIT = 100
"""Words of a sentence or item that can state a fact: one dump of keywords would state everything."""

_KEYWORDS = """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class co_await
    co_return co_yield compl concept const const_cast consteval constexpr constinit continue decltype default delete do
    double dynamic_cast else enum explicit export extern false final float for friend goto if import inline int long
    module mutable namespace new noexcept not not_eq nullptr operator or or_eq override private protected public
    register reinterpret_cast requires return short signed sizeof static static_assert static_cast struct switch
    template this thread_local throw true try typedef typeid typename union unsigned using virtual void volatile
    wchar_t while xor xor_eq NULL nullptr_t size_t ssize_t ptrdiff_t intptr_t uintptr_t int8_t int16_t int32_t int64_t
    uint8_t uint16_t uint32_t uint64_t
"""
_IGNORED = frozenset(_KEYWORDS.split())
_STD = "std"

_TEXT_LABELS = frozenset({"", "md", "markdown", "text", "txt"})

_SPAN = re.compile(r"(?<!`)(`{1,3})(?!`)([^`]{1,400})\1(?!`)")
_LITERAL = re.compile(r"\"(?:[^\"\\\n]|\\.){0,400}\"|'(?:[^'\\\n]|\\.){1,8}'|//[^\n]*|#[ \t]*\w+|<[\w./]+>(?=\s*$)")
_CHAIN = re.compile(r"(?<![\w#])~?[A-Za-z_]\w*+(?:\s*(?:::|->|\.)\s*~?[A-Za-z_]\w*+)*+", re.ASCII)
_JOINT = re.compile(r"\s*(::|->|\.)\s*")

_FILE = (
    r"(?<![A-Za-z0-9_./+-])(?P<file>[A-Za-z0-9_./+-]{0,200}?[A-Za-z0-9_]"
    r"(?:\.(?:cpp|cxx|cc|c|hpp|hxx|hh|h|inl|ipp|tpp|cmake|txt|md))(?![A-Za-z0-9_]))"
)
_LINES = r"L?(?P<first>\d{1,7})(?:\s?[-–—~]\s?L?(?P<last>\d{1,7}))?"
_LOCATIONS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{_FILE}(?::|#){_LINES}",
        rf"{_FILE}(?:의)?,?\s{{0,2}}\(?(?:at\s|on\s)?lines?\s{_LINES}",
        rf"{_FILE}(?:의|에서)?,?\s{{0,2}}\(?{_LINES}\s?(?:번째\s?)?(?:행|줄|라인)",
        rf"\blines?\s{_LINES}\s(?:of|in)\s(?:the\sfile\s)?{_FILE}",
    )
)
_PATH = re.compile(_FILE + r"(?:[:#]L?[\d:–—~L-]*)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Location:
    """Lines of a file that an answer points to, with the names in code marks of the same sentence."""

    file: str
    first: int
    last: int
    beside: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Read:
    """An answer.

    ``units`` are what can state a fact, normalised; ``names`` the distinct names in code marks, and ``qualified`` those
    with ``::``, as their parts.
    """

    units: tuple[str, ...]
    names: tuple[str, ...]
    qualified: tuple[tuple[str, ...], ...]
    locations: tuple[Location, ...]


def read_answer(text: str, window: int = 1) -> Read:
    """Read an answer; ``window`` is how many sentences that follow each other make one unit."""
    units: list[str] = []
    chains: dict[tuple[str, ...], None] = {}
    scoped: dict[tuple[str, ...], None] = {}
    locations: list[Location] = []
    for block in prose.blocks(_unwrapped(prose.tidy(text, "NFC"))):
        if block.kind is Kind.CODE:
            _gather(block.text, chains, scoped)
            continue
        sentences = [block.text] if block.kind is Kind.ROW else prose.sentences(block.text)
        for sentence in sentences:
            own: dict[tuple[str, ...], None] = {}
            for span in _SPAN.finditer(sentence):
                _gather(span[2], own, scoped)
            chains |= own
            locations += _locations(
                sentence.replace("`", ""), tuple(dict.fromkeys(name for chain in own for name in chain))
            )
        if block.kind is not Kind.HEADING:
            units += _units(sentences, window, whole=block.kind is not Kind.PARAGRAPH)
    names = dict.fromkeys(name for chain in chains for name in chain)
    return Read(tuple(units), tuple(names), tuple(scoped), tuple(locations))


def normal(text: str) -> str:
    """``text`` as the terms of facts are compared: case-folded, without code marks and bold, white space collapsed."""
    return " ".join(text.casefold().replace("`", "").replace("**", "").split())


def _units(sentences: list[str], window: int, whole: bool) -> Iterator[str]:
    parts = [normal(sentence) for sentence in sentences]
    if whole and sum(len(part.split()) for part in parts) <= LONGEST_UNIT:
        yield " ".join(parts)
        return
    # windows at the end are shorter, and hold nothing that the ones before do not
    for place in range(max(1, len(parts) - window + 1)):
        unit = " ".join(parts[place : place + window])
        if len(unit.split()) <= LONGEST_UNIT * window:
            yield unit


def _gather(code: str, chains: dict[tuple[str, ...], None], scoped: dict[tuple[str, ...], None]) -> None:
    """Add the names in a piece of code to ``chains``, and those joined by ``::`` to ``scoped`` too."""
    code = _PATH.sub(" ", _LITERAL.sub(" ", code))
    for match in _CHAIN.finditer(code):
        pieces = _JOINT.split(match[0])
        names, joints = pieces[::2], pieces[1::2]
        if names[0] == _STD:
            continue
        chain = tuple(name.removeprefix("~") for name in names if name not in _IGNORED)
        if chain:
            chains[chain] = None
        if len(names) > 1 and set(joints) == {"::"} and len(chain) == len(names):
            scoped[tuple(names)] = None


def _locations(sentence: str, beside: tuple[str, ...]) -> list[Location]:
    found: list[Location] = []

    def taken(match: re.Match[str]) -> str:
        first = int(match["first"])
        found.append(Location(match["file"], first, int(match["last"] or first), beside))
        return " "

    for pattern in _LOCATIONS:
        # what one form has read is gone for the next
        sentence = pattern.sub(taken, sentence)
    return found


def _unwrapped(text: str) -> str:
    """The text in the one fence that the whole of ``text`` is, unless that is a fence of code."""
    found = fenced_blocks(text)
    return unfenced(text) if len(found) == 1 and found[0].label in _TEXT_LABELS else text
