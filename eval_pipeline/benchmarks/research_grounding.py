"""The rule of research: which claims their citations support, and the figures over them. No I/O, no model.

A claim is supported by a text if the text has all its numbers, dates and quotations and most of its content words,
within three sentences that follow each other. What this cannot see: negation, paraphrase, and a wrong relation between
right words; so the figure is called ``grounding_f1_lexical``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from eval_pipeline.benchmarks import prose
from eval_pipeline.benchmarks.research_answer import Claim, Read, Target, read_answer
from eval_pipeline.benchmarks.research_evidence import Document, Store
from eval_pipeline.benchmarks.research_words import Content, Reader, content, implied

OVERLAP = 0.6
"""The share of a claim's content words that a text must have, by default."""
WINDOW = 3
"""Sentences that are looked at together."""
MOST_CLAIMS = 2_000
MOST_PAIRS = 20_000
"""Claims of an answer, and pairs of a claim and a document that it cites, that are judged."""


@dataclass(frozen=True, slots=True)
class Citation:
    """One citation of a claim: what it names, the document that this is, and whether it counts as right."""

    target: Target
    document: Document | None
    counts: bool


@dataclass(frozen=True, slots=True)
class Judged:
    """A claim with its citations; ``missing`` says for people what the cited texts lack, empty where supported."""

    claim: Claim
    citations: tuple[Citation, ...]
    supported: bool
    missing: str


@dataclass(frozen=True, slots=True)
class Grounding:
    """Every claim judged, and the documents of the run.

    Shares are 0 to 1, and ``None`` where there is nothing to divide by.
    """

    claims: tuple[Judged, ...]
    documents: int
    stray: int

    @property
    def citations(self) -> tuple[Citation, ...]:
        return tuple(citation for judged in self.claims for citation in judged.citations)

    @property
    def valid(self) -> int:
        """Citations that name a document which the run has seen."""
        return sum(citation.document is not None for citation in self.citations)

    @property
    def cited(self) -> int:
        """Claims with a citation."""
        return sum(bool(judged.citations) for judged in self.claims)

    @property
    def supported(self) -> int:
        return sum(judged.supported for judged in self.claims)

    @property
    def precision(self) -> float | None:
        """Right citations of all; those of no document count against it."""
        return _share(sum(citation.counts for citation in self.citations), len(self.citations))

    @property
    def recall(self) -> float | None:
        """Claims that the documents they cite support together, of all."""
        return _share(self.supported, len(self.claims))

    @property
    def f1(self) -> float:
        """The harmonic mean of both; 0 where there is no claim or no citation."""
        precision, recall = self.precision or 0.0, self.recall or 0.0
        return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


class TooLong(Exception):  # noqa: N818 - it is a verdict on the answer, not a fault
    """The answer has more claims or citations than are judged; the message says which."""


def ground(answer: str, store: Store, reader: Reader, overlap: float = OVERLAP) -> Grounding:
    """Judge every claim of ``answer`` by the documents of ``store`` that it cites.

    ``[n]`` is what the answer's own list of references says, and without such a list the n-th document of the run.

    Raises:
        TooLong: more than :data:`MOST_CLAIMS` claims or :data:`MOST_PAIRS` citations.
    """
    read = read_answer(answer, reader, MOST_CLAIMS)
    if len(read.claims) > MOST_CLAIMS:
        raise TooLong(f"more than {MOST_CLAIMS} claims")
    if sum(len(claim.targets) for claim in read.claims) > MOST_PAIRS:
        raise TooLong(f"more than {MOST_PAIRS} citations")
    judged = tuple(_judged(claim, read, store, reader, overlap) for claim in read.claims)
    return Grounding(judged, len(store.documents), read.stray)


def _judged(claim: Claim, read: Read, store: Store, reader: Reader, overlap: float) -> Judged:
    named: dict[object, tuple[Target, Document | None]] = {}
    for target in claim.targets:
        document = _resolved(target, read.references, store)
        # the same document cited twice, by number and by id, is one citation
        named.setdefault(target if document is None else ("document", document.number), (target, document))
    cited = [document for _, document in named.values() if document is not None]
    needed = _Needed(claim.content, overlap)
    found = {document.number: needed.best_window(_index(document.passages, reader)) for document in cited}
    joint = needed.met(_joined(found.values()))
    citations = []
    for target, document in named.values():
        counts = False
        if document is not None and joint:
            others = _joined(window for number, window in found.items() if number != document.number)
            counts = needed.met(found[document.number]) or not needed.met(others)
        citations.append(Citation(target, document, counts))
    return Judged(claim, tuple(citations), joint, "" if joint else _missing(citations, needed, _joined(found.values())))


