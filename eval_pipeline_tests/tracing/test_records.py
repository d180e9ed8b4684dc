from __future__ import annotations

import hashlib
import json

import pytest

from eval_pipeline.tracing.items import StreamItem, ToolCall, ToolOutcome, Usage
from eval_pipeline.tracing.masking import Masker
from eval_pipeline.tracing.records import RecordBuilder
from eval_pipeline.tracing.rows import EventRow
from eval_pipeline_tests.tracing.builders import FakeClock, calls, message, outcomes, rows_of, selection, speaker

CANARY = "canary-4711"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def builder(clock: FakeClock) -> RecordBuilder:
    return RecordBuilder(clock, Masker([CANARY]))


def only(builder: RecordBuilder, item: StreamItem) -> EventRow:
    [row] = builder.rows(item)
    return row


def arguments(builder: RecordBuilder, text: str) -> EventRow:
    return only(builder, calls(ToolCall("id", "tool", text)))


# which objects become rows


@pytest.mark.parametrize(
    "item",
    [
        StreamItem("ModelClientStreamingChunkEvent", "planner", text="FINAL ANSWER: 1"),
        StreamItem("ThoughtEvent", "planner", text="FINAL ANSWER: 1", usage=Usage(5, 5)),
        StreamItem("SomethingNew", "planner", text="FINAL ANSWER: 1"),
        StreamItem("EvaluatorScoreEvent", "judge", payload={"verdict": "good"}),
        StreamItem("ToolCallRequestEvent", "executor", usage=Usage(5, 5)),
        StreamItem("ToolCallExecutionEvent", "executor"),
    ],
)
def test_what_the_trace_leaves_out_leaves_no_mark(builder: RecordBuilder, clock: FakeClock, item: StreamItem) -> None:
    before = builder.totals
    assert builder.rows(item) == []
    assert builder.totals == before
    clock.ms = 500
    assert only(builder, message("user", "hello")).seq == 0


def test_a_structured_message_is_an_agents_message(builder: RecordBuilder) -> None:
    row = only(builder, message("critic", '{"verdict": "APPROVE"}', Usage(3, 4), "StructuredMessage[Verdict]"))
    assert (row.message_type, row.tokens_in, row.tokens_out) == ("agent_message", 3, 4)
    assert builder.totals.turns == 1


def test_a_handoff_names_its_target_and_is_no_turn(builder: RecordBuilder) -> None:
    row = only(builder, StreamItem("HandoffMessage", "planner", text="over to you", handoff_target="critic"))
    assert (row.message_type, row.source, row.target, row.content) == ("handoff", "planner", "critic", "over to you")
    assert builder.totals.turns == 0


def test_an_evaluators_score_is_its_payload(builder: RecordBuilder) -> None:
    item = StreamItem("EvaluatorScoreEvent", "judge", text="why", payload={"score": 0.5, "api_key": "x", "nan": "\0"})
    row = only(builder, item)
    assert row.message_type == "evaluator_score"
    assert row.payload == {"score": 0.5, "api_key": "***", "nan": "\ufffd", "text": "why"}
    assert row.content is None
    assert builder.totals.text_repairs == 1


def test_a_large_payload_is_cut_to_a_string_with_its_hash(builder: RecordBuilder) -> None:
    row = only(builder, StreamItem("EvaluatorScoreEvent", "judge", payload={"score": 1, "why": "한" * 9000}))
    whole = json.dumps({"score": 1, "why": "한" * 9000}, ensure_ascii=False)
    assert row.payload == whole[:8192]
    assert row.content_length == len(whole)
    assert dict(row.texts) == {row.content_sha256: whole}


def test_a_name_is_one_short_line(builder: RecordBuilder) -> None:
    row = only(builder, message("a\n b\0" + "x" * 10_000, "text"))
    assert row.source == ("a b\ufffd" + "x" * 200)[:200]
    assert only(builder, message("", "text")).source == "unnamed"


# cutting, cleaning, masking


