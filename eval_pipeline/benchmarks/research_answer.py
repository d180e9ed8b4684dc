"""A research answer as claims with their citations.

Citations come in all of these forms: ``[1]``, ``[1, 2]``, ``[1-3]``, ``[1][2]``, ``[^1]``, ``[doc:ID]``, a URL, bare or
in brackets, and a Markdown link. Which document a citation means, and whether it supports its claim, belongs to
:mod:`~eval_pipeline.benchmarks.research_grounding`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from eval_pipeline.benchmarks import prose
from eval_pipeline.benchmarks.fences import unfenced
from eval_pipeline.benchmarks.prose import MARK, Kind
from eval_pipeline.benchmarks.research_words import Content, Reader, content

Target = int | str
"""What a citation names: a number, or a document's id, title or URL."""

WIDEST_RANGE = 100
"""Numbers that ``[1-100]`` may stand for; a wider range is one citation of nothing."""
_FEWEST_WORDS = 3
_SPACE_BEFORE_STOP = re.compile(r" (?=[.,;:!?](?: |$))")
"""What is left of a citation before a full stop."""

_MARKER = re.compile(
    r"""(?P<image>!)?\[(?P<label>\[?[^\[\]\n]{0,300}\]?)\]
        \((?P<link>https?://[^\s()]{1,2000}(?:\([^\s()]{0,200}\)[^\s()]{0,200}){0,9})(?:[ ]"[^"\n]{0,300}")?\)
    |\[(?P<inside>[^\[\]\n]{1,400})\]
    |(?P<open>[(<])?(?P<url>https?://(?:[^\s<>"'`|\]\ue000가-힣]|(?<=[/_=&?-])[가-힣]+){1,2000})""",
    re.VERBOSE | re.IGNORECASE,
)
_NUMBERS = re.compile(r"\^?(\d{1,3})(?:\s*[-–—~]\s*\^?(\d{1,6}))?")
_DOC = re.compile(r"doc\s*:\s*(\S(?:.*\S)?)", re.IGNORECASE | re.DOTALL)
_URL = re.compile(r"https?://\S+", re.IGNORECASE)
_AROUND_A_URL = ".,;:!?*_\"'”’"

_REFERENCES = re.compile(
    r"(?:references?|sources?|bibliography|works cited|citations?|참고 ?문헌|참고 ?자료|출처|인용|참조)"
    r"(?: ?\(.{0,40}\))?"
)
_REFERENCE = re.compile(r"[ \t]*(?:[-*+•][ \t]+)?(?:\[\^?(\d{1,3})\][ \t]*:?|\(?(\d{1,3})[.)](?=[ \t]))?[ \t]*(.*)")
_DEFINITION = re.compile(r" {0,3}\[\^?(\d{1,3})\](:)?[ \t]*(.+)")
_BULLET = re.compile(r"[ \t]*(?:[-*+•]|\[\^?\d|\(?\d{1,3}[.)])[ \t]?")

