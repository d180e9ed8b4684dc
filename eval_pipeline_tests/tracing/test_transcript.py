from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from eval_pipeline.tracing.inserts import insert_traces
from eval_pipeline.tracing.items import StreamItem, ToolCall, ToolOutcome
from eval_pipeline.tracing.masking import Masker
from eval_pipeline.tracing.records import RecordBuilder
from eval_pipeline.tracing.rows import EventRow
from eval_pipeline.tracing.transcript import render_markdown, render_text, transcript_rows
from eval_pipeline_tests.conftest import Database
from eval_pipeline_tests.tracing.builders import (
    CAFE,
    SHEET,
    FakeClock,
    calls,
    message,
    new_run,
    outcomes,
    rows_of,
    selection,
    speaker,
)

RUN = {
    "batch_id": "first",
    "team_id": "v5-multitool",
    "task_id": "sample-cafe",
    "attempt": 1,
    "try_no": 1,
    "status": "completed",
    "success": True,
    "terminated_by": "approve",
    "final_answer": "89706.00",
    "turns": 7,
    "tool_calls": 2,
    "tool_errors": 0,
    "tokens_in": 5337,
    "tokens_out": 333,
    "latency_ms": 26_900,
    "events_dropped": 0,
    "text_repairs": 0,
}


def made(*items: StreamItem) -> list[EventRow]:
    return rows_of(RecordBuilder(FakeClock(), Masker()), *items)


def cafe() -> list[EventRow]:
    clock = FakeClock()
    builder = RecordBuilder(clock, Masker())
    rows = []
    for ms, item in CAFE:
        clock.ms = ms
        rows += builder.rows(item)
    return rows


@pytest.mark.parametrize("full_texts", [False, True])
def test_a_stored_trace_is_read_as_it_was_made(database: Database, full_texts: bool) -> None:
    run_id, other = new_run(database.engine), new_run(database.engine)
    rows = cafe()
    insert_traces(database.engine, [(run_id, rows)], timeout_s=10)
    insert_traces(database.engine, [(other, rows[:3])], timeout_s=10)
    with database.engine.connect() as connection:
        read = transcript_rows(connection, run_id, full_texts=full_texts)
    assert [row.columns() for row in read] == [row.columns() for row in rows]
    assert dict(read[5].texts) == (dict(rows[5].texts) if full_texts else {})


def test_a_run_without_events_has_an_empty_transcript(database: Database) -> None:
    with database.engine.connect() as connection:
        rows = transcript_rows(connection, new_run(database.engine), full_texts=True)
    assert rows == []
    assert "first@v5-multitool" in render_text(RUN, rows)


def as_read() -> list[EventRow]:
    """The café run as it is read without its full texts."""
    return [replace(row, texts={}) for row in cafe()]


def test_the_text_says_who_spoke_why_and_what_it_cost() -> None:
    text = render_text(RUN, as_read())
    for expected in [
        "first@v5-multitool sample-cafe#1\n",
        "completed · right · approve",
        "answer 89706.00",
        "7 turns · 2 tool calls · 0 tool errors · 5,337 + 333 tokens · 26,900 ms",
        "   1  selector → planner, NEEDS_PLANNING  [+1,100 ms]\n      │ nothing is planned yet",
        "   4  executor calls read_attached_file call_1  [690 + 38 tokens · +2,200 ms]",
        '      │   "path": "/stage/sample-cafe/cafe_sales.xlsx"',
        "   5  read_attached_file returned call_1  [+450 ms · cut, all 3,914 characters are stored as ",
        "  17  the end: approve, the critic approved  [+100 ms]\n      │ 89706.00",
    ]:
        assert expected in text


def test_the_markdown_says_the_same() -> None:
    markdown = render_markdown(RUN, as_read())
    assert markdown.startswith("## `first@v5-multitool` `sample-cafe#1`\n\n- completed · right · approve\n")
    assert (
        "**3** selector → `executor`, `NEEDS_EXECUTION` — +1,000 ms\n\n```\nthe workbook must be read\n```" in markdown
    )
    cut = render_markdown(RUN, as_read()[5:6])
    assert SHEET[:2048] in cut
    assert SHEET[:2049] not in cut