@pytest.mark.parametrize("length", [0, 1, 8191, 8192, 8193, 100_000])
def test_a_content_is_cut_at_8192_characters(builder: RecordBuilder, length: int) -> None:
    text = "한" * length
    row = only(builder, message("planner", text))
    assert row.content == text[:8192]
    assert row.content_length == length
    assert (row.content_sha256 is None) == (length <= 8192)
    if row.content_sha256:
        assert row.content_sha256 == hashlib.sha256(text.encode()).hexdigest()
        assert row.texts[row.content_sha256] == text


@pytest.mark.parametrize("is_error", [False, True])
@pytest.mark.parametrize("length", [2048, 2049])
def test_a_tool_result_is_cut_at_2048_characters(builder: RecordBuilder, length: int, is_error: bool) -> None:
    row = only(builder, outcomes(ToolOutcome("id", "tool", "x" * length, is_error)))
    assert row.content == "x" * 2048
    assert (row.content_sha256 is not None) == (length > 2048)


def test_the_hash_is_of_the_text_as_it_is_stored(builder: RecordBuilder) -> None:
    row = only(builder, message("planner", f"\0{CANARY}" + "x" * 9000))
    stored = "\ufffd***" + "x" * 9000
    assert dict(row.texts) == {hashlib.sha256(stored.encode()).hexdigest(): stored}
    assert row.content_length == len(stored)


def test_a_secret_on_the_edge_of_a_cut_is_masked(builder: RecordBuilder) -> None:
    row = only(builder, message("planner", "x" * 8188 + CANARY + "y"))
    assert row.content == "x" * 8188 + "***y"
    row = only(builder, outcomes(ToolOutcome("id", "tool", "x" * 2045 + CANARY, False)))
    assert row.content == "x" * 2045 + "***"


def test_a_canary_reaches_no_row_wherever_it_comes_from(builder: RecordBuilder) -> None:
    rows = rows_of(
        builder,
        message(CANARY, CANARY),
        StreamItem("SelectorEvent", CANARY, text=f'{{"next": "{CANARY}", "summary": "{CANARY}"}}'),
        StreamItem("SelectorEvent", "s", text=CANARY),
        speaker(CANARY),
        calls(ToolCall(CANARY, CANARY, f'{{"{CANARY}": ["{CANARY}"]}}'), ToolCall("", CANARY, CANARY)),
        calls(ToolCall("", "t", json.dumps({"text": "password=" + "q1w2e3"}))),
        outcomes(ToolOutcome(CANARY, CANARY, CANARY * 1000, True, CANARY), ToolOutcome("", CANARY, CANARY, False)),
        StreamItem("HandoffMessage", CANARY, text=CANARY, handoff_target=CANARY),
        StreamItem("EvaluatorScoreEvent", CANARY, text=CANARY, payload={"score": 1, CANARY: CANARY}),
        message("planner", f"FINAL ANSWER: {CANARY}"),
        StreamItem("TaskResult", stop_reason=CANARY, terminated_by=CANARY),
    )
    rows += builder.close_open_calls(CANARY)
    assert len(rows) == 14
    seen = repr([(row.columns(), row.texts) for row in rows]) + repr(builder.totals)
    assert CANARY not in seen
    assert "q1w2e3" not in seen


def test_our_own_names_are_not_masked_even_if_a_password_is_one() -> None:
    builder = RecordBuilder(FakeClock(), Masker(["planner"]))
    row = only(builder, message("planner", "the planner says\nFINAL ANSWER: 1"))
    assert (row.source, row.content) == ("planner", "the *** says\nFINAL ANSWER: 1")
    assert builder.totals.final_answer == "1"


def test_repairs_are_counted_in_whatever_is_stored(builder: RecordBuilder) -> None:
    rows_of(builder, message("planner", "a\0b\ud800"), calls(ToolCall("i", "t", '{"a": "\\u0000", "b": "\\ud800"}')))
    assert builder.totals.text_repairs == 4