_META = re.compile(
    r"""(?:here\s(?:is|are)|below\s(?:is|are)|the\sfollowing\b|in\sthis\s(?:answer|report|summary)|this\s(?:answer|report|summary)
    |(?:in\s)?(?:summary|conclusion)[:.]?$|sources?\b.{0,3}$|references?\b.{0,3}$|note\sthat\sthe\sdocuments
    |(?:다음|아래)(?:은|는|과|와|에)\s|이상(?:으로|입니다)|요약(?:하면)?[:.]?$|결론[:.]?$|출처.{0,3}$|참고\s?(?:문헌|자료).{0,3}$)
    |.*\b(?:documents?|sources?|results?|corpus)\b.*\b(?:(?:do|does|did)(?:\snot|n't)|no|none|never|not)\b
    |.*\b(?:not?|none|nothing|neither)\b.*\b(?:documents?|sources?|results|corpus)\b
    |.*(?:문서|자료|출처|검색)(?:에는|에서|에|는|가|은)?\s.*(?:없|않|못)""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_LONGEST_META = 300


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence that says something, with what it cites, each once and in order."""

    text: str
    content: Content
    targets: tuple[Target, ...]


@dataclass(frozen=True, slots=True)
class Read:
    """An answer: its claims, the list of references that it brings (``None``: it has none), and the number of citations
    that stand with no claim."""

    claims: tuple[Claim, ...]
    references: dict[int, Target] | None
    stray: int


def read_answer(text: str, reader: Reader, most_claims: int) -> Read:
    """The claims of an answer; one more than ``most_claims`` are read at most.

    A claim is a sentence, also one of a list item, or a row of a table, that cites something and has a content word, or
    has three content words. Headings, lists of references and sentences about the report itself are no claims.
    """
    body, references = _without_references(unfenced(prose.tidy(text)))
    claims: list[Claim] = []
    stray = 0
    for sentence, targets in _sentences(body, reader):
        if len(claims) > most_claims:
            break
        words = content(reader, sentence)
        if _is_claim(sentence, words, targets):
            claims.append(Claim(sentence, words, targets))
        else:
            stray += len(targets)
    return Read(tuple(claims), references, stray)


def _is_claim(sentence: str, words: Content, targets: tuple[Target, ...]) -> bool:
    if targets:
        # "Sources: [1], [2]" cites, but says nothing
        return bool(words.terms) and _REFERENCES.fullmatch(words.plain.strip(" ,;:*_")) is None
    if len(words.terms) < _FEWEST_WORDS or sentence.rstrip(" *_").endswith((":", "：")):
        return False
    return len(sentence) > _LONGEST_META or _META.match(sentence.lstrip("*_ ")) is None


def _sentences(body: str, reader: Reader) -> Iterator[tuple[str, tuple[Target, ...]]]:
    marked, citations = _marked(body)
    for block in prose.blocks(marked):
        here = block.text.count(MARK)
        targets, citations = citations[:here], citations[here:]
        if block.kind is Kind.HEADING:
            continue
        split = [block.text] if block.kind is Kind.ROW else _split(block.text, reader)
        for sentence in split:
            count = sentence.count(MARK)
            own, targets = targets[:count], targets[count:]
            named = dict.fromkeys(target for marker in own for target in marker)
            yield _SPACE_BEFORE_STOP.sub("", " ".join(sentence.replace(MARK, " ").split())), tuple(named)


def _split(text: str, reader: Reader) -> list[str]:
    """The sentences of ``text``, with the marks behind a full stop in the sentence before it."""
    found: list[str] = []
    for line in text.split("\n"):
        for sentence in reader.sentences(line):
            bare = sentence.lstrip(f"{MARK} ")
            marks = sentence[: len(sentence) - len(bare)].count(MARK)
            if marks and found and found[-1].rstrip(f"{MARK} \"'”’)*_").endswith((".", "!", "?", "。")):
                found[-1] += MARK * marks
                sentence = bare  # noqa: PLW2901 - its marks have moved
            if sentence.strip():
                found.append(sentence)
    return found


def _marked(text: str) -> tuple[str, list[list[Target]]]:
    """``text`` with :data:`MARK` for every citation, and what each one names, in order."""
    citations: list[list[Target]] = []

    def replaced(match: re.Match[str]) -> str:
        if match["link"] is not None:
            if match["image"]:
                return match["label"]
            citations.append([match["link"]])
            label = match["label"].strip("[]^")
            return MARK if label.isdigit() or not label.strip() else f"{label} {MARK}"
        if match["inside"] is not None:
            targets = _inside(match["inside"])
            if targets is None:
                return match[0]
            citations.append(targets)
            return MARK
        url, rest = _trimmed(match["url"], match["open"] or "")
        citations.append([url])
        return f"{MARK}{rest}"

    return _MARKER.sub(replaced, text), citations


def _inside(text: str) -> list[Target] | None:
    """What a pair of square brackets cites; ``None`` if it is no citation."""
    parts = [part.strip() for part in re.split(r"[,;]", text)]
    in_documents = _DOC.fullmatch(parts[0]) is not None
    targets: list[Target] = []
    for part in parts:
        if numbers := _NUMBERS.fullmatch(part):
            targets += _range(numbers)
        elif document := _DOC.fullmatch(part):
            targets.append(document[1].strip())
        elif _URL.fullmatch(part) or (in_documents and part):
            targets.append(part)
        else:
            return None
    return targets


def _range(match: re.Match[str]) -> list[Target]:
    first, last = int(match[1]), int(match[2] or match[1])
    if first <= last < first + WIDEST_RANGE:
        return list(range(first, last + 1))
    return [f"{first}-{last}"]


def _trimmed(url: str, opening: str) -> tuple[str, str]:
    """The URL and what follows it in the text: punctuation, and a bracket that was opened before it."""
    end = len(url)
    while end and (url[end - 1] in _AROUND_A_URL or (url[end - 1] == ")" and _closes_more(url[:end]))):
        end -= 1
    url, rest = url[:end], url[end:]
    if opening and rest[:1] in (")", ">"):
        return url, rest[1:]
    return url, opening + rest if opening == "(" else rest


def _closes_more(url: str) -> bool:
    return url.count(")") > url.count("(")


def _without_references(text: str) -> tuple[str, dict[int, Target] | None]:
    """The text without its list of references, and what that list says each number is."""
    kept: list[str] = []
    references: dict[int, Target] = {}
    inside = False
    position = 0
    for line in text.split("\n"):
        if _REFERENCES.fullmatch(line.strip("#*_ \t:：|").casefold()):
            inside, position = True, 0
            continue
        if inside and (line.lstrip().startswith("#") or (line.strip() and not _is_reference(line))):
            inside = False
        if inside:
            if line.strip():
                position += 1
                _add_reference(references, line, position)
        elif (definition := _DEFINITION.fullmatch(line)) and _defines(definition):
            references.setdefault(int(definition[1]), _target(definition[3]))
        else:
            kept.append(line)
    return "\n".join(kept), references or None


def _is_reference(line: str) -> bool:
    return _BULLET.match(line) is not None or _target_in(line) is not None


def _add_reference(references: dict[int, Target], line: str, position: int) -> None:
    match = _REFERENCE.fullmatch(line)
    if match and match[3].strip():
        references.setdefault(int(match[1] or match[2] or position), _target(match[3]))


def _defines(definition: re.Match[str]) -> bool:
    """``[1]: …`` always does; ``[1] …`` only if a document or URL follows at once."""
    if definition[2]:
        return True
    rest = definition[3].lstrip("<([ ")
    return rest.casefold().startswith(("doc:", "http://", "https://"))


def _target(text: str) -> Target:
    return _target_in(text) or text.strip(" \t*_.\"'“”")


def _target_in(text: str) -> str | None:
    """The first document or URL that ``text`` names."""
    for match in _MARKER.finditer(text):
        if match["link"]:
            return match["link"]
        if match["url"]:
            return _trimmed(match["url"], match["open"] or "")[0]
        targets = _inside(match["inside"]) if match["inside"] else None
        named = next((target for target in targets or () if isinstance(target, str)), None)
        if named:
            return named
    bare = re.search(r"\bdoc\s*:\s*([^\s,;\])]+)", text, re.IGNORECASE)
    return bare[1] if bare else None
