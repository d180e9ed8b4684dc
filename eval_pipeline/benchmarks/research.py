"""Research: reports whose every statement cites a document that the run has read.

The task file and the benchmark as an object belong here; the rule is in
:mod:`~eval_pipeline.benchmarks.research_grounding`, and what it reads in ``research_answer``, ``research_evidence`` and
``research_words`` beside it. Only ``load`` does I/O.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from eval_pipeline.benchmarks import numerals, prose
from eval_pipeline.benchmarks.base import DEFAULTS, Answer, AnswerKind, Evidence, Score, Task
from eval_pipeline.benchmarks.research_evidence import Store, store_of
from eval_pipeline.benchmarks.research_grounding import OVERLAP, Grounding, Judged, TooLong, ground
from eval_pipeline.benchmarks.research_kiwi import best_reader
from eval_pipeline.benchmarks.research_words import PlainReader, Reader
from eval_pipeline.benchmarks.rows import Row
from eval_pipeline.benchmarks.tasks_file import load_tasks_file
from eval_pipeline.errors import TaskDataError
from eval_pipeline.ids import shown
from eval_pipeline.jsontypes import JsonObject, JsonValue
from eval_pipeline.tools.corpus import NO_MATCH, SUFFIXES, document_id

LONGEST_ANSWER = 200_000
"""Characters of an answer that is judged; a longer one is refused."""

_GOLD = "gold_documents"
_MOST_BYTES = 64 * 2**20
_DETAILS, _CITATIONS = 100, 20
"""Claims of an answer, and citations of a claim, that are stored one by one."""
_SHOWN = 160

_FORMAT = """\
Answer from the documents that search_documents and fetch_document return, and from nothing else. They are all there is:
there is no other network.

Format of the answer:
- Plain sentences, list items or table rows. Each one that states something ends with its citation: [doc:ID], where ID
  is the document's id as the tools show it, such as [doc:annual-report]. A statement that needs two documents cites
  both: [doc:first][doc:second]. The document's URL may be cited instead of its id.
- A number in brackets, such as [1], means what your own list under the heading "References" says, one line for each
  number, such as "[1] [doc:ID]"; without such a list it means the first document that the tools returned, [2] the next
  new one, and so on.
