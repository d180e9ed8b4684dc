"""Cppx: questions about a C++ source tree, scored by the facts that the answer states.

The rule, the task file and the benchmark as an object belong here; the answer is read by
:mod:`~eval_pipeline.benchmarks.cppx_answer`, the source tree by :mod:`~eval_pipeline.benchmarks.cppx_source`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path, PurePosixPath
from types import MappingProxyType

from eval_pipeline.benchmarks import prose
from eval_pipeline.benchmarks.base import DEFAULTS, Answer, AnswerKind, Score, Task
from eval_pipeline.benchmarks.cppx_answer import Location, Read, normal, read_answer
from eval_pipeline.benchmarks.cppx_source import SUFFIXES, SourceIndex, index_of_materials
from eval_pipeline.benchmarks.rows import Row
from eval_pipeline.benchmarks.tasks_file import load_tasks_file
from eval_pipeline.errors import TaskDataError
from eval_pipeline.ids import shown
from eval_pipeline.jsontypes import JsonObject, JsonValue

LONGEST_ANSWER = 200_000
"""Characters of an answer that is judged; a longer one is refused."""
NEAR = 3
"""Lines that a name may be away from the lines that an answer gives for it."""

_FACTS, _WINDOW = "facts", "window"
_FACT_FIELDS = frozenset({"statement", "groups", "forbid"})
_MOST_FACTS, _MOST_TERMS = 100, 50
_MOST_BYTES = 32 * 2**20
_DETAILS = 50

_FORMAT = """\
Answer from the source tree that list_source, read_source and search_source show, and from nothing else.

Format of the answer:
- Short sentences or list items. Each states one fact completely: what, under which condition, with which effect. A fact
  that is spread over several sentences does not count.
- Names of the code stand in backticks, as the code writes them: `Cache::put`, `size_`.
- Where something stands is given as path:line or path:first-last, such as src/cache.cpp:12 or src/cache.cpp:12-20."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact that an answer may state: a unit has a term of each group, and no ``forbid`` term."""

    groups: tuple[tuple[str, ...], ...]
    forbid: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Judged:
    """What an answer states and names.

    ``stated`` and ``forbidden`` are per fact, in order; forbidden are those whose terms all stand in a unit with a
    forbidden one, and nowhere without. ``qualified`` are the names with ``::``, ``parts_only`` those of them whose
    parts are nowhere nested so.
    """

    stated: tuple[bool, ...]
    forbidden: tuple[bool, ...]
    names: tuple[str, ...]
    unknown: tuple[str, ...]
    only_in_comments: tuple[str, ...]
    qualified: tuple[str, ...]
    parts_only: tuple[str, ...]
    locations: tuple[Location, ...]
    wrong_locations: tuple[Location, ...]

    @property
    def fact_ratio(self) -> float:
        """Stated facts of all, 0 to 1."""
        return sum(self.stated) / len(self.stated)

    @property
    def identifier_precision(self) -> float | None:
        """Names in code marks that the code has, of all; ``None`` where there is none."""
        return _share(len(self.names) - len(self.unknown), len(self.names))

    @property
    def location_precision(self) -> float | None:
        """Locations that are there and near a name of their sentence, of all; ``None`` where there is none."""
        return _share(len(self.locations) - len(self.wrong_locations), len(self.locations))


def judge(answer: str, facts: Sequence[Fact], source: SourceIndex, window: int = 1) -> Judged:
    """Hold ``answer`` against the facts that it should state (at least one) and the source tree that it is about."""
    read = read_answer(answer, window)
    verdicts = [_stated(fact, read) for fact in facts]
    unknown = tuple(name for name in read.names if name not in source.code)
    parts_only = [parts for parts in read.qualified if not all(pair in source.nested for pair in pairwise(parts))]
    return Judged(
        stated=tuple(stated for stated, _ in verdicts),
        forbidden=tuple(forbidden for _, forbidden in verdicts),
        names=read.names,
        unknown=unknown,
        only_in_comments=tuple(name for name in unknown if name in source.comments),
        qualified=tuple("::".join(parts) for parts in read.qualified),
        parts_only=tuple("::".join(parts) for parts in parts_only),
        locations=read.locations,
        wrong_locations=tuple(location for location in read.locations if not _is_there(location, source)),
    )


