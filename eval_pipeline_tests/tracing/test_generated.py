"""Ten thousand events that no model would send and some server will, through mapping, records and insert."""

from __future__ import annotations

import json

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from sqlalchemy import select, update

from eval_pipeline.db import tables
from eval_pipeline.db.checks import run_checks
from eval_pipeline.tracing.inserts import insert_traces
from eval_pipeline.tracing.items import StreamItem, ToolCall, ToolOutcome, Usage
from eval_pipeline.tracing.masking import Masker
from eval_pipeline.tracing.records import RecordBuilder
from eval_pipeline_tests.conftest import Database
from eval_pipeline_tests.tracing.builders import FakeClock, new_run

CANARY = "canary-4711"
EVENTS, EXAMPLES = 50, 200

TEXT = st.one_of(
    st.sampled_from(
        [
            "",
            "FINAL ANSWER: 한글",
            "\0\ud800",
            CANARY,
            f'{{"password": "{CANARY}", "a": [1e400, NaN]}}',
            '{"next": "planner", "reason_code": "NEEDS_PLANNING", "summary": "\\u0000"}',
            "[" * 2000,
            '{"a":' * 300 + "1" + "}" * 300,
            f'{{"token": {{"a": "{CANARY}" ',
            "x" * 9000,
            "x" * 8190 + CANARY,
            "\r\n\x1b[2J\u202e",
            '"' * 500 + "\\" * 501,
        ]
    ),
    st.text(st.characters(exclude_categories=()), max_size=12),
)
NAME = st.sampled_from(["planner", "executor", "critic", "user", "", "\0", CANARY, "이름", "n" * 5000])
CALL_ID = st.sampled_from(["", "call_0", "call_1", "call-3", "\0", CANARY, "i" * 5000])
COUNT = st.sampled_from([None, 0, 1, 540, -3, 2**31, 10**40])
USAGE = st.none() | st.builds(Usage, COUNT, COUNT)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)
ITEM = st.one_of(
    st.builds(
        StreamItem,
        st.sampled_from(
            ["TextMessage", "ToolCallSummaryMessage", "StructuredMessage[V]", "StopMessage", "Unknown", ""]
        ),
        NAME,
        text=TEXT,
        usage=USAGE,
    ),
    st.builds(
        StreamItem,
        st.just("ToolCallRequestEvent"),
        NAME,
        usage=USAGE,
        calls=st.lists(st.builds(ToolCall, CALL_ID, NAME, TEXT), max_size=3).map(tuple),
    ),
    st.builds(
        StreamItem,
        st.just("ToolCallExecutionEvent"),
        NAME,
        outcomes=st.lists(
            st.builds(ToolOutcome, CALL_ID, NAME, TEXT, st.booleans(), st.none() | NAME, COUNT), max_size=3
        ).map(tuple),
    ),
    st.builds(StreamItem, st.just("SelectorEvent"), NAME, text=TEXT, chosen=st.none() | NAME),
    st.builds(StreamItem, st.just("SelectSpeakerEvent"), NAME, chosen=st.none() | NAME),
    st.builds(StreamItem, st.just("HandoffMessage"), NAME, text=TEXT, handoff_target=st.none() | NAME),
    st.builds(
        StreamItem,
        st.just("EvaluatorScoreEvent"),
        NAME,
        text=TEXT,
        payload=st.fixed_dictionaries({"score": st.floats() | st.integers()}, optional={"why": JSON}),
    ),
    st.builds(StreamItem, st.just("TaskResult"), stop_reason=st.none() | TEXT, terminated_by=st.none() | NAME),
)


def test_generated_events_are_stored_whole_whatever_they_hold(database: Database) -> None:
    seen = 0

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.generate],  # to shrink fifty events takes minutes
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
    )
    @given(st.lists(ITEM, min_size=EVENTS, max_size=EVENTS))
    def stored_whole(items: list[StreamItem]) -> None:
        nonlocal seen
        seen += len(items)
        clock = FakeClock()
        builder = RecordBuilder(clock, Masker([CANARY]))
        rows = []
        for item in items:
            clock.ms += 10
            rows += builder.rows(item)
        rows += builder.close_open_calls("the end")

        run_id = new_run(database.engine)
        insert_traces(database.engine, [(run_id, rows)], timeout_s=30)
        totals = builder.totals
        with database.engine.begin() as connection:
            # a completed run is what the consistency queries look at
            connection.execute(
                update(tables.runs)
                .where(tables.runs.c.run_id == run_id)
                .values(
                    status="completed",
                    success=False,
                    format_valid=totals.final_answer is not None,
                    finished_at=clock.now(),
                    terminated_by="approve",
                    final_answer=totals.final_answer,
                    turns=totals.turns,
                    tool_calls=totals.tool_calls,
                    tool_errors=totals.tool_errors,
                    selector_fallbacks=totals.selector_fallbacks,
                    tokens_in=totals.tokens_in,
                    tokens_out=totals.tokens_out,
                    latency_ms=totals.latency_ms,
                    text_repairs=totals.text_repairs,
                )
            )
            stored = connection.execute(
                select(tables.events).where(tables.events.c.run_id == run_id).order_by(tables.events.c.seq)
            ).all()

        assert [row.seq for row in stored] == list(range(len(rows)))
        kinds = [row.message_type for row in stored]
        assert kinds.count("agent_message") == totals.turns
        assert kinds.count("tool_call") == totals.tool_calls
        assert kinds.count("tool_error") == totals.tool_errors
        assert [row.reason_code for row in stored].count("FALLBACK") == totals.selector_fallbacks
        assert sum(row.tokens_in or 0 for row in stored) == (totals.tokens_in or 0)
        assert sum(row.latency_ms or 0 for row in stored) == (totals.latency_ms or 0)
        for row, made in zip(stored, rows, strict=True):
            columns = {**row._mapping}
            assert CANARY not in json.dumps(columns, default=str, ensure_ascii=False)
            # a float of a payload may come back as the integer that it is written as
            assert {**columns, "payload": None} == {"run_id": run_id, **made.columns(), "payload": None}
            assert (columns["tool_args"] is None) == (row.message_type != "tool_call")
        assert all(CANARY not in body for row in rows for body in row.texts.values())

    stored_whole()
    assert seen >= EVENTS * EXAMPLES
    assert [result.check.name for result in run_checks(database.engine) if not result.passed] == []