# tool arguments


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ('{"path": "/자료/매출.xlsx"}', {"path": "/자료/매출.xlsx"}),
        ("{}", {}),
        ("", {"_raw": ""}),
        ("not json", {"_raw": "not json"}),
        ('{"a": 1', {"_raw": '{"a": 1'}),
        ('{"a": "line\nbreak"}', {"_raw": '{"a": "line\nbreak"}'}),
        ("[1, 2]", {"_raw": "[1, 2]"}),
        ('"text"', {"_raw": '"text"'}),
        ("null", {"_raw": "null"}),
        ("7", {"_raw": "7"}),
        ('{"a": NaN, "b": -Infinity, "c": 1e400}', {"a": "NaN", "b": "-Infinity", "c": "1e400"}),
        ('{"a": ' + "9" * 5000 + "}", {"a": "9" * 5000}),
        ('{"a": 1, "a": 2}', {"a": 2}),
        ('{"password": "x", "b": {"Token": [1]}}', {"password": "***", "b": {"Token": "***"}}),
        ('[{"secret": "x"}]', {"_raw": '[{"secret": "***"}]'}),
        ('{"secret": "x"', {"_raw": '{"secret": "***"'}),
        ('{"text": "{\\"api_key\\": \\"x\\"}"}', {"text": '{"api_key": "***"}'}),
        ('{"a\\u0000": "\\udfff"}', {"a\ufffd": "\ufffd"}),
    ],
)
def test_arguments_are_json_objects_or_their_text(builder: RecordBuilder, text: str, stored: object) -> None:
    row = arguments(builder, text)
    assert row.tool_args == stored
    assert row.content is None
    assert row.content_sha256 is None


def test_arguments_that_nest_too_deep_for_json_are_kept_as_text(builder: RecordBuilder) -> None:
    text = '{"a": ' * 2000 + "1" + "}" * 2000
    row = arguments(builder, text)
    assert row.tool_args == {"_raw": text[:8192]}
    assert row.content_length == len(text)


def test_arguments_that_nest_too_deep_for_the_database_end_in_a_remark(builder: RecordBuilder) -> None:
    row = arguments(builder, '{"a": ' * 500 + "1" + "}" * 500)
    assert json.dumps(row.tool_args).count("nested deeper than 100 levels") == 1


def test_huge_arguments_are_a_string_with_the_hash_of_their_whole_text(builder: RecordBuilder) -> None:
    text = json.dumps({"code": "é" * 9000, "password": "x"}, ensure_ascii=False)
    row = arguments(builder, text)
    whole = text.replace('"x"', '"***"')
    assert row.tool_args == whole[:8192]
    assert row.content is None
    assert row.content_length == len(whole)
    assert dict(row.texts) == {row.content_sha256: whole}


def test_huge_arguments_that_are_no_json_are_cut_inside_raw(builder: RecordBuilder) -> None:
    row = arguments(builder, "x" * 9000)
    assert row.tool_args == {"_raw": "x" * 8192}
    assert row.texts[row.content_sha256 or ""] == "x" * 9000


# tool calls and their results


def test_parallel_calls_are_a_row_each_and_the_first_has_tokens_and_latency(
    builder: RecordBuilder, clock: FakeClock
) -> None:
    builder.rows(message("user", "go"))
    clock.ms = 700
    first, second = builder.rows(calls(ToolCall("a", "t", "{}"), ToolCall("b", "t", "{}"), usage=Usage(50, 7)))
    assert (first.seq, first.tokens_in, first.tokens_out, first.latency_ms) == (1, 50, 7, 700)
    assert (second.seq, second.tokens_in, second.tokens_out, second.latency_ms) == (2, None, None, None)
    clock.ms = 900
    result, error = builder.rows(
        outcomes(ToolOutcome("b", "t", "fine", False), ToolOutcome("a", "t", "no such file", True, "FileNotFoundError"))
    )
    assert (result.message_type, result.tool_call_id, result.latency_ms) == ("tool_result", "b", 200)
    assert (error.message_type, error.tool_call_id, error.latency_ms) == ("tool_error", "a", None)
    assert error.error == {"class": "tool", "type": "FileNotFoundError", "message": "no such file"}
    totals = builder.totals
    assert (totals.tool_calls, totals.tool_errors, totals.turns) == (2, 1, 1)
    assert (totals.tokens_in, totals.tokens_out, totals.latency_ms) == (50, 7, 900)