class Cppx:
    """Cppx, its task file and its rule; see :class:`eval_pipeline.benchmarks.base.Benchmark`."""

    name: str = "cppx"
    answers: AnswerKind = "text"
    scorer_version: str = "cppx-1"
    format_block: str = _FORMAT
    thresholds: Mapping[str, float] = MappingProxyType({"fact_ratio": 0.8})
    tools: tuple[str, ...] = ("list_source", "read_source", "search_source")
    needs_evidence: bool = False
    grounding_table: str | None = "cppx_grounding"

    def load(self, data_dir: Path) -> list[Task]:
        places: dict[str, str] = {}

        def own(row: Row) -> tuple[str, JsonObject]:
            places[str(row.values.get("task_id"))] = row.where
            return _own(row)

        tasks = load_tasks_file(data_dir, self.name, frozenset({_FACTS, _WINDOW}), own)
        for task in tasks:
            _check_source(task, places[task.task_id])
        return tasks

    def score(self, task: Task, answer: Answer, thresholds: Mapping[str, float] = DEFAULTS) -> Score:
        limits = {**self.thresholds, **thresholds}
        facts, window = _facts(task), task.extra.get(_WINDOW)
        text, refused = answer.full_text, ""
        if len(text) > LONGEST_ANSWER:
            text, refused = "", f"the answer has more than {LONGEST_ANSWER:,} characters"
        judged = judge(text, facts, index_of_materials(task.materials), window if isinstance(window, int) else 1)
        format_valid = bool(text.strip())
        figures = {
            "fact_ratio": judged.fact_ratio,
            "identifier_precision": judged.identifier_precision,
            "location_precision": judged.location_precision,
            "qualified_precision": _share(len(judged.qualified) - len(judged.parts_only), len(judged.qualified)),
            "identifiers_only_in_comments": float(len(judged.only_in_comments)),
        }
        return Score(
            success=format_valid and judged.fact_ratio >= limits["fact_ratio"] - 1e-9,
            format_valid=format_valid,
            metrics={name: value for name, value in figures.items() if value is not None},
            reason=refused or _reason(judged, format_valid),
            grounding=_row(judged),
        )


def _stated(fact: Fact, read: Read) -> tuple[bool, bool]:
    """Whether a unit states ``fact``, and if none does, whether one would but for a forbidden term."""
    groups = [_any_of(terms) for terms in fact.groups]
    forbid = _any_of(fact.forbid) if fact.forbid else None
    spoiled = False
    for unit in read.units:
        if all(group.search(unit) for group in groups):
            if forbid is None or not forbid.search(unit):
                return True, False
            spoiled = True
    return False, spoiled


def _any_of(terms: Sequence[str]) -> re.Pattern[str]:
    """One of ``terms``, not inside a longer name: ``put`` does not stand in ``output``."""
    parts = []
    for term in terms:
        text = normal(prose.tidy(term, "NFC"))
        before = "(?<![a-z0-9_])" if _is_ascii_word(text[:1]) else ""
        after = "(?![a-z0-9_])" if _is_ascii_word(text[-1:]) else ""
        parts.append(f"{before}{re.escape(text)}{after}")
    return re.compile("|".join(parts))


def _is_ascii_word(character: str) -> bool:
    return character == "_" or (character.isascii() and character.isalnum())


def _is_there(location: Location, source: SourceIndex) -> bool:
    for file in source.named(location.file):
        if 1 <= location.first <= location.last <= file.lines:
            lines = [line for name in location.beside for line in file.names.get(name, ())]
            near = any(location.first - NEAR <= line <= location.last + NEAR for line in lines)
            if near or not location.beside:
                return True
    return False


def _own(row: Row) -> tuple[str, JsonObject]:
    value = row.values.get(_FACTS)
    if not isinstance(value, list) or not 1 <= len(value) <= _MOST_FACTS:
        raise row.wrong(_FACTS, f"is {shown(value)}; write a list of 1 to {_MOST_FACTS} facts")
    window = row.values.get(_WINDOW, 1)
    if isinstance(window, bool) or window not in (1, 2):
        raise row.wrong(_WINDOW, f"is {shown(window)}; write 1 or 2, the sentences that a fact may go over")
    statements = [_check_fact(row, number, fact) for number, fact in enumerate(value, 1)]
    return "\n".join(statements), {_FACTS: value, _WINDOW: window}


