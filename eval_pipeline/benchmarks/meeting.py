"""meeting: minutes of a meeting, judged by how much of what was decided, assigned and discussed they say.

The rule for ``success`` and the benchmark as an object belong here, the figures to
:mod:`~eval_pipeline.benchmarks.meeting_match`, the format of the task file to
:mod:`~eval_pipeline.benchmarks.meeting_gold`. Only ``load`` does I/O.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from eval_pipeline.benchmarks.base import DEFAULTS, Answer, AnswerKind, Score, Task
from eval_pipeline.benchmarks.meeting_gold import TYPES, Meeting, own_fields, read_meeting
from eval_pipeline.benchmarks.meeting_match import Coverage, cover
from eval_pipeline.benchmarks.meeting_minutes import Minutes, TooLongError, read_minutes
from eval_pipeline.benchmarks.research_kiwi import KiwiReader, best_reader
from eval_pipeline.benchmarks.research_words import Reader
from eval_pipeline.benchmarks.tasks_file import load_tasks_file

__all__ = ["Coverage", "Meeting", "MeetingMinutes", "Minutes", "cover", "read_meeting", "read_minutes"]

_ROUNDING = 1e-9


class MeetingMinutes:
    """The benchmark; see :class:`eval_pipeline.benchmarks.base.Benchmark`."""

    name: str = "meeting"
    answers: AnswerKind = "text"
    format_block: str = (
        "Answer format: deliver the minutes as plain lines, one item a line and everything that belongs to it on that "
        "line:\n"
        "Attendees: NAME, NAME\n"
        "- [topic] what was discussed\n"
        "- [decision] what was decided\n"
        "- [action] what is to be done — owner: NAME — due: YYYY-MM-DD\n"
        "Write one line for each topic, decision and action. Leave owner and due out only where nobody and no day was "
        "named. Turn days such as 'next Friday' into dates. Write in the language of the meeting, and nothing that was "
        "not said.\n"
        "Only if the task asks for JSON, deliver one JSON object with the key items instead: a list of objects with "
        "the keys type (attendee, topic, decision or action), text, owner and due, one for each person and each item."
    )
    thresholds: Mapping[str, float] = MappingProxyType({"coverage": 0.8})
    tools: tuple[str, ...] = ()
    needs_evidence: bool = False
    grounding_table: str | None = None

    def __init__(self, reader: Reader | None = None) -> None:
        reader = reader or best_reader()
        self._reader = reader if isinstance(reader, KiwiReader) else None
        # with the analyser more Korean words are found in other forms, so another verdict is possible
        self.scorer_version: str = f"meeting-1+{reader.name}" if self._reader else "meeting-1"

    def load(self, data_dir: Path) -> list[Task]:
        return load_tasks_file(data_dir, self.name, frozenset({"meeting_date", "day_first", "items"}), own_fields)

    def score(self, task: Task, answer: Answer, thresholds: Mapping[str, float] = DEFAULTS) -> Score:
        meeting = read_meeting(task.gold)
        nothing = cover(Minutes((), structured=False), meeting)
        if not answer.full_text.strip():
            return Score(success=False, format_valid=False, metrics=_metrics(nothing, meeting), reason="no minutes")
        try:
            result = cover(read_minutes(answer.full_text, self._reader), meeting)
        except TooLongError as error:
            return Score(
                success=False, format_valid=True, metrics=_metrics(nothing, meeting), reason=f"too_long: {error}"
            )
        needed = thresholds.get("coverage", self.thresholds["coverage"])
        return Score(
            success=result.coverage >= needed - _ROUNDING,
            format_valid=True,
            metrics=_metrics(result, meeting),
            reason=_reason(result, meeting),
        )


def _metrics(result: Coverage, meeting: Meeting) -> dict[str, float]:
    figures = {
        "coverage": result.coverage,
        "items_gold": float(len(meeting.items)),
        "items_predicted": float(result.predicted),
        "items_incomplete": float(sum(value == 0.5 for value in result.hits)),
        "items_missed": float(sum(value == 0 for value in result.hits)),
    }
    figures |= {f"coverage_{kind}": value for kind, value in result.by_type.items()}
    if result.precision is not None:
        figures["precision_items"] = result.precision
    return figures


def _reason(result: Coverage, meeting: Meeting) -> str:
    """In one line what is missing, by kind; gold terms are not quoted, since it stands in reports."""
    parts = [f"covers {result.coverage:.1%} of {len(meeting.items)} items"]
    missed = Counter(item.type for item, value in zip(meeting.items, result.hits, strict=True) if value == 0)
    halves = Counter(item.type for item, value in zip(meeting.items, result.hits, strict=True) if value == 0.5)
    for word, counts in (("missing", missed), ("without the right owner or date", halves)):
        if counts:
            listed = ", ".join(f"{counts[kind]} {kind}" for kind in TYPES if counts[kind])
            parts.append(f"{word}: {listed}")
    return "; ".join(parts)