def test_calls_without_names_and_ids_can_be_stored(builder: RecordBuilder) -> None:
    row = only(builder, calls(ToolCall("", "", "")))
    assert (row.tool_name, row.tool_call_id) == ("unnamed", "call-0")
    null = only(builder, calls(ToolCall(None, "t", "{}")))  # type: ignore[arg-type]
    assert null.tool_call_id == "call-1"


def test_a_call_that_never_returned_is_closed_as_interrupted(builder: RecordBuilder, clock: FakeClock) -> None:
    rows_of(
        builder, calls(ToolCall("a", "t", "{}"), ToolCall("b", "u", "{}")), outcomes(ToolOutcome("a", "t", "", False))
    )
    clock.ms = 60_000
    [row] = builder.close_open_calls("the run's time was over")
    assert (row.seq, row.message_type, row.source) == (3, "tool_error", "executor")
    assert (row.tool_name, row.tool_call_id, row.latency_ms) == ("u", "b", 60_000)
    assert row.error == {"class": "interrupted", "type": "interrupted", "message": "the run's time was over"}
    assert builder.totals.tool_errors == 1
    assert builder.close_open_calls("again") == []


# tokens


@pytest.mark.parametrize(
    ("count", "stored"),
    [
        (0, None),
        (None, None),
        (-1, None),
        (1, 1),
        (2**31 - 1, 2**31 - 1),
        (2**31, None),
        (10**30, None),
        (True, None),
        (1.5, None),
        ("7", None),
    ],
)
def test_a_token_count_that_cannot_be_true_is_unknown(builder: RecordBuilder, count: object, stored: object) -> None:
    row = only(builder, message("planner", "x", Usage(count, count)))  # type: ignore[arg-type]
    assert (row.tokens_in, row.tokens_out) == (stored, stored)
    assert builder.totals.tokens_in == stored


def test_tokens_count_for_messages_and_calls_only(builder: RecordBuilder) -> None:
    usage = Usage(5, 1)
    for kind in ("TaskResult", "SelectorEvent", "HandoffMessage", "ToolCallExecutionEvent", "ThoughtEvent"):
        item = StreamItem(kind, "x", usage=usage, outcomes=(ToolOutcome("a", "t", "", False),))
        assert all(row.tokens_in is None for row in builder.rows(item))
    before = builder.totals
    assert before.tokens_in is None
    rows_of(builder, message("planner", "x", usage), message("critic", "x", Usage(None, 2)))
    assert (builder.totals.tokens_in, builder.totals.tokens_out) == (5, 3)


# the selector


def test_a_speaker_that_confirms_the_selector_has_no_row(builder: RecordBuilder) -> None:
    assert len(rows_of(builder, selection("critic", "NEEDS_VERIFICATION"), speaker("critic"))) == 1
    assert builder.totals.selector_fallbacks == 0


def test_every_attempt_has_a_row_and_the_last_one_is_confirmed(builder: RecordBuilder) -> None:
    failed = StreamItem("SelectorEvent", "m", text="I think executor or critic", chosen="")
    rows = rows_of(builder, failed, selection("critic", "NEEDS_VERIFICATION"), speaker("critic"))
    assert [(row.target, row.reason_code) for row in rows] == [(None, "PARSE_FAILED"), ("critic", "NEEDS_VERIFICATION")]
    assert rows[0].content == "I think executor or critic"


def test_autogens_silent_fallback_is_a_row_of_its_own(builder: RecordBuilder) -> None:
    failed = StreamItem("SelectorEvent", "m", text="?", chosen="")
    rows = rows_of(builder, failed, failed, failed, speaker("planner"), message("planner", "x"))
    assert [row.message_type for row in rows] == ["selector_decision"] * 4 + ["agent_message"]
    assert (rows[3].target, rows[3].reason_code, rows[3].content) == ("planner", "FALLBACK", None)
    assert builder.totals.selector_fallbacks == 1