def _resolved(target: Target, references: dict[int, Target] | None, store: Store) -> Document | None:
    if isinstance(target, int):
        if references is None:
            return store.numbered(target)
        target = references.get(target, "")
    return store.named(target) if isinstance(target, str) else None


@dataclass(frozen=True, slots=True)
class _Window:
    """What of a claim stands in a text: positions of its terms, figures and quotations."""

    terms: frozenset[int] = frozenset()
    figures: frozenset[int] = frozenset()
    quotes: frozenset[int] = frozenset()


def _joined(windows: Iterable[_Window]) -> _Window:
    parts = list(windows)
    return _Window(
        frozenset().union(*(part.terms for part in parts)),
        frozenset().union(*(part.figures for part in parts)),
        frozenset().union(*(part.quotes for part in parts)),
    )


class _Index:
    """The sentences of a document, and in which of them each word and figure stands."""

    def __init__(self, sentences: Sequence[Content]) -> None:
        self.sentences = sentences
        self.words: dict[str, list[int]] = defaultdict(list)
        self.figures: dict[str, list[int]] = defaultdict(list)
        for place, sentence in enumerate(sentences):
            figures = implied(sentence.figures)
            for form in {form for term in sentence.terms for form in term} | figures:
                self.words[form].append(place)
            for figure in figures:
                self.figures[figure].append(place)

    def text_from(self, place: int) -> str:
        return " ".join(sentence.plain for sentence in self.sentences[place : place + WINDOW])


class _Needed:
    """What a claim needs of a text."""

    def __init__(self, claim: Content, overlap: float) -> None:
        self.claim = claim
        self._overlap = overlap

    def met(self, window: _Window) -> bool:
        if len(window.figures) < len(self.claim.figures) or len(window.quotes) < len(self.claim.quotes):
            return False
        return len(window.terms) >= self._overlap * len(self.claim.terms) - 1e-9

    def best_window(self, index: _Index) -> _Window:
        """What the best window has of the claim: one that is enough, else the fullest; the first of equals."""
        terms = _by_window({place for form in term for place in index.words.get(form, ())} for term in self.claim.terms)
        figures = _by_window(index.figures.get(figure, ()) for figure in self.claim.figures)
        quotes = _by_window_of(self.claim.quotes, index)
        best, best_rank = _Window(), (False, 0, 0)
        for place in sorted({*terms, *quotes}):
            window = _Window(
                frozenset(terms.get(place, ())), frozenset(figures.get(place, ())), frozenset(quotes.get(place, ()))
            )
            rank = (self.met(window), len(window.figures) + len(window.quotes), len(window.terms))
            if rank > best_rank:
                best, best_rank = window, rank
        return best


def _by_window(places: Iterable[Iterable[int]]) -> dict[int, set[int]]:
    """For every window, by its first sentence, the positions of what stands in it; ``places`` are sentences."""
    found: dict[int, set[int]] = defaultdict(set)
    for number, sentences in enumerate(places):
        for sentence in sentences:
            for first in range(max(0, sentence - WINDOW + 1), sentence + 1):
                found[first].add(number)
    return found


def _by_window_of(quotes: Sequence[str], index: _Index) -> dict[int, set[int]]:
    """The same for quotations, which may go over the end of a sentence."""
    found: dict[int, set[int]] = defaultdict(set)
    if quotes:
        for place in range(len(index.sentences)):
            text = index.text_from(place)
            found[place] |= {number for number, quote in enumerate(quotes) if quote in text}
    return found


@lru_cache(maxsize=512)
def _index(passages: tuple[str, ...], reader: Reader) -> _Index:
    return _Index([content(reader, sentence) for passage in passages for sentence in _sentences(passage, reader)])


def _sentences(passage: str, reader: Reader) -> Iterable[str]:
    for block in prose.blocks(passage):
        if block.kind in (prose.Kind.ROW, prose.Kind.HEADING):
            yield block.text
        else:
            for line in block.text.split("\n"):
                yield from reader.sentences(line)


def _missing(citations: Sequence[Citation], needed: _Needed, window: _Window) -> str:
    if not citations:
        return "no citation"
    unknown = [citation.target for citation in citations if citation.document is None]
    if len(unknown) == len(citations):
        return f"cites {_shown(unknown[0])}, which no tool returned"
    claim = needed.claim
    lacking = [figure for place, figure in enumerate(claim.figures) if place not in window.figures]
    quotes = [quote for place, quote in enumerate(claim.quotes) if place not in window.quotes]
    lacking += [f"the quotation {quote[:80]!r}" for quote in quotes]
    if lacking:
        return f"{lacking[0]} is not in what it cites"
    return f"{len(window.terms)} of its {len(claim.terms)} words are in what it cites"


def _shown(target: Target) -> str:
    return f"[{target}]" if isinstance(target, int) else target[:80]


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
