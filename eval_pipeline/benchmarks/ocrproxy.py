"""ocrproxy: the exact text of a scanned document, out of the noisy text that an OCR program has made of it.

A team that can see works from the image that is attached; one that cannot, from the tool ``read_page``. The rule for
``success`` and the benchmark as an object belong here, the measure to :mod:`~eval_pipeline.benchmarks.cer`, the markers
of pages to :mod:`~eval_pipeline.benchmarks.ocr_pages`. Only ``load`` does I/O.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from eval_pipeline.benchmarks.base import DEFAULTS, Answer, AnswerKind, Score, Task
from eval_pipeline.benchmarks.cer import Errors, cer, errors, jamo_errors, normalise
from eval_pipeline.benchmarks.ocr_pages import split_pages
from eval_pipeline.benchmarks.rows import Row
from eval_pipeline.benchmarks.tasks_file import load_tasks_file
from eval_pipeline.errors import TaskDataError
from eval_pipeline.ids import shown
from eval_pipeline.jsontypes import JsonObject

__all__ = ["OcrProxy", "PageErrors", "cer", "compare"]

_MOST_PAGES, _LONGEST_PAGE = 200, 100_000
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class PageErrors:
    """The errors of a document by page, and with Hangul in its letters (none where that is too much work).

    Unless the pages were ``marked`` in the answer, they are one. ``empty`` is an answer with no character on any page.
    """

    pages: tuple[Errors, ...]
    jamo: tuple[Errors, ...]
    marked: bool
    empty: bool

    @property
    def edits(self) -> int:
        return sum(page.edits for page in self.pages)

    @property
    def characters(self) -> int:
        return sum(page.characters for page in self.pages)

    @property
    def rate(self) -> float:
        """Micro: all edits by all characters, so that a short page weighs as much as its characters."""
        return self.edits / self.characters

    @property
    def exact(self) -> bool:
        return all(page.exact for page in self.pages)

    @property
    def jamo_rate(self) -> float | None:
        if not self.jamo or not all(page.exact for page in self.jamo):
            return None
        return sum(page.edits for page in self.jamo) / sum(page.characters for page in self.jamo)

    @property
    def mean_rate(self) -> float | None:
        """Macro: the mean of the pages' rates; those without a rate are left out."""
        rates = [page.rate for page in self.pages if page.rate is not None]
        return sum(rates) / len(rates) if self.marked and rates else None


def compare(pages: Sequence[str], answer: str, *, keep_lines: bool = False, nfkc: bool = False) -> PageErrors:
    """Compare ``answer`` with the text of the pages; without markers all pages count as one text.

    Raises:
        ValueError: the pages have no character together.
    """
    found = split_pages(answer, len(pages))
    expected = [*pages] if found is not None else ["\n".join(pages)]
    pairs = [
        (normalise(page, keep_lines=keep_lines, nfkc=nfkc), normalise(text, keep_lines=keep_lines, nfkc=nfkc))
        for page, text in zip(expected, [answer] if found is None else found, strict=True)
    ]
    if not any(page for page, _ in pairs):
        raise ValueError("the reference has no text")
    by_page = tuple(errors(*pair) for pair in pairs)
    # letters are three times as many; where not even the characters could be counted, they cannot either
    letters = tuple(jamo_errors(*pair) for pair in pairs) if all(page.exact for page in by_page) else ()
    return PageErrors(pages=by_page, jamo=letters, marked=found is not None, empty=not any(text for _, text in pairs))