def test_a_full_text_is_shown_whole_and_not_called_cut() -> None:
    rows = cafe()
    assert "cut, all" not in render_text(RUN, rows[5:6])
    assert SHEET in render_markdown(RUN, rows[5:6])


def test_errors_fallbacks_scores_and_handoffs_are_told() -> None:
    rows = made(
        speaker("critic"),
        StreamItem("SelectorEvent", "m", text="who knows", chosen=""),
        calls(ToolCall("a", "read", "not json"), ToolCall("b", "read", '{"path": "x"}')),
        outcomes(ToolOutcome("a", "read", "no such file: x", True, "FileNotFoundError")),
        StreamItem("HandoffMessage", "planner", text="over", handoff_target="critic"),
        StreamItem("EvaluatorScoreEvent", "judge", payload={"score": 0.5}),
        StreamItem("TaskResult"),
    )
    text = render_text({"status": "crashed", "error_class": "timeout", "error_message": "no answer", "try_no": 2}, rows)
    for expected in [
        "?@? ?#? (try 2)",
        "crashed · timeout",
        "error no answer",
        "AutoGen by itself → critic, FALLBACK",
        "selector → nobody, PARSE_FAILED",
        "      │ who knows",
        "      │ not json",
        "read failed a with FileNotFoundError",
        "      │ no such file: x",
        "planner hands over to critic",
        'judge scores  [+0 ms]\n      │ {\n      │   "score": 0.5\n      │ }',
        "the end: no reason given, no reason given",
    ]:
        assert expected in text


def test_losses_repairs_and_scripted_models_are_told() -> None:
    run = {**RUN, "events_dropped": 1, "text_repairs": 3, "scripted": True, "success": False}
    for shown in (render_text(run, []), render_markdown(run, [])):
        assert "scripted model" in shown
        assert "wrong" in shown
        assert "1 event of this trace could not be stored" in shown
        assert "3 characters could not be stored as they were" in shown


HOSTILE = [
    "```\n<script>alert(1)</script>\n```",
    "````````",
    "~~~\n# heading\n~~~",
    "</pre><img src=x onerror=alert(1)>",
    "`",
    "a\r```\rb",
    "\x1b[2J\x1b]0;title\x07",
    "\u202egnp.exe \u2066",
    "",
]


def outside_fences(markdown: str) -> Sequence[str]:
    """The lines that a Markdown reader does not take for code, by CommonMark's rule for backtick fences."""
    outside, fence = [], ""
    for line in markdown.split("\n"):
        ticks = len(line) - len(line.lstrip("`"))
        if fence:
            if ticks >= len(fence) and not line.strip("`").strip():
                fence = ""
        elif ticks >= 3:
            fence = "`" * ticks
        else:
            outside.append(line)
    assert not fence
    return outside


@pytest.mark.parametrize("hostile", HOSTILE)
def test_nothing_of_a_trace_is_taken_for_markdown_html_or_terminal_codes(hostile: str) -> None:
    rows = made(
        message(hostile, hostile),
        selection(hostile, "NEEDS_PLANNING", hostile),
        calls(ToolCall(hostile, hostile, hostile)),
        outcomes(ToolOutcome(hostile, hostile, hostile, True, hostile)),
        StreamItem("TaskResult", stop_reason=hostile, terminated_by=hostile),
    )
    run = {**RUN, "final_answer": hostile, "error_message": hostile}
    markdown, text = render_markdown(run, rows), render_text(run, rows)
    for shown in (markdown, text):
        assert not any(ord(sign) < 0x20 and sign != "\n" for sign in shown)
        assert not any(sign in shown for sign in "\x7f\u202e\u2066")
    code_spans_removed = "\n".join(outside_fences(markdown))
    for length in range(20, 0, -1):
        pieces = code_spans_removed.split("`" * length)
        if len(pieces) % 2:
            code_spans_removed = "".join(pieces[::2])
    assert "<" not in code_spans_removed
    assert "#" not in code_spans_removed.replace("## ", "", 1)
