"""``search_documents`` and ``fetch_document``: a closed corpus of text files, searched by BM25 of our own.

The corpus is the folder with a task's materials. Results show each document under its id, as ``[doc:ID] title``, which
is what an answer cites. What a citation is worth belongs to the benchmark.
"""

from __future__ import annotations

import heapq
import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath

from eval_pipeline.tools.errors import ToolError

SUFFIXES = (".txt", ".md")
NO_MATCH = "No document matches"
"""How the result of a search without a hit begins; such a result is no evidence."""
MOST_RESULTS = 5
PAGE = 12_000
"""Characters of one page of a document, at most."""

_LONGEST_QUERY = 1000
_SNIPPET = 600
_K1, _B = 1.2, 0.75
_ID = re.compile(r"\w[\w.-]*(?:/\w[\w.-]*)*")
_TOKEN = re.compile(r"[가-힣]+|[^\W_가-힣]+")
_FIELD = re.compile(r"(title|url|date)[ \t]*:[ \t]*(.*)", re.IGNORECASE)
_LOOKS_LIKE_A_HEADER = re.compile(r"^(?=\[doc:)", re.MULTILINE | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Document:
    """One file of the corpus. ``url`` and ``date`` are empty where its head does not say them."""

    doc_id: str
    title: str
    url: str
    date: str
    text: str

    @property
    def header(self) -> str:
        lines = [f"[doc:{self.doc_id}] {self.title}"]
        if self.url:
            lines.append(f"url: {self.url}")
        return "\n".join([*lines, "", *([f"date: {self.date}"] if self.date else [])])


def document_id(name: str) -> str | None:
    """The id of the file called ``name``, its path without the suffix; ``None`` if it cannot be cited by that.

    An id is of letters, digits, ``_``, ``-`` and ``.``, with ``/`` between folders.
    """
    path = PurePosixPath(unicodedata.normalize("NFC", name))
    if path.suffix.lower() not in SUFFIXES:
        return None
    doc_id = str(path.with_suffix(""))
    return doc_id if _ID.fullmatch(doc_id) else None


def search(query: str, folder: Path | None) -> str:
    """The best documents for ``query``, each with its id, title, URL and the passage that fits best.

    Raises:
        ToolError: there is no corpus, or no word in the query.
    """
    found = _opened(folder)
    shown = " ".join(query[:_LONGEST_QUERY].split())
    words = set(_tokens(shown))
    if not words:
        raise ToolError("the query has no word to search for; write some words of what you look for")
    hits = found.ranked(words)
    if not hits:
        return f"{NO_MATCH} '{shown}' (of {len(found.documents)}); try other words"
    results = [f"{document.header}\n{_harmless(_passage(document.text, words))}" for document in hits[:MOST_RESULTS]]
    return "\n\n".join([f"{len(hits)} of {len(found.documents)} documents match, the best first:", *results])


def fetch(doc_id: str, page: int, folder: Path | None) -> str:
    """One page of a document, the whole of it if it is short, under its id, title and URL.

    Raises:
        ToolError: there is no such document or page.
    """
    found = _opened(folder)
    document = found.named(doc_id)
    if document is None:
        raise ToolError(f"there is no document {doc_id[:100]!r}; use an id that search_documents shows, such as "
                        f"{found.documents[0].doc_id}")  # fmt: skip
    pages = _pages(document.text)
    if not 1 <= page <= len(pages):
        raise ToolError(f"{document.doc_id} has {len(pages)} pages; there is no page {page}")
    more = f"\n\n(page {page} of {len(pages)})" if len(pages) > 1 else ""
    return f"{document.header}\n{_harmless(pages[page - 1])}{more}"


class Corpus:
    """Documents in the order of their ids, with the counts that BM25 needs (Robertson and Zaragoza 2009)."""

    def __init__(self, documents: Iterable[Document]) -> None:
        self.documents = tuple(sorted(documents, key=lambda document: document.doc_id))
        self._names = {
            name.casefold(): document
            for document in reversed(self.documents)
            for name in (document.doc_id, document.url)
            if name
        }
        self._postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
        self._lengths = []
        for place, document in enumerate(self.documents):
            counts = Counter(_tokens(f"{document.title}\n{document.text}"))
            self._lengths.append(counts.total())
            for token, count in counts.items():
                self._postings[token].append((place, count))
        self._mean_length = sum(self._lengths) / len(self._lengths) or 1.0

    def named(self, name: str) -> Document | None:
        """The document of this id or URL; brackets and ``doc:`` around it do not matter."""
        bare = unicodedata.normalize("NFC", name).strip().strip("[]").strip()
        return self._names.get(bare.removeprefix("doc:").strip().casefold())

    def ranked(self, words: Iterable[str]) -> list[Document]:
        """The documents with one of ``words``, the best first; equal ones by their ids."""
        scores: dict[int, float] = defaultdict(float)
        for word in sorted(words):
            postings = self._postings.get(word, ())
            rarity = math.log(1 + (len(self.documents) - len(postings) + 0.5) / (len(postings) + 0.5))
            for place, count in postings:
                damped = count + _K1 * (1 - _B + _B * self._lengths[place] / self._mean_length)
                scores[place] += rarity * count * (_K1 + 1) / damped
        order = heapq.nsmallest(len(scores), scores, key=lambda place: (-scores[place], place))
        return [self.documents[place] for place in order]


def _opened(folder: Path | None) -> Corpus:
    if folder is None:
        raise ToolError("this task has no documents")
    return _corpus(folder)


@lru_cache(maxsize=8)
def _corpus(folder: Path) -> Corpus:
    """The corpus of a staged folder, whose name changes with its content."""
    documents = []
    for path in sorted(folder.rglob("*")):
        doc_id = document_id(path.relative_to(folder).as_posix())
        if doc_id is not None and path.is_file() and not path.is_symlink():
            documents.append(_document(doc_id, path.read_bytes().decode("utf-8", "replace")))
    if not documents:
        raise ToolError("this task has no documents")
    return Corpus(documents)


def _document(doc_id: str, text: str) -> Document:
    text = unicodedata.normalize("NFC", text.removeprefix("\ufeff")).replace("\r\n", "\n").replace("\0", "\ufffd")
    fields: dict[str, str] = {}
    lines = text.split("\n")
    if lines[0].strip() == "---" and "---" in lines[1:]:
        end = lines.index("---", 1)
        matches = [_FIELD.fullmatch(line.strip()) for line in lines[1:end]]
        fields = {match[1].lower(): match[2].strip() for match in matches if match}
        lines = lines[end + 1 :]
    heading = next((line.lstrip("# ").strip() for line in lines if line.startswith("# ")), "")
    body = "\n".join(lines).strip()
    title = " ".join((fields.get("title") or heading or doc_id).split())
    return Document(doc_id, title, "".join(fields.get("url", "").split()), fields.get("date", ""), body)


def _harmless(text: str) -> str:
    """``text`` with a space before what looks like one of our headers, so that no document passes for another."""
    return _LOOKS_LIKE_A_HEADER.sub(" ", text)


def _tokens(text: str) -> Iterator[str]:
    """Words, and pairs of syllables of Korean ones, which meet whatever particle a word has."""
    for match in _TOKEN.finditer(unicodedata.normalize("NFKC", text).casefold()):
        word = match[0]
        if len(word) == 1 or not "가" <= word[0] <= "힣":
            yield word
        else:
            yield from (word[place : place + 2] for place in range(len(word) - 1))


def _passage(text: str, words: set[str]) -> str:
    """The stretch of lines of about ``_SNIPPET`` characters with most of ``words``, the first of equals."""
    pieces = [piece for line in text.split("\n") if line.strip() for piece in _cut(line.strip())]
    hits = [words.intersection(_tokens(piece)) for piece in pieces]
    best, best_count = "", -1
    for first in range(len(pieces)):
        stretch, seen = pieces[first], set(hits[first])
        for following in range(first + 1, len(pieces)):
            if len(stretch) + len(pieces[following]) >= _SNIPPET:
                break
            stretch += "\n" + pieces[following]
            seen |= hits[following]
        if len(seen) > best_count:
            best, best_count = stretch, len(seen)
    return best


def _cut(line: str) -> Iterator[str]:
    """``line`` in pieces of at most ``_SNIPPET`` characters, cut behind a full stop or a space where there is one."""
    while len(line) > _SNIPPET:
        at = max(line.rfind(". ", 0, _SNIPPET) + 1, line.rfind("? ", 0, _SNIPPET) + 1)
        at = at or line.rfind(" ", 0, _SNIPPET) + 1 or _SNIPPET
        yield line[:at].strip()
        line = line[at:].strip()
    yield line


def _pages(text: str) -> list[str]:
    pages = []
    while len(text) > PAGE:
        at = text.rfind("\n", PAGE // 2, PAGE) + 1 or text.rfind(" ", PAGE // 2, PAGE) + 1 or PAGE
        pages.append(text[:at].strip())
        text = text[at:]
    return [*pages, text.strip()]