class OcrProxy:
    """The benchmark; see :class:`eval_pipeline.benchmarks.base.Benchmark`."""

    name: str = "ocrproxy"
    answers: AnswerKind = "text"
    scorer_version: str = "ocrproxy-1"
    format_block: str = (
        "The attached file is the image of a document. The tool read_page(page), with pages counted from 1, returns "
        "the text that an OCR program has read on a page, with its mistakes: misread characters, broken words, "
        "disturbed reading order.\n"
        "Answer format: deliver the text of the document as it stands on the image and nothing else, in plain text "
        "without Markdown. Keep case, punctuation, numbers and language exactly. If the document has more than one "
        "page, write the line === page N === before the text of each page N."
    )
    thresholds: Mapping[str, float] = MappingProxyType({"cer": 0.05})
    tools: tuple[str, ...] = ("read_page",)
    needs_evidence: bool = False
    grounding_table: str | None = None

    def load(self, data_dir: Path) -> list[Task]:
        tasks = load_tasks_file(data_dir, self.name, frozenset({"gold", "keep_lines", "nfkc"}), _own_fields)
        for task in tasks:
            pages, files = len(_pages(task)), len(task.materials)
            if pages != files:
                raise TaskDataError(
                    f"{data_dir}: task {task.task_id}: has {pages} pages in 'gold' and {files} files in 'materials'; "
                    "give the OCR text of every page, one file each"
                )
        return tasks

    def score(self, task: Task, answer: Answer, thresholds: Mapping[str, float] = DEFAULTS) -> Score:
        flags = {name: task.extra.get(name) is True for name in ("keep_lines", "nfkc")}
        result = compare(_pages(task), answer.full_text, **flags)
        if result.empty:
            return Score(success=False, format_valid=False, metrics=_metrics(result), reason="no text")
        limit = thresholds.get("cer", self.thresholds["cer"])
        return Score(
            success=result.exact and result.rate <= limit + _ROUNDING,
            format_valid=True,
            metrics=_metrics(result),
            reason=_reason(result, len(_pages(task))),
        )


def _pages(task: Task) -> list[str]:
    return [str(page) for page in json.loads(task.gold)]


def _metrics(result: PageErrors) -> dict[str, float]:
    figures: dict[str, float | None] = {
        "cer": result.rate,
        "accuracy": 1 - min(1.0, result.rate),
        "cer_jamo": result.jamo_rate,
        "cer_page_mean": result.mean_rate,
        "characters": result.characters,
        "edits": result.edits,
    }
    for kind in ("substitutions", "deletions", "insertions"):
        counts = [getattr(page, kind) for page in result.pages]
        figures[kind] = None if None in counts else sum(counts)
    return {name: float(value) for name, value in figures.items() if value is not None}


def _reason(result: PageErrors, pages: int) -> str:
    about = "" if result.exact else "at least "
    parts = [f"CER {about}{result.rate:.3f}: {about}{result.edits:,} edits for {result.characters:,} characters"]
    if not result.marked:
        parts.append(f"no line marks any of the {pages} pages, so they count as one text")
    elif pages > 1:
        worst = max(range(pages), key=lambda number: (result.pages[number].edits, -number))
        if result.pages[worst].edits:
            parts.append(f"most of them on page {worst + 1}")
    return "; ".join(parts)


def _own_fields(row: Row) -> tuple[str, JsonObject]:
    """The pages as a JSON list, and which of the flags are set."""
    value = row.values.get("gold")
    pages = [value] if isinstance(value, str) else value
    if not isinstance(pages, list) or not 1 <= len(pages) <= _MOST_PAGES:
        raise row.wrong("gold", f"is {shown(value)}; write the text, or a list of 1 to {_MOST_PAGES} pages")
    texts = [page for page in pages if isinstance(page, str)]
    if len(texts) < len(pages) or any("\0" in text for text in texts):
        raise row.wrong("gold", "has a page that is no text, or one with a NUL character; write texts")
    gold = json.dumps(texts, ensure_ascii=False)
    try:
        gold.encode()
    except UnicodeEncodeError:
        raise row.wrong("gold", "holds half of a surrogate pair; write the whole character") from None
    if not any(map(normalise, texts)):
        raise row.wrong("gold", "has no text; write what stands on the pages")
    if any(len(text) > _LONGEST_PAGE for text in texts):
        raise row.wrong("gold", f"has a page of more than {_LONGEST_PAGE:,} characters; divide it into several")
    return gold, {name: True for name in ("keep_lines", "nfkc") if row.flag(name)}
