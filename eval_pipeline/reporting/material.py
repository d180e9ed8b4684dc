"""What a report is made of, as values. Reading them, counting them and showing them belongs elsewhere.

Every text is foreign unless its field is marked :data:`OWN`: written by a model, a tool or a data file, and to be
guarded and escaped. Ids, statuses and hashes are our own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Literal
from uuid import UUID

from eval_pipeline.db.accounting import Accounting
from eval_pipeline.ids import BatchTeam, TaskAttempt
from eval_pipeline.stats.rates import Interval

OWN: Mapping[str, bool] = MappingProxyType({"own": True})
"""Metadata of a field whose text is ours: no guard looks into it."""

Verdict = Literal["right", "wrong", "no valid answer", "crashed", "running", "not started"]
VERDICTS: tuple[Verdict, ...] = ("right", "wrong", "no valid answer", "crashed", "running", "not started")
"""Every verdict, in the order in which people read them."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a trace.

    ``cut``: its row keeps a part of the text, and the whole is kept apart. ``length`` counts the characters of the
    whole where less of it was read.
    """

    seq: int
    kind: str = field(metadata=OWN)
    source: str
    target: str | None = None
    text: str | None = None
    arguments: str | None = None
    length: int | None = None
    cut: bool = False
    tool: str | None = None
    call_id: str | None = None
    reason: str | None = None
    error_type: str | None = None
    ended_by: str | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    latency_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Try:
    """One try of a cell. ``more_events``: so many events of its trace are not among ``events``.

    ``archived``: the month and the folder of a trace that is in files only.
    """

    run_id: UUID
    try_no: int
    live: bool
    status: str = field(metadata=OWN)
    terminated_by: str | None = field(metadata=OWN)
    error_class: str | None = field(metadata=OWN)
    error_message: str | None
    started_at: datetime
    finished_at: datetime | None
    latency_ms: int | None
    turns: int
    tool_calls: int
    tool_errors: int
    selector_fallbacks: int
    tokens_in: int | None
    tokens_out: int | None
    all_tokens_in: int | None
    all_tokens_out: int | None
    model_calls: int
    cost: float | None
    events_dropped: int
    text_repairs: int
    sandbox_level: str | None = field(metadata=OWN)
    events: tuple[Event, ...] = ()
    more_events: int = 0
    archived: str | None = None


@dataclass(frozen=True, slots=True)
class Signal:
    """What a rule, or a judge beside it, saw in a trace: a failure mode, or a contamination.

    ``seqs`` are the events that it is about.
    """

    mode: str = field(metadata=OWN)
    confidence: str = field(metadata=OWN)
    found_by: str = field(metadata=OWN)
    seqs: tuple[int, ...]
    detail: str


@dataclass(frozen=True, slots=True)
class Run:
    """One planned cell and what became of it. Tokens, cost and latency (milliseconds) are over all its tries.

    ``answer`` is the captured answer line or, of a team that answers with a text, the planner's last message; ``gold``
    is ``None`` where it is withheld.
    """

    cell: TaskAttempt = field(metadata=OWN)
    level: int
    question: str
    gold: str | None
    file_name: str | None
    file_sha256: str | None = field(metadata=OWN)
    run_id: UUID | None
    status: str | None = field(metadata=OWN)
    success: bool | None
    format_valid: bool | None
    terminated_by: str | None = field(metadata=OWN)
    error_class: str | None = field(metadata=OWN)
    error_message: str | None
    answer: str | None
    score_reason: str | None
    turns: int
    tool_calls: int
    tool_errors: int
    all_tokens: int | None
    cost: float | None
    latency_ms: int | None
    tries: tuple[Try, ...] = ()
    signals: tuple[Signal, ...] = ()
    flags: tuple[Signal, ...] = ()

    @property
    def verdict(self) -> Verdict:
        if self.status is None:
            return "not started"
        if self.status != "completed":
            return "crashed" if self.status == "crashed" else "running"
        if self.success:
            return "right"
        return "wrong" if self.format_valid else "no valid answer"

    @property
    def completed(self) -> bool:
        return self.status == "completed"

    @property
    def failure(self) -> str | None:
        """The class that a failed run is filed under; ``None`` for one that is right or has not ended."""
        match self.verdict:
            case "crashed":
                return f"crashed: {self.error_class}"
            case "wrong" | "no valid answer" as verdict:
                return verdict
        return None


@dataclass(frozen=True, slots=True)
class Figures:
    """A row of the summary view: one level's figures, or all levels' where ``level`` is ``None``."""

    level: int | None
    planned: int
    runs: int
    tries: int
    completed: int
    crashed: int
    running: int
    successes: int
    format_invalid_rate: float | None
    loop_rate: float | None
    all_tokens: int | None
    tokens_per_success: float | None
    model_calls: int
    cost: float | None
    p50_latency_ms: float | None
    p95_latency_ms: float | None
    mean_turns: float | None
    tool_calls: int
    tool_errors: int
    events_dropped: int


@dataclass(frozen=True, slots=True)
class PassK:
    """pass@k and pass^k over the tasks that have ``k`` completed attempts."""

    k: int
    tasks: int
    pass_at_k: float
    pass_hat_k: float


@dataclass(frozen=True, slots=True)
class Tool:
    name: str
    calls: int
    errors: int
    p50_latency_ms: float | None


@dataclass(frozen=True, slots=True)
class Examined:
    """How many of the ``ended`` runs the rules of failures and of contamination have looked at."""

    ended: int
    by_rules: int
    for_contamination: int


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the tasks, such as one level, on both sides of a comparison; rates are shares from 0 to 1."""

    name: str
    tasks: int
    before: float
    after: float
    difference: float
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class Moved:
    """A task that was gained or lost. ``before`` and ``after`` are shares of right attempts."""

    task_id: str = field(metadata=OWN)
    attempt: int
    before: float
    after: float
    run_before: UUID | None
    run_after: UUID | None


