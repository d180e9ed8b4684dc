"""The traces of a report as compact JSON: every text once, cut so that the page stays below its size.

How they are drawn belongs to ``page_transcript.js``; keys are single letters since there are very many of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from eval_pipeline.jsontypes import JsonObject, JsonValue
from eval_pipeline.reporting.escaping import shown_text
from eval_pipeline.reporting.material import Event, Run, Try

BUDGET = 7_500_000
"""Bytes that the traces may take of a page; the rest of it is small beside that."""
_LADDER = (
    (20_000, 400),
    (8_192, 400),
    (4_096, 400),
    (2_048, 200),
    (1_024, 100),
    (512, 100),
    (256, 60),
    (120, 40),
    (80, 20),
)
"""(characters of one text, events of one try): the first that fits is taken, and the last whether it fits or not."""


@dataclass(frozen=True, slots=True)
class Packed:
    """The traces as a JSON value, and how much of a text and of a try it keeps."""

    value: JsonObject
    characters: int
    events: int
    cut_texts: int


def pack(runs: Sequence[Run], budget: int = BUDGET) -> Packed:
    """The traces of ``runs`` within ``budget`` bytes, with as much of each text as fits."""
    for characters, events in _LADDER:
        packed = _pack(runs, characters, events)
        if _size(packed.value) <= budget:
            break
    return packed


def _size(value: JsonValue) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass"))


class _Texts:
    """The table of texts: each once, named by its place."""

    def __init__(self, characters: int) -> None:
        self._characters = characters
        self._places: dict[str, int] = {}
        self.list: list[JsonValue] = []
        self.cut = 0

    def place(self, text: str | None) -> int | None:
        if text is None:
            return None
        if text not in self._places:
            self._places[text] = len(self.list)
            self.cut += len(text) > self._characters
            self.list.append(shown_text(text[: self._characters]))
        return self._places[text]


def _pack(runs: Sequence[Run], characters: int, events: int) -> Packed:
    texts = _Texts(characters)
    value: JsonObject = {"runs": [_run(run, texts.place, characters, events) for run in runs], "texts": texts.list}
    return Packed(value, characters, events, texts.cut)


Place = Callable[[str | None], int | None]


def _run(run: Run, place: Place, characters: int, most: int) -> JsonValue:
    signals: list[JsonValue] = [
        {"m": one.mode, "c": one.confidence, "b": one.found_by, "q": list(one.seqs), "d": place(one.detail)}
        for one in (*run.flags, *run.signals)
    ]
    return _without_nothing(
        {
            "c": run.cell.key,
            "t": run.cell.task_id,
            "a": run.cell.attempt,
            "l": run.level,
            "v": run.verdict,
            "f": run.failure,
            "q": place(run.question),
            "g": place(run.gold),
            "n": place(run.file_name),
            "w": place(run.final_answer),
            "r": place(run.score_reason or None),
            "s": signals or None,
            "y": [_try(one, place, characters, most) for one in reversed(run.tries)],
        }
    )


def _try(one: Try, place: Place, characters: int, most: int) -> JsonValue:
    left_out = one.more_events + max(0, len(one.events) - most)
    return _without_nothing(
        {
            "id": str(one.run_id),
            "n": one.try_no,
            "v": one.live or None,
            "s": one.status,
            "b": one.terminated_by,
            "x": one.error_class,
            "m": place(one.error_message),
            "a": _moment(one.started_at),
            "z": _moment(one.finished_at),
            "d": one.latency_ms,
            "t": one.turns,
            "k": one.tool_calls,
            "e": one.tool_errors or None,
            "i": one.tokens_in,
            "o": one.tokens_out,
            "I": one.all_tokens_in,
            "O": one.all_tokens_out,
            "c": one.model_calls,
            "p": one.cost,
            "f": one.selector_fallbacks or None,
            "r": one.text_repairs or None,
            "q": one.events_dropped or None,
            "l": left_out or None,
            "h": one.sandbox_level,
            "E": [_event(event, place, characters) for event in one.events[:most]],
        }
    )


def _event(event: Event, place: Place, characters: int) -> JsonValue:
    shown = max(len(event.text or ""), len(event.arguments or ""))
    whole = max(shown, event.length or 0) if event.cut or shown > characters else None
    return _without_nothing(
        {
            "n": event.seq,
            "k": event.kind,
            "s": place(event.source),
            "g": place(event.target),
            "t": place(event.text),
            "a": place(event.arguments),
            "l": whole,
            "o": place(event.tool),
            "c": place(event.call_id),
            "r": place(event.reason),
            "e": place(event.error_type),
            "b": place(event.ended_by),
            "i": event.tokens_in,
            "u": event.tokens_out,
            "m": event.latency_ms,
        }
    )


def _moment(moment: datetime | None) -> str | None:
    return None if moment is None else f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _without_nothing(members: JsonObject) -> JsonObject:
    return {name: member for name, member in members.items() if member is not None}
