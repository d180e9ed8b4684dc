"""What a benchmark is: tasks that can be loaded, and one scorer.

The types that loaders, runs and scorers share belong here. How one benchmark reads its files or scores an answer
belongs in that benchmark's own module.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Literal, Protocol

from eval_pipeline.jsontypes import JsonObject, JsonValue

AnswerKind = Literal["line", "text"]

DEFAULTS: Mapping[str, float] = MappingProxyType({})
"""No threshold set: a benchmark's own ones hold."""


@dataclass(frozen=True, slots=True)
class Attachment:
    """The file that belongs to a task, where the loader found it."""

    file_name: str
    path: Path
    sha256: str
    size: int


@dataclass(frozen=True, slots=True)
class Material:
    """A further file that the benchmark's own tools may read: a document of a corpus, a source file.

    ``name`` is its path below the task's materials, with ``/`` between folders. Never an answer key.
    """

    name: str
    path: Path
    sha256: str
    size: int


@dataclass(frozen=True)
class Task:
    """One question with its gold answer and, for some, an attached file.

    ``extra`` holds what only this task's benchmark understands (format checks, hidden tests); no tool sees it.
    """

    task_id: str
    benchmark: str
    level: int
    question: str
    gold: str
    attachment: Attachment | None = None
    requires_web: bool = False
    extra: JsonObject = field(default_factory=dict)
    materials: tuple[Material, ...] = ()

    @property
    def dsn_env(self) -> str | None:
        """The environment variable with the DSN of the task's database server; tools know of ``extra`` this alone."""
        name = self.extra.get("dsn_env")
        return name if isinstance(name, str) else None

    @cached_property
    def content_hash(self) -> str:
        """SHA-256, hex, over everything that makes this task what it is, the attachment's bytes included."""
        content: dict[str, object] = {
            "benchmark": self.benchmark,
            "task_id": self.task_id,
            "level": self.level,
            "question": self.question,
            "gold": self.gold,
            "file_name": self.attachment.file_name if self.attachment else None,
            "file_sha256": self.attachment.sha256 if self.attachment else None,
            "extra": self.extra,
        }
        if self.materials:
            content["materials"] = sorted([material.name, material.sha256] for material in self.materials)
        canonical = json.dumps(content, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Evidence:
    """One successful tool call of a run, in its order: what was asked and what came back, whole and masked."""

    tool: str
    arguments: JsonObject
    result: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What a run delivered: the captured answer line, and the planner's last message uncut.

    ``evidence`` is only filled for a benchmark that asks for it.
    """

    final: str | None
    full_text: str
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True)
class Score:
    """A verdict. ``metrics`` are figures beside it; ``reason`` says in one line why, for people.

    ``grounding`` are the columns of the benchmark's grounding table, for a benchmark that has one.
    """

    success: bool
    format_valid: bool
    metrics: Mapping[str, float] = field(default_factory=dict)
    reason: str = ""
    grounding: Mapping[str, JsonValue] = field(default_factory=dict)


class Benchmark(Protocol):
    """A kind of task with one scorer. Implementations are stateless and free of Dagster and of the database."""

    name: str
    """One of the benchmark names of the vocabulary, such as ``gaia``."""
    answers: AnswerKind
    """``line``: the captured answer line is scored; ``text``: the full text is."""
    scorer_version: str
    """Changes whenever a stored answer could get another verdict."""
    format_block: str
    """Appended to every run message of this benchmark, for every team alike; empty for none."""
    thresholds: Mapping[str, float]
    """Defaults of what a suite may set; part of a batch's contract."""
    tools: tuple[str, ...]
    """Keys of :mod:`eval_pipeline.tools.registry` that the executor of every team has for this benchmark's tasks."""
    needs_evidence: bool
    """Whether :meth:`score` looks at what the run's tools returned."""
    grounding_table: str | None
    """``research_grounding`` or ``cppx_grounding`` where a score has a row there."""

    def load(self, data_dir: Path) -> list[Task]:
        """Read every task below ``data_dir``, in the order of the file.

        Raises:
            TaskDataError: a file is missing or a value cannot be used; names file, line, field and value.
        """
        ...

    def score(self, task: Task, answer: Answer, thresholds: Mapping[str, float] = DEFAULTS) -> Score:
        """Judge ``answer`` under ``thresholds``: what a suite sets over the benchmark's own.

        Deterministic, and never raises for anything that a model can write. It may run code in a child process, and
        is called in a thread.
        """
        ...
