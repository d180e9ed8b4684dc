"""Turns the stream of a run into rows and running totals: pure, no I/O, and no content makes it raise.

Everything that reaches a row has been made fit for the database and masked here, in this order, before it is
cut. Which object becomes which row is in :mod:`eval_pipeline.tracing.mapping`; writing rows is the logger's
business.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from eval_pipeline.benchmarks.final_answer import extract_final_answer
from eval_pipeline.clock import Clock
from eval_pipeline.errors import ErrorClass
from eval_pipeline.jsontypes import JsonObject
from eval_pipeline.tracing import mapping
from eval_pipeline.tracing.hygiene import SELECTOR, TEAM, TextHygiene
from eval_pipeline.tracing.items import StreamItem, ToolOutcome, Usage
from eval_pipeline.tracing.masking import Masker
from eval_pipeline.tracing.rows import CONTENT_KEPT, TOOL_RESULT_KEPT, Cut, CutJson, EventRow, count_or_none
from eval_pipeline.tracing.selector_json import FALLBACK, SHOWN_OF_A_FAILURE, parse_selector
from eval_pipeline.tracing.tool_calls import CallIds

_ERROR_SHOWN = 500
_REASON_SHOWN = 2048
_NOT_YET = datetime.min.replace(tzinfo=UTC)


@dataclass(slots=True)
class Totals:
    """The sums of a run so far, as the columns of ``runs`` want them.

    Tokens are those of agent messages and tool calls, ``None`` while none are known. ``latency_ms`` is from
    the first event to the last. ``final_answer`` is the planner's last answer line, ``full_text`` the
    planner's last message uncut (``None`` before it has spoken); both are masked, as they are stored and
    scored. ``text_repairs`` counts the characters and values that PostgreSQL would have refused.
    """

    turns: int = 0
    tool_calls: int = 0
    tool_errors: int = 0
    selector_fallbacks: int = 0
    tokens_in: int | None = None
    tokens_out: int | None = None
    latency_ms: int | None = None
    final_answer: str | None = None
    full_text: str | None = None
    text_repairs: int = 0


class RecordBuilder:
    """Makes the rows of one run, in the order of its stream, and keeps its totals.

    ``planner`` is the source whose messages are the run's answer. Not thread-safe.
    """

    def __init__(self, clock: Clock, masker: Masker, *, planner: str = "planner") -> None:
        self._clock = clock
        self._hygiene = TextHygiene(masker)
        self._planner = planner
        self._calls = CallIds()
        self._totals = Totals()
        self._seq = 0
        self._first_s: float | None = None
        self._selected: str | None = None
        """Whom the latest selector event chose, until AutoGen has named its speaker."""
        self._drafts_of: Mapping[str, Callable[[StreamItem], list[EventRow]]] = {
            mapping.FINAL_ANSWER: self._final_answer,
            mapping.TOOL_RESULT: self._outcomes,
            mapping.TOOL_CALL: self._tool_calls,
            mapping.SELECTOR_DECISION: self._selector_decision,
            mapping.EVALUATOR_SCORE: self._evaluator_score,
            mapping.AGENT_MESSAGE: self._agent_message,
            mapping.HANDOFF: self._handoff,
        }

    @property
    def totals(self) -> Totals:
        """The sums so far."""
        return replace(self._totals, text_repairs=self._hygiene.repairs)

    def rows(self, item: StreamItem) -> list[EventRow]:
        """The rows of one stream object; none for one that the trace leaves out."""
        kind = mapping.message_type(item.type, item.payload)
        if kind is None:
            return []
        return self._finished(self._drafts_of[kind](item), item.usage)

    def close_open_calls(self, reason: str) -> list[EventRow]:
        """A ``tool_error`` of class ``interrupted`` for each call without a result, when a run ends early."""
        why = self._hygiene.text(reason)
        error: JsonObject = {
            "class": ErrorClass.INTERRUPTED.value,
            "type": ErrorClass.INTERRUPTED.value,
            "message": why[:_ERROR_SHOWN],
        }
        drafts = [
            replace(
                self._draft(mapping.TOOL_ERROR, call.source, f"interrupted: {why}", TOOL_RESULT_KEPT),
                tool_name=call.name,
                tool_call_id=call.call_id,
                error=error,
            )
            for call in self._calls.take_open()
        ]
        self._totals.tool_errors += len(drafts)
        return self._finished(drafts, None)

    def _finished(self, drafts: list[EventRow], usage: Usage | None) -> list[EventRow]:
        """Number the rows of one event; tokens and latency belong to the event, so its first row has them."""
        if not drafts:
            return []
        now = self._clock.now()
        first = drafts[0]
        first.latency_ms = self._latency_ms()
        if usage is not None and first.message_type in (mapping.AGENT_MESSAGE, mapping.TOOL_CALL):
            self._add_tokens(first, usage)
        for number, row in enumerate(drafts):
            row.seq, row.ts = self._seq + number, now
        self._seq += len(drafts)
        return drafts

    def _latency_ms(self) -> int | None:
        """Milliseconds since the previous event; all together they add up to the run's."""
        now_s = self._clock.monotonic()
        if self._first_s is None:
            self._first_s = now_s
            self._totals.latency_ms = 0
            return None
        before_ms = self._totals.latency_ms or 0
        since_first_ms = max(before_ms, round((now_s - self._first_s) * 1000))
        self._totals.latency_ms = since_first_ms
        return since_first_ms - before_ms

    def _add_tokens(self, row: EventRow, usage: Usage) -> None:
        totals = self._totals
        row.tokens_in, row.tokens_out = count_or_none(usage.prompt_tokens), count_or_none(usage.completion_tokens)
        totals.tokens_in = _added(totals.tokens_in, row.tokens_in)
        totals.tokens_out = _added(totals.tokens_out, row.tokens_out)

    def _draft(self, kind: str, source: str, content: str | None, limit: int = CONTENT_KEPT) -> EventRow:
        """A row without its number and time; ``source`` and ``content`` are clean and masked."""
        if content is None:
            return EventRow(-1, _NOT_YET, kind, source)
        cut = Cut.of(content, limit)
        return EventRow(
            -1,
            _NOT_YET,
            kind,
            source,
            content=cut.kept,
            content_sha256=cut.sha256,
            content_length=cut.length,
            texts=cut.texts,
        )

    def _optional_name(self, name: str | None) -> str | None:
        return self._hygiene.name(name) if name else None

    def _agent_message(self, item: StreamItem) -> list[EventRow]:
        source, text = self._hygiene.name(item.source), self._hygiene.text(item.text)
        self._totals.turns += 1
        # a summary's text is a tool's output, which may hold an answer line that the planner never gave
        if item.source == self._planner and item.type != mapping.TOOL_SUMMARY_TYPE:
            self._totals.full_text = text
            self._totals.final_answer = extract_final_answer(text) or self._totals.final_answer
        return [self._draft(mapping.AGENT_MESSAGE, source, text)]

    def _handoff(self, item: StreamItem) -> list[EventRow]:
        row = self._draft(mapping.HANDOFF, self._hygiene.name(item.source), self._hygiene.text(item.text))
        return [replace(row, target=self._optional_name(item.handoff_target))]

    def _final_answer(self, item: StreamItem) -> list[EventRow]:
        payload: JsonObject = {
            "stop_reason": self._hygiene.text(item.stop_reason)[:_REASON_SHOWN] if item.stop_reason else None,
            "terminated_by": self._optional_name(item.terminated_by),
        }
        return [replace(self._draft(mapping.FINAL_ANSWER, TEAM, self._totals.final_answer), payload=payload)]

    def _tool_calls(self, item: StreamItem) -> list[EventRow]:
        source = self._hygiene.name(item.source)
        drafts = []
        for number, call in enumerate(item.calls):
            opened = self._calls.opened(
                self._given_id(call.call_id), self._hygiene.name(call.name), source, self._seq + number
            )
            arguments = self._hygiene.arguments(call.arguments)
            drafts.append(
                replace(
                    self._draft(mapping.TOOL_CALL, source, None),
                    tool_name=opened.name,
                    tool_call_id=opened.call_id,
                    tool_args=arguments.kept,
                    content_sha256=arguments.sha256,
                    content_length=arguments.length,
                    texts=arguments.texts,
                )
            )
        self._totals.tool_calls += len(drafts)
        return drafts

    def _given_id(self, call_id: str | None) -> str:
        return self._hygiene.text(call_id).strip() if call_id else ""

    def _outcomes(self, item: StreamItem) -> list[EventRow]:
        return [self._outcome(item, outcome, number) for number, outcome in enumerate(item.outcomes)]

    def _outcome(self, item: StreamItem, outcome: ToolOutcome, number: int) -> EventRow:
        call = self._calls.closed(
            self._given_id(outcome.call_id),
            self._hygiene.name(outcome.name),
            self._hygiene.name(item.source),
            self._seq + number,
        )
        content = self._hygiene.text(outcome.content)
        kind = mapping.TOOL_ERROR if outcome.is_error else mapping.TOOL_RESULT
        row = replace(
            self._draft(kind, self._hygiene.name(item.source), content, TOOL_RESULT_KEPT),
            tool_name=call.name,
            tool_call_id=call.call_id,
            payload=_tool_payload(outcome),
        )
        if not outcome.is_error:
            return row
        self._totals.tool_errors += 1
        return replace(row, error=self._tool_error(outcome, content))

    def _tool_error(self, outcome: ToolOutcome, content: str) -> JsonObject:
        return {
            "class": ErrorClass.TOOL.value,
            "type": self._optional_name(outcome.error_type),
            "message": content[:_ERROR_SHOWN],
        }

    def _selector_decision(self, item: StreamItem) -> list[EventRow]:
        return self._speaker(item) if item.type == mapping.SPEAKER_TYPE else [self._selection(item)]

    def _selection(self, item: StreamItem) -> EventRow:
        decision = parse_selector(item.text)
        target = self._optional_name(item.chosen) or self._optional_name(decision.next)
        self._selected = target if item.chosen is None else self._optional_name(item.chosen)
        unreadable = decision.next is None
        limit = SHOWN_OF_A_FAILURE if unreadable else CONTENT_KEPT
        row = self._draft(mapping.SELECTOR_DECISION, SELECTOR, self._hygiene.text(item.text), limit)
        summary = self._hygiene.text(decision.summary)[:SHOWN_OF_A_FAILURE]
        payload: JsonObject | None = None if unreadable or not summary else {"summary": summary}
        row.target, row.reason_code, row.payload = target, decision.reason_code, payload
        return row

    def _speaker(self, item: StreamItem) -> list[EventRow]:
        speaker, selected = self._optional_name(item.chosen), self._selected
        self._selected = None
        if speaker is None or speaker == selected:
            return []
        self._totals.selector_fallbacks += 1
        row = self._draft(mapping.SELECTOR_DECISION, SELECTOR, None)
        return [replace(row, target=speaker, reason_code=FALLBACK)]

    def _evaluator_score(self, item: StreamItem) -> list[EventRow]:
        payload = {**item.payload, **({"text": item.text} if item.text else {})}
        cut = CutJson.of(self._hygiene.json(payload))
        row = self._draft(mapping.EVALUATOR_SCORE, self._hygiene.name(item.source), None)
        row = replace(row, content_sha256=cut.sha256, content_length=cut.length, texts=cut.texts)
        return [replace(row, payload=cut.kept)]


def _added(total: int | None, count: int | None) -> int | None:
    return total if count is None else (total or 0) + count


def _tool_payload(outcome: ToolOutcome) -> JsonObject | None:
    latency_ms = count_or_none(outcome.latency_ms)
    return None if latency_ms is None else {"latency_ms": latency_ms}
