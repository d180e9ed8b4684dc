from __future__ import annotations

import hashlib

import pytest

from eval_pipeline.tracing.masking import Masker
from eval_pipeline.tracing.records import RecordBuilder, Totals
from eval_pipeline.tracing.rows import EventRow
from eval_pipeline_tests.tracing.builders import CAFE, PATH, SHEET, START, FakeClock

EXPECTED = [
    # message_type, source, target, tool, reason code, tokens
    ("agent_message", "user", None, None, None, None),
    ("selector_decision", "selector", "planner", None, "NEEDS_PLANNING", None),
    ("agent_message", "planner", None, None, None, (540, 95)),
    ("selector_decision", "selector", "executor", None, "NEEDS_EXECUTION", None),
    ("tool_call", "executor", None, "read_attached_file", None, (690, 38)),
    ("tool_result", "executor", None, "read_attached_file", None, None),
    ("agent_message", "executor", None, None, None, None),
    ("selector_decision", "selector", "planner", None, "NEEDS_PLANNING", None),
    ("agent_message", "planner", None, None, None, (1105, 60)),
    ("selector_decision", "selector", "executor", None, "NEEDS_EXECUTION", None),
    ("tool_call", "executor", None, "python_exec", None, (1230, 112)),
    ("tool_result", "executor", None, "python_exec", None, None),
    ("agent_message", "executor", None, None, None, None),
    ("selector_decision", "selector", "planner", None, "NEEDS_PLANNING", None),
    ("agent_message", "planner", None, None, None, (1380, 24)),
    ("selector_decision", "selector", "critic", None, "NEEDS_VERIFICATION", None),
    ("agent_message", "critic", None, None, None, (392, 4)),
    ("final_answer", "team", None, None, None, None),
]


@pytest.fixture
def cafe() -> tuple[list[EventRow], Totals]:
    clock = FakeClock()
    builder = RecordBuilder(clock, Masker())
    rows = []
    for ms, item in CAFE:
        clock.ms = ms
        rows += builder.rows(item)
    return rows, builder.totals


def test_the_cafe_run_is_eighteen_rows_as_specified(cafe: tuple[list[EventRow], Totals]) -> None:
    rows, _ = cafe
    seen = [
        (
            row.message_type,
            row.source,
            row.target,
            row.tool_name,
            row.reason_code,
            (row.tokens_in, row.tokens_out) if row.tokens_in else None,
        )
        for row in rows
    ]
    assert seen == EXPECTED
    assert [row.seq for row in rows] == list(range(18))


def test_the_cafe_run_has_the_specified_totals(cafe: tuple[list[EventRow], Totals]) -> None:
    _, totals = cafe
    assert totals.tokens_in is not None
    assert totals.tokens_out is not None
    assert totals.tokens_in + totals.tokens_out == 5670
    assert totals == Totals(
        turns=7,
        tool_calls=2,
        tool_errors=0,
        selector_fallbacks=0,
        tokens_in=5337,
        tokens_out=333,
        latency_ms=26_900,
        final_answer="89706.00",
        full_text="The food adds up.\nFINAL ANSWER: 89706.00",
        text_repairs=0,
    )


def test_the_latencies_of_the_events_add_up_to_the_run(cafe: tuple[list[EventRow], Totals]) -> None:
    rows, _ = cafe
    assert rows[0].latency_ms is None
    assert sum(row.latency_ms or 0 for row in rows) == 26_900
    assert (rows[5].ts - START).total_seconds() == 7.65
    assert rows[5].latency_ms == 450
    assert rows[2].latency_ms == 2900  # chunks and the confirmed speaker are no events


def test_a_long_tool_result_is_cut_and_kept_whole_under_its_hash(cafe: tuple[list[EventRow], Totals]) -> None:
    rows, _ = cafe
    result, summary = rows[5], rows[6]
    assert len(SHEET) == 3914
    assert result.content == SHEET[:2048]
    assert result.content_length == 3914
    assert result.content_sha256 == hashlib.sha256(SHEET.encode()).hexdigest()
    assert dict(result.texts) == {result.content_sha256: SHEET}
    assert result.payload == {"latency_ms": 430}
    assert summary.content == SHEET
    assert summary.content_sha256 is None
    assert summary.content_length == 3914


def test_calls_and_results_are_paired_and_arguments_are_json(cafe: tuple[list[EventRow], Totals]) -> None:
    rows, _ = cafe
    assert rows[4].tool_call_id == rows[5].tool_call_id == "call_1"
    assert rows[10].tool_call_id == rows[11].tool_call_id == "call_2"
    assert rows[4].tool_args == {"path": PATH}
    assert rows[10].tool_args == {"code": "print(89706)"}


def test_the_last_row_has_the_answer_and_why_the_run_ended(cafe: tuple[list[EventRow], Totals]) -> None:
    rows, _ = cafe
    assert rows[17].content == "89706.00"
    assert rows[17].payload == {"stop_reason": "the critic approved", "terminated_by": "approve"}


def test_the_selectors_reasons_are_kept(cafe: tuple[list[EventRow], Totals]) -> None:
    rows, _ = cafe
    assert rows[1].payload == {"summary": "nothing is planned yet"}
    assert rows[1].content is not None
    assert '"next": "planner"' in rows[1].content