@dataclass(frozen=True, slots=True)
class Shift:
    """How a figure per task differs: the mean of after - before, with its 95 % interval where it can be estimated."""

    tasks: int
    mean: float
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class Contrast:
    """The batch held against its baseline. ``words`` leave out what else differs, which is foreign text."""

    before: BatchTeam = field(metadata=OWN)
    scripted: bool
    verdict: str = field(metadata=OWN)
    words: str = field(metadata=OWN)
    tasks: int
    unpaired: int
    rate_before: float
    rate_after: float
    difference: Shift
    test: str = field(metadata=OWN)
    p_value: float
    tokens: Shift | None
    latency_ms: Shift | None
    levels: tuple[Part, ...]
    attachments: tuple[Part, ...]
    gained: tuple[Moved, ...]
    lost: tuple[Moved, ...]
    other_differences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """A name and a value of the contract or of the circumstances; the name is ours, the value is anybody's."""

    name: str = field(metadata=OWN)
    value: str


@dataclass(frozen=True, slots=True)
class Material:
    """All that a report of one ``batch@team`` is made of, as of one moment.

    ``no_contrast`` says why there is no comparison.
    """

    batch_team: BatchTeam = field(metadata=OWN)
    suite: str = field(metadata=OWN)
    benchmark: str = field(metadata=OWN)
    suite_hash: str = field(metadata=OWN)
    contract_hash: str = field(metadata=OWN)
    prompt_bundle_hash: str = field(metadata=OWN)
    parent: str | None = field(metadata=OWN)
    layer: str | None = field(metadata=OWN)
    change: str
    model: str
    scripted: bool
    read_at: datetime
    created_at: datetime
    figures: Figures
    levels: tuple[Figures, ...]
    passk: tuple[PassK, ...]
    tools: tuple[Tool, ...]
    accounting: Accounting
    examined: Examined
    contract: tuple[Entry, ...]
    circumstances: tuple[Entry, ...]
    runs: tuple[Run, ...]
    contrast: Contrast | None = None
    no_contrast: str | None = None