def _check_fact(row: Row, number: int, fact: JsonValue) -> str:
    """The fact in words: its statement, else its first terms."""
    where = f"has fact {number}"
    if not isinstance(fact, dict) or set(fact) - _FACT_FIELDS or "groups" not in fact:
        raise row.wrong(
            _FACTS, f"{where} {shown(fact)}; write an object with groups, and if you like forbid and statement"
        )
    groups = fact["groups"]
    if not isinstance(groups, list) or not groups or not all(_is_terms(group) for group in groups):
        raise row.wrong(_FACTS, f"{where} with groups {shown(groups)}; write lists of alternative terms")
    forbid = fact.get("forbid", [])
    if forbid != [] and not _is_terms(forbid):
        raise row.wrong(_FACTS, f"{where} with forbid {shown(forbid)}; write a list of terms")
    statement = fact.get("statement", "")
    if not isinstance(statement, str):
        raise row.wrong(_FACTS, f"{where} with statement {shown(statement)}; write a text")
    return statement or ", ".join(str(group[0]) for group in groups if isinstance(group, list))


def _is_terms(value: JsonValue) -> bool:
    if not isinstance(value, list) or not 1 <= len(value) <= _MOST_TERMS:
        return False
    return all(isinstance(term, str) and normal(prose.tidy(term, "NFC")) for term in value)


def _check_source(task: Task, where: str) -> None:
    if not any(PurePosixPath(material.name).suffix.lower() in SUFFIXES for material in task.materials):
        kinds = " ".join(sorted(SUFFIXES))
        raise TaskDataError(f"{where}: field 'materials' names no C++ file; the source tree needs some of {kinds}")
    if sum(material.size for material in task.materials) > _MOST_BYTES:
        raise TaskDataError(f"{where}: field 'materials' is more than {_MOST_BYTES // 2**20} MiB; name fewer files")


def _facts(task: Task) -> list[Fact]:
    """The task's facts.

    Raises:
        ValueError: it has none, which is refused when a task is loaded.
    """
    facts = []
    value = task.extra.get(_FACTS)
    for fact in value if isinstance(value, list) else []:
        if isinstance(fact, dict):
            facts.append(Fact(tuple(_terms(group) for group in _items(fact["groups"])), _terms(fact.get("forbid"))))
    if not facts:
        raise ValueError(f"task {task.task_id} has no facts")
    return facts


def _items(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []


def _terms(value: JsonValue) -> tuple[str, ...]:
    return tuple(str(term) for term in _items(value))


def _row(judged: Judged) -> dict[str, JsonValue]:
    return {
        "facts": len(judged.stated),
        "facts_found": sum(judged.stated),
        "fact_ratio": judged.fact_ratio,
        "forbidden_found": sum(judged.forbidden),
        "identifiers": len(judged.names),
        "identifiers_valid": len(judged.names) - len(judged.unknown),
        "identifier_precision": judged.identifier_precision,
        "locations": len(judged.locations),
        "locations_valid": len(judged.locations) - len(judged.wrong_locations),
        "location_precision": judged.location_precision,
        "details": {
            "facts_missing": [number for number, stated in enumerate(judged.stated, 1) if not stated],
            "facts_forbidden": [number for number, spoiled in enumerate(judged.forbidden, 1) if spoiled],
            "identifiers_unknown": list(judged.unknown[:_DETAILS]),
            "identifiers_only_in_comments": list(judged.only_in_comments[:_DETAILS]),
            "qualified_parts_only": list(judged.parts_only[:_DETAILS]),
            "locations_wrong": [_place(location) for location in judged.wrong_locations[:_DETAILS]],
        },
    }


def _reason(judged: Judged, format_valid: bool) -> str:
    if not format_valid:
        return "no answer"
    missing = [str(number) for number, stated in enumerate(judged.stated, 1) if not stated]
    reason = f"{sum(judged.stated)} of {len(judged.stated)} facts stated"
    if missing:
        reason += f" (missing: {', '.join(missing)})"
    if any(judged.forbidden):
        spoiled = [str(number) for number, forbidden in enumerate(judged.forbidden, 1) if forbidden]
        reason += f"; said with a word that turns it round: {', '.join(spoiled)}"
    if judged.unknown:
        reason += f"; not in the code: {shown(judged.unknown[0])}"
    if judged.wrong_locations:
        reason += f"; not there: {_place(judged.wrong_locations[0])}"
    return reason


def _place(location: Location) -> str:
    lines = f"{location.first}" if location.first == location.last else f"{location.first}-{location.last}"
    return f"{location.file[:200]}:{lines}"


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
