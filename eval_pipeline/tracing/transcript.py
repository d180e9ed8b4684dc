"""A stored trace as something to read: who spoke, why the selector chose, which tool was called, what it
cost.

Read-only. The content of a trace was written by models and tools, so nothing of it is taken for Markdown,
HTML or an order to the terminal.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import Connection, select

from eval_pipeline.db import tables
from eval_pipeline.jsontypes import JsonValue
from eval_pipeline.tracing import mapping
from eval_pipeline.tracing.hygiene import RAW
from eval_pipeline.tracing.rows import EventRow
from eval_pipeline.tracing.selector_json import FALLBACK

_CONTROLS = {code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\n\t"}
# terminals obey these, and readers are misled by text that runs the other way
_OTHERS = (*range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x2028, 0x2029)
_VISIBLE = {**_CONTROLS, **{code: f"\\u{code:04x}" for code in _OTHERS}}


@dataclass(frozen=True, slots=True)
class _Entry:
    """One event to be shown: a line about it, and its text."""

    number: int
    words: tuple[str, ...]
    """Alternately our words and a name from the trace, beginning with our words."""
    notes: tuple[str, ...]
    text: str | None


def transcript_rows(connection: Connection, run_id: UUID, *, full_texts: bool = False) -> list[EventRow]:
    """The trace of a try in its order; with ``full_texts`` each row brings in ``texts`` what was cut from it."""
    events, texts = tables.events, tables.texts
    columns = [column for column in events.c if column.name != "run_id"]
    rows = connection.execute(select(*columns).where(events.c.run_id == run_id).order_by(events.c.seq)).mappings()
    found = [dict(row) for row in rows]
    bodies: dict[str, str] = {}
    if full_texts:
        hashes = {row["content_sha256"] for row in found if row["content_sha256"] is not None}
        stored = connection.execute(select(texts.c.sha256, texts.c.body).where(texts.c.sha256.in_(hashes)))
        bodies = {str(sha256): str(body) for sha256, body in stored}
    return [
        EventRow(**row, texts={key: bodies[key] for key in (row["content_sha256"],) if key in bodies}) for row in found
    ]


def render_markdown(run: Mapping[str, object], rows: Sequence[EventRow]) -> str:
    """The transcript as Markdown. ``run`` is a row of ``runs`` or ``v_runs``; a column that it lacks is not shown."""
    lines = [f"## {_markdown_line(_title(run))}", ""]
    lines += [f"- {_markdown_line(words)}" for words in _facts(run)]
    for entry in _entries(rows):
        notes = f" — {' · '.join(entry.notes)}" if entry.notes else ""
        lines += ["", f"**{entry.number}** {_markdown_line(entry.words)}{notes}"]
        if entry.text is not None:
            fence = "`" * (1 + max(2, _longest_run(entry.text)))
            lines += ["", fence, entry.text, fence]
    return "\n".join((*lines, ""))


def render_text(run: Mapping[str, object], rows: Sequence[EventRow]) -> str:
    """The transcript as plain text for a terminal; ``run`` as for :func:`render_markdown`."""
    lines = [_plain_line(_title(run))]
    lines += [f"  {_plain_line(words)}" for words in _facts(run)]
    for entry in _entries(rows):
        notes = f"  [{' · '.join(entry.notes)}]" if entry.notes else ""
        lines += ["", f"{entry.number:>4}  {_plain_line(entry.words)}{notes}"]
        if entry.text is not None:
            lines += [f"      │ {line}" for line in entry.text.split("\n")]
    return "\n".join((*lines, ""))


def _title(run: Mapping[str, object]) -> tuple[str, ...]:
    batch_team = f"{run.get('batch_id', '?')}@{run.get('team_id', '?')}"
    cell = f"{run.get('task_id', '?')}#{run.get('attempt', '?')}"
    try_no = run.get("try_no", 1)
    return ("", batch_team, " ", cell, "" if try_no == 1 else f" (try {try_no})")


def _facts(run: Mapping[str, object]) -> Iterator[tuple[str, ...]]:
    if run.get("scripted"):
        yield ("scripted model: no model was asked",)
    yield (_outcome(run),)
    if run.get("final_answer") is not None:
        yield ("answer ", str(run["final_answer"]))
    if run.get("error_message"):
        yield ("error ", str(run["error_message"]))
    figures = [
        _counted(run.get("turns"), "turn"),
        _counted(run.get("tool_calls"), "tool call"),
        _counted(run.get("tool_errors"), "tool error"),
        _tokens(run.get("tokens_in"), run.get("tokens_out")),
        _milliseconds(run.get("latency_ms")),
    ]
    if any(figures):
        yield (" · ".join(filter(None, figures)),)
    if run.get("events_dropped"):
        yield (f"{_counted(run['events_dropped'], 'event')} of this trace could not be stored",)
    if run.get("text_repairs"):
        yield (f"{_counted(run['text_repairs'], 'character')} could not be stored as they were and stand as \ufffd",)


def _outcome(run: Mapping[str, object]) -> str:
    words = [str(run.get("status", "unknown status"))]
    if run.get("success") is not None:
        words.append("right" if run["success"] else "wrong")
    words += [str(run[name]) for name in ("terminated_by", "error_class") if run.get(name)]
    return " · ".join(words)


def _entries(rows: Iterable[EventRow]) -> Iterator[_Entry]:
    for row in rows:
        text = _text(row)
        yield _Entry(row.seq, _words(row), tuple(_notes(row)), None if text is None else visible(text))


def _words(row: EventRow) -> tuple[str, ...]:
    tool, source, target = row.tool_name or "?", row.source, row.target or "nobody"
    match row.message_type:
        case mapping.SELECTOR_DECISION if row.reason_code == FALLBACK:
            words: tuple[str, ...] = ("AutoGen by itself → ", target, f", {FALLBACK}")
        case mapping.SELECTOR_DECISION:
            words = ("selector → ", target, ", ", row.reason_code or "?")
        case mapping.TOOL_CALL:
            words = ("", source, " calls ", tool, " ", row.tool_call_id or "?")
        case mapping.TOOL_RESULT:
            words = ("", tool, " returned ", row.tool_call_id or "?")
        case mapping.TOOL_ERROR:
            words = ("", tool, " failed ", row.tool_call_id or "?", " with ", _error_type(row))
        case mapping.FINAL_ANSWER:
            words = ("the end: ", _of_payload(row, "terminated_by"), ", ", _of_payload(row, "stop_reason"))
        case mapping.HANDOFF:
            words = ("", source, " hands over to ", target)
        case mapping.EVALUATOR_SCORE:
            words = ("", source, " scores")
        case _:
            words = ("", source)
    return words


def _notes(row: EventRow) -> Iterator[str]:
    tokens = _tokens(row.tokens_in, row.tokens_out)
    if tokens:
        yield tokens
    if row.latency_ms is not None:
        yield f"+{_milliseconds(row.latency_ms)}"
    if row.content_sha256 is not None and row.content_sha256 not in row.texts:
        yield f"cut, all {_counted(row.content_length, 'character')} are stored as {row.content_sha256}"


def _text(row: EventRow) -> str | None:
    full = row.texts.get(row.content_sha256 or "")
    if full is not None:
        return full
    match row.message_type:
        case mapping.TOOL_CALL:
            return _json_text(row.tool_args)
        case mapping.EVALUATOR_SCORE:
            return _json_text(row.payload)
        case mapping.SELECTOR_DECISION if isinstance(row.payload, dict) and "summary" in row.payload:
            return str(row.payload["summary"])
    return row.content


def _json_text(value: JsonValue) -> str:
    """``value`` for people: a text that was cut or is no JSON as it is, line breaks in a lone string as such."""
    if isinstance(value, dict) and set(value) == {RAW}:
        value = value[RAW]
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


def _error_type(row: EventRow) -> str:
    return str(row.error.get("type") or "an error") if isinstance(row.error, dict) else "an error"


def _of_payload(row: EventRow, key: str) -> str:
    value = row.payload.get(key) if isinstance(row.payload, dict) else None
    return str(value) if value is not None else "no reason given"


def _counted(count: object, thing: str) -> str:
    if not isinstance(count, int):
        return ""
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"


def _tokens(tokens_in: object, tokens_out: object) -> str:
    if tokens_in is None and tokens_out is None:
        return ""
    shown = (f"{count:,}" if isinstance(count, int) else "?" for count in (tokens_in, tokens_out))
    return " + ".join(shown) + " tokens"


def _milliseconds(count: object) -> str:
    return f"{count:,} ms" if isinstance(count, int) else ""


def visible(text: str) -> str:
    """``text`` with a visible sign for every character that would steer a terminal or mislead a reader."""
    return text.replace("\r\n", "\n").translate(_VISIBLE)


def _plain_line(words: tuple[str, ...]) -> str:
    return " ".join(visible("".join(words)).split("\n"))


def _markdown_line(words: tuple[str, ...]) -> str:
    """Our words as they are, each name between them as a code span, in which nothing has a meaning."""
    return "".join(_code(word) if number % 2 else word for number, word in enumerate(words))


def _code(text: str) -> str:
    text = " ".join(visible(text).split()) or "?"
    ticks = "`" * (1 + _longest_run(text))
    return f"{ticks} {text} {ticks}" if "`" in text else f"{ticks}{text}{ticks}"


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)
