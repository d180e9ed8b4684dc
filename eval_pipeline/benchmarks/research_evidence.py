"""The evidence of a research run: every document that its tools returned, with all that it may be cited by.

Documents are counted from 1 in the order in which the run saw them first. What supports a claim is said in
:mod:`~eval_pipeline.benchmarks.research_grounding`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from eval_pipeline.benchmarks.base import Evidence
from eval_pipeline.benchmarks.prose import tidy

SOURCES = ("search_documents", "fetch_document")
"""Tools whose results name their documents; only theirs are split, so that no document can pass for another."""
PROGRAMS = ("python_exec", "python_calc")
"""Tools that return what the model wrote into them: no documents, or a run could be its own witness."""

_HEADER = re.compile(r"^\[doc:([^\[\]\n]{1,200})\](?:[ \t]+(.*))?$", re.MULTILINE)
_URL_LINE = re.compile(r"\nurl:[ \t]*(\S+)[ \t]*(?=\n|$)")
_ID_ARGUMENTS = ("doc_id", "document_id", "id", "document", "url", "path")
_LONGEST_URL = 2000
_DEFAULT_PORTS = {"http": 80, "https": 443}
_TRACKING = "utm_"


@dataclass(frozen=True, slots=True)
class Document:
    """A document that a run has seen, as far as it has seen it: ``passages`` in order, each once.

    ``names`` are its ids and URLs, which make it this document; ``titles`` may be those of another one too.
    """

    number: int
    names: frozenset[str]
    titles: frozenset[str]
    label: str
    passages: tuple[str, ...]


@dataclass(slots=True)
class _Seen:
    label: str
    names: set[str] = field(default_factory=set)
    titles: set[str] = field(default_factory=set)
    passages: dict[str, None] = field(default_factory=dict)


class Store:
    """The documents of a run, found by number, id, title or URL."""

    def __init__(self, documents: Iterable[Document]) -> None:
        self.documents: Sequence[Document] = tuple(documents)
        self._by_name: dict[str, Document] = {}
        for document in self.documents:
            for name in document.names:
                self._by_name.setdefault(name, document)
        for document in self.documents:
            for title in document.titles:
                self._by_name.setdefault(title, document)

    def named(self, name: str) -> Document | None:
        """The document with this id, title or URL."""
        return self._by_name.get(_name(name))

    def numbered(self, number: int) -> Document | None:
        """The ``number``-th document that the run saw, from 1."""
        return self.documents[number - 1] if 1 <= number <= len(self.documents) else None


def store_of(evidence: Sequence[Evidence]) -> Store:
    """The documents in what the tools of a run returned, in first-seen order.

    A result of :data:`SOURCES` is split at its ``[doc:ID]`` headers. Any other result is one document, named by the id,
    path or URL that it was asked for with, else by its position; results of :data:`PROGRAMS` are none.
    """
    seen: list[_Seen] = []
    for result in evidence:
        if result.tool in PROGRAMS or not result.result.strip():
            continue
        text = tidy(result.result)
        found = list(_split(text)) if result.tool in SOURCES else []
        for part in found or [_whole(result, text)]:
            known = next((one for one in seen if part.names & one.names), None)
            if known is None:
                known = _Seen(part.label or f"result {len(seen) + 1}")
                seen.append(known)
            known.names |= part.names
            known.titles |= part.titles
            if part.passage.strip():
                known.passages.setdefault(part.passage)
    return Store(
        Document(number, frozenset(one.names), frozenset(one.titles), one.label, tuple(one.passages))
        for number, one in enumerate(seen, 1)
    )


def canonical_url(url: str) -> str | None:
    """``url`` as URLs are compared; ``None`` if it is none of HTTP.

    Scheme and host are lower-cased; fragment, ``utm_*`` parameters, the scheme's own port and a slash at the end are
    left out; letters are percent-encoded one way.
    """
    if len(url) > _LONGEST_URL:
        return None
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    scheme = parts.scheme.lower()
    if scheme not in _DEFAULT_PORTS or not host:
        return None
    host = unicodedata.normalize("NFC", host) + (f":{port}" if port not in (None, _DEFAULT_PORTS[scheme]) else "")
    path = quote(unquote(parts.path, errors="replace").rstrip("/"), safe="/:@!$&'()*+,;=~-._", errors="replace")
    pairs = [pair for pair in parse_qsl(parts.query, keep_blank_values=True) if not pair[0].startswith(_TRACKING)]
    query = urlencode(pairs, errors="replace")
    return f"{scheme}://{host}{path}" + (f"?{query}" if query else "")


def _name(name: str) -> str:
    return canonical_url(name) or " ".join(tidy(name).casefold().split())


@dataclass(frozen=True, slots=True)
class _Part:
    """What one result says of one document."""

    label: str
    names: frozenset[str]
    titles: frozenset[str]
    passage: str


def _split(text: str) -> Iterable[_Part]:
    """The part of every ``[doc:ID] title`` header; a ``url:`` line may follow it at once."""
    headers = list(_HEADER.finditer(text))
    for header, following in zip(headers, [*headers[1:], None], strict=False):
        body = text[header.end() : following.start() if following else len(text)]
        names = {_name(header[1])}
        url = _URL_LINE.match(body)
        if url:
            names.add(_name(url[1]))
            body = body[url.end() :]
        titles = frozenset({_name(header[2])} if header[2] else ())
        yield _Part(header[1].strip(), frozenset(names), titles, body.strip("\n"))


def _whole(result: Evidence, text: str) -> _Part:
    asked = [result.arguments.get(argument) for argument in _ID_ARGUMENTS]
    names = [value for value in asked if isinstance(value, str) and value.strip()]
    return _Part(tidy(names[0]) if names else "", frozenset(map(_name, names)), frozenset(), text)