- Numbers, dates, names and quotations stand as the cited document has them, and so do its words where that is possible.
- Say each thing once, and nothing that no document supports."""


class Research:
    """Research, its task file and its rule; see :class:`eval_pipeline.benchmarks.base.Benchmark`."""

    name: str = "research"
    answers: AnswerKind = "text"
    format_block: str = _FORMAT
    thresholds: Mapping[str, float] = MappingProxyType({"grounding_f1": 0.5, "word_overlap": OVERLAP})
    tools: tuple[str, ...] = ("search_documents", "fetch_document")
    needs_evidence: bool = True
    grounding_table: str | None = "research_grounding"

    def __init__(self, reader: Reader | None = None) -> None:
        self._reader = reader or best_reader()
        plain = isinstance(self._reader, PlainReader)
        # another reader can give another verdict
        self.scorer_version: str = "research-1" if plain else f"research-1+{self._reader.name}"

    def load(self, data_dir: Path) -> list[Task]:
        places: dict[str, str] = {}

        def own(row: Row) -> tuple[str, JsonObject]:
            places[str(row.values.get("task_id"))] = row.where
            gold = _gold_documents(row)
            return "\n".join(gold), {_GOLD: list(gold)} if gold else {}

        tasks = load_tasks_file(data_dir, self.name, frozenset({_GOLD}), own)
        for task in tasks:
            _check_documents(task, places[task.task_id])
        return tasks

    def score(self, task: Task, answer: Answer, thresholds: Mapping[str, float] = DEFAULTS) -> Score:
        limits = {**self.thresholds, **thresholds}
        store = store_of([result for result in answer.evidence if not _is_no_hit(result)])
        try:
            # past this length nothing is read, and a normal form can make a text longer
            if len(answer.full_text) > LONGEST_ANSWER or len(prose.tidy(answer.full_text)) > LONGEST_ANSWER:
                raise TooLong(f"more than {LONGEST_ANSWER} characters")
            grounding = ground(answer.full_text, store, self._reader, limits["word_overlap"])
        except TooLong as refusal:
            return self._refused(str(refusal), store)
        success = grounding.f1 >= limits["grounding_f1"] - 1e-9 and bool(grounding.citations)
        figures = _figures(task, answer, grounding, store)
        return Score(
            success=success,
            format_valid=bool(grounding.citations),
            metrics={name: value for name, value in figures.items() if value is not None},
            reason=_reason(answer, grounding),
            grounding=self._row(grounding, figures, limits["word_overlap"]),
        )

    def _refused(self, why: str, store: Store) -> Score:
        empty = Grounding((), len(store.documents), 0)
        row = self._row(empty, {}, OVERLAP)
        return Score(
            success=False,
            format_valid=False,
            metrics={"grounding_f1_lexical": 0.0},
            reason=f"the answer is too long to be judged: {why}",
            grounding={**row, "details": {"refused": why}},
        )

    def _row(self, grounding: Grounding, figures: Mapping[str, float | None], overlap: float) -> dict[str, JsonValue]:
        claims: list[JsonValue] = [_detail(judged) for judged in grounding.claims[:_DETAILS]]
        return {
            "evidence": grounding.documents,
            "claims": len(grounding.claims),
            "claims_cited": grounding.cited,
            "claims_supported": grounding.supported,
            "citations": len(grounding.citations),
            "citations_valid": grounding.valid,
            "citation_precision": grounding.precision,
            "citation_recall": grounding.recall,
            "grounding_f1": grounding.f1,
            "details": {
                "reader": self._reader.name,
                "word_overlap": overlap,
                "stray_citations": grounding.stray,
                "figures": dict(figures),
                "claims": claims,
            },
        }


def _is_no_hit(result: Evidence) -> bool:
    return result.tool == "search_documents" and result.result.startswith(NO_MATCH)


def _gold_documents(row: Row) -> tuple[str, ...]:
    value = row.values.get(_GOLD) or []
    if not isinstance(value, list):
        raise row.wrong(_GOLD, f"is {shown(value)}; write a list of document ids")
    names: list[str] = []
    for name in value:
        if not isinstance(name, str) or name in names:
            raise row.wrong(_GOLD, f"has {shown(name)}; write each document id once, as a text")
        names.append(name)
    return tuple(names)


def _check_documents(task: Task, where: str) -> None:
    """Refuse a corpus whose documents cannot be cited, and gold documents that are not in it."""
    if not task.materials:
        raise TaskDataError(f"{where}: field 'materials' names no document; research needs some to cite")
    seen: dict[str, str] = {}
    for material in task.materials:
        doc_id = document_id(material.name)
        if doc_id is None:
            raise TaskDataError(
                f"{where}: field 'materials' names {shown(material.name)}; a document is a {' or '.join(SUFFIXES)} "
                "file whose name has only letters, digits, '_', '-' and '.'"
            )
        if (other := seen.setdefault(doc_id.casefold(), material.name)) != material.name:
            raise TaskDataError(f"{where}: field 'materials': {shown(material.name)} and {shown(other)} have one id")
    if sum(material.size for material in task.materials) > _MOST_BYTES:
        raise TaskDataError(
            f"{where}: field 'materials' names more than {_MOST_BYTES // 2**20} MiB; name fewer documents"
        )
    gold = task.extra.get(_GOLD) or []
    unknown = [name for name in gold if str(name).casefold() not in seen] if isinstance(gold, list) else []
    if unknown:
        raise TaskDataError(f"{where}: field {_GOLD!r} has {shown(unknown[0])}, which is none of the task's materials")


def _figures(task: Task, answer: Answer, grounding: Grounding, store: Store) -> dict[str, float | None]:
    citations = grounding.citations
    cited = {citation.document.number for citation in citations if citation.document is not None}
    figures: dict[str, float | None] = {
        "grounding_f1_lexical": grounding.f1,
        "citation_precision": grounding.precision,
        "citation_recall": grounding.recall,
        "citation_validity": _share(grounding.valid, len(citations)),
        "coverage": _share(grounding.cited, len(grounding.claims)),
        "number_grounding": _number_grounding(grounding, answer.evidence),
        "evidence_use": _share(len(cited), len(store.documents)),
    }
    gold = task.extra.get(_GOLD)
    if isinstance(gold, list) and gold:
        wanted = {document.number for name in gold if (document := store.named(str(name))) is not None}
        figures["gold_doc_recall"] = len(wanted & cited) / len(gold)
        figures["gold_doc_precision"] = _share(len(wanted & cited), len(cited))
    return figures


def _number_grounding(grounding: Grounding, evidence: Iterable[Evidence]) -> float | None:
    """The share of the claims' numbers that any tool returned, a program of the run included."""
    stated = {figure for judged in grounding.claims for figure in judged.claim.content.figures if _is_number(figure)}
    if not stated:
        return None
    returned = {numerals.key(value) for result in evidence for value in numerals.values(prose.tidy(result.result))}
    return len(stated & returned) / len(stated)


def _is_number(figure: str) -> bool:
    return figure[-1:].isdigit() and ":" not in figure


def _detail(judged: Judged) -> JsonObject:
    return {
        "text": judged.claim.text[:_SHOWN],
        "supported": judged.supported,
        "missing": judged.missing,
        "citations": [
            {
                "names": citation.target if isinstance(citation.target, int) else citation.target[:_SHOWN],
                "document": citation.document.label[:_SHOWN] if citation.document else None,
                "counts": citation.counts,
            }
            for citation in judged.citations[:_CITATIONS]
        ],
    }


def _reason(answer: Answer, grounding: Grounding) -> str:
    if not answer.full_text.strip():
        return "no answer"
    if not grounding.claims:
        return "the answer states nothing that could be supported"
    figures = f"F1 {grounding.f1:.2f}: {grounding.supported} of {len(grounding.claims)} claims supported"
    right = sum(citation.counts for citation in grounding.citations)
    figures += f", {right} of {len(grounding.citations)} citations right" if grounding.citations else ", no citation"
    lacking = next((judged for judged in grounding.claims if not judged.supported), None)
    if lacking is None:
        return figures
    return f"{figures}; first not supported: {shown(lacking.claim.text)} ({lacking.missing})"


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