def test_a_speaker_other_than_the_selected_one_is_a_fallback(builder: RecordBuilder) -> None:
    rows = rows_of(builder, selection("critic", "NEEDS_VERIFICATION"), speaker("planner"))
    assert [(row.target, row.reason_code) for row in rows] == [
        ("critic", "NEEDS_VERIFICATION"),
        ("planner", "FALLBACK"),
    ]


def test_a_decision_confirms_one_speaker_only(builder: RecordBuilder) -> None:
    rows = rows_of(builder, selection("critic", "NEEDS_VERIFICATION"), speaker("critic"), speaker("critic"))
    assert [row.reason_code for row in rows] == ["NEEDS_VERIFICATION", "FALLBACK"]


def test_a_speaker_that_nobody_selected_has_a_row(builder: RecordBuilder) -> None:
    assert only(builder, speaker("executor")).reason_code == "FALLBACK"
    assert builder.rows(speaker(None)) == []


def test_a_name_that_is_no_participants_is_shown_as_the_models_choice(builder: RecordBuilder) -> None:
    item = StreamItem("SelectorEvent", "m", text='{"next": "nobody", "reason_code": "NEEDS_PLANNING"}', chosen="")
    rows = rows_of(builder, item, speaker("planner"))
    assert [(row.target, row.reason_code) for row in rows] == [("nobody", "NEEDS_PLANNING"), ("planner", "FALLBACK")]


def test_an_unreadable_choice_keeps_500_characters_and_its_hash(builder: RecordBuilder) -> None:
    row = only(builder, StreamItem("SelectorEvent", "m", text="?" * 700, chosen=""))
    assert (row.content, row.content_length) == ("?" * 500, 700)
    assert row.texts[row.content_sha256 or ""] == "?" * 700


# the answer


def test_the_planners_last_answer_line_counts_and_its_last_message_is_the_full_text(builder: RecordBuilder) -> None:
    long = "x" * 20_000
    rows_of(
        builder,
        message("user", "FINAL ANSWER: user"),
        message("planner", "FINAL ANSWER: 1\nFINAL ANSWER: 2"),
        message("executor", "FINAL ANSWER: executor"),
        message("critic", "I read FINAL ANSWER: critic\nAPPROVE"),
        message("planner", long),
    )
    assert builder.totals.final_answer == "2"
    assert builder.totals.full_text == long


def test_a_tools_output_is_not_the_planners_answer(builder: RecordBuilder) -> None:
    rows_of(builder, message("planner", "FINAL ANSWER: injected", type_name="ToolCallSummaryMessage"))
    assert builder.totals.final_answer is None
    assert builder.totals.full_text is None


def test_another_source_can_be_the_planner() -> None:
    builder = RecordBuilder(FakeClock(), Masker(), planner="lead")
    rows_of(builder, message("planner", "FINAL ANSWER: 1"), message("lead", "FINAL ANSWER: 2"))
    assert builder.totals.final_answer == "2"


def test_a_run_without_an_answer_ends_with_an_empty_row(builder: RecordBuilder) -> None:
    row = only(builder, StreamItem("TaskResult", terminated_by="max_messages"))
    assert (row.message_type, row.content) == ("final_answer", None)
    assert row.payload == {"stop_reason": None, "terminated_by": "max_messages"}


# time


def test_a_clock_that_is_read_at_the_same_moment_adds_nothing(builder: RecordBuilder, clock: FakeClock) -> None:
    rows = rows_of(builder, message("user", "a"), message("planner", "b"))
    assert [row.latency_ms for row in rows] == [None, 0]
    clock.ms = -5000
    assert only(builder, message("critic", "c")).latency_ms == 0
    assert builder.totals.latency_ms == 0


def test_fractions_of_milliseconds_do_not_add_up_to_a_difference(builder: RecordBuilder, clock: FakeClock) -> None:
    rows = []
    for step in range(1000):
        clock.ms = step * 0.4  # type: ignore[assignment]
        rows += builder.rows(message("planner", "x"))
    assert sum(row.latency_ms or 0 for row in rows) == builder.totals.latency_ms == 400
