"""The traces of a report as compact JSON: every text once, cut so that the page stays below its size.

How they are drawn belongs to ``page_transcript.js``; keys are single letters since there are very many of them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from markupsafe import Markup

from eval_pipeline.jsontypes import JsonObject, JsonValue
from eval_pipeline.reporting.escaping import island, shown_text
from eval_pipeline.reporting.material import Event, Run, Try

BUDGET = 8_000_000
"""Bytes that the traces may take of a page; the rest of it is small beside that."""
_MOST_CHARACTERS = 20_000
_LEAST_CHARACTERS = 120
"""Of one text. What fits is found between the two."""
_EVENTS = (400, 100, 30)
"""Of one try: fewer are taken where not even the shortest texts fit."""

Place = Callable[[str | None], int | None]


@dataclass(frozen=True, slots=True)
class Packed:
    """The traces as JSON for a data island, and how much of a text and of a try it keeps."""

    json: Markup
    characters: int
    events: int
    cut_texts: int


def pack(runs: Sequence[Run], budget: int = BUDGET) -> Packed:
    """The traces of ``runs`` within ``budget`` bytes, with as much of each text as fits.

    The least is taken whether it fits or not: a hundred thousand runs are too many for one page.
    """
    for events in _EVENTS:
        texts = _Texts()
        value: list[JsonValue] = [_run(run, texts.place, events) for run in runs]
        left = budget - _size(island(value))
        characters = texts.fitting(left)
        if characters is not None:
            return _packed(value, texts, characters, events)
    return _packed(value, texts, _LEAST_CHARACTERS, events)


def _packed(runs: list[JsonValue], texts: _Texts, characters: int, events: int) -> Packed:
    whole = texts.lengths(characters)
    json = Markup('{{"runs":{},"lengths":{},"texts":{}}}').format(island(runs), island(whole), texts.kept(characters))
    return Packed(json, characters, events, len(whole))


def _size(json: Markup) -> int:
    return len(json.encode())


class _Texts:
    """The table of texts: each once, named by its place."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self._shown: list[str] = []

    def place(self, text: str | None) -> int | None:
        if text is None:
            return None
        if text not in self._places:
            self._places[text] = len(self._shown)
            self._shown.append(shown_text(text))
        return self._places[text]

    def kept(self, characters: int) -> Markup:
        """Every text, cut to so many characters."""
        return island([text[:characters] for text in self._shown])

    def fitting(self, size: int) -> int | None:
        """To how many characters texts are cut so that all are within ``size`` bytes; ``None`` where they cannot be."""
        if self._size(_MOST_CHARACTERS) <= size:
            return _MOST_CHARACTERS
        # a text is taken to be everywhere as dense as it is on average
        densities = [(len(text), _size(island(text)) / len(text)) for text in self._shown if text]

        def about(characters: int) -> int:
            return round(sum(min(length, characters) * density for length, density in densities))

        characters = bisect_right(range(_MOST_CHARACTERS), size, key=about)
        while characters > _LEAST_CHARACTERS and self._size(characters) > size:
            characters = int(0.95 * characters)
        characters = max(_LEAST_CHARACTERS, characters)
        return characters if self._size(characters) <= size else None

    def _size(self, characters: int) -> int:
        return _size(self.kept(characters)) + _size(island(self.lengths(characters)))

    def lengths(self, characters: int) -> JsonObject:
        """How long the texts are that are longer than that, by their places."""
        return {str(place): len(text) for place, text in enumerate(self._shown) if len(text) > characters}


def _run(run: Run, place: Place, most: int) -> JsonValue:
    signals: list[JsonValue] = [
        {"m": one.mode, "c": one.confidence, "b": one.found_by, "q": list(one.seqs), "d": place(one.detail)}
        for one in (*run.flags, *run.signals)
    ]
    return _without_nothing(
        {
            "c": run.cell.key,
            "l": run.level,
            "v": run.verdict,
            "f": run.failure,
            "q": place(run.question),
            "g": place(run.gold),
            "n": place(run.file_name),
            "w": place(run.answer),
            "r": place(run.score_reason or None),
            "s": signals or None,
            "y": [_try(one, place, most) for one in reversed(run.tries)],
        }
    )


def _try(one: Try, place: Place, most: int) -> JsonValue:
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
            "A": place(one.archived),
            "E": [_event(event, place) for event in one.events[:most]],
        }
    )


def _event(event: Event, place: Place) -> JsonValue:
    return _without_nothing(
        {
            "n": event.seq,
            "k": event.kind,
            "s": place(event.source),
            "g": place(event.target),
            "t": place(event.text),
            "a": place(event.arguments),
            "l": event.length,
            "x": event.cut or None,
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
