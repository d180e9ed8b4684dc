"""What the pages print of values that a model or a data file wrote: tables stay tables, fences stay closed."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.assets.run_metadata import crash_metadata, events_metadata, run_metadata, verdict
from eval_pipeline.execution.cells import RunSummary
from eval_pipeline.markdown import cell_text, fenced, table

RUN = RunSummary(
    run_id=UUID("00000000-0000-0000-0000-000000000001"),
    task_id="sample-cafe-food-total",
    attempt=1,
    try_no=1,
    status="completed",
    success=True,
    format_valid=True,
    final_answer="89706.00",
    gold="89706.00",
    terminated_by="approve",
    error_class=None,
    error_message=None,
    turns=7,
    tool_calls=2,
    tool_errors=0,
    tokens_in=5337,
    tokens_out=333,
    all_tokens=12780,
    model_calls=12,
    latency_ms=26900,
    cost=None,
    events_dropped=0,
)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, "right"),
        ({"success": False}, "wrong"),
        ({"success": False, "format_valid": False}, "wrong (no valid answer)"),
        ({"status": "crashed", "success": None, "format_valid": None, "error_class": "quota"}, "crashed (quota)"),
        ({"status": "running", "success": None, "format_valid": None}, "running"),
    ],
)
def test_a_verdict_is_a_word(change: dict[str, object], words: str) -> None:
    assert verdict(replace(RUN, **change)) == words  # type: ignore[arg-type]


def test_a_runs_figures_have_units_and_leave_out_what_there_is_not() -> None:
    shown = run_metadata(RUN, "glm", skipped=False)
    assert (shown["tokens"], shown["all_tokens"], shown["latency_s"]) == (5670, 12780, 26.9)
    assert not {"cost", "events_dropped", "skipped"} & set(shown)
    assert run_metadata(replace(RUN, cost=0.25, events_dropped=2), "glm", skipped=False)["cost"] == 0.25


def test_an_endpoint_that_reports_no_usage_is_not_shown_as_free() -> None:
    silent = replace(RUN, tokens_in=None, tokens_out=None, all_tokens=None)
    assert run_metadata(silent, "glm", skipped=False)["tokens"] == "not reported"
    assert crash_metadata(silent, "glm")["all_tokens"] == "not reported"


def test_every_way_to_a_transcript_names_the_command_and_the_run() -> None:
    for shown in (run_metadata(RUN, "glm", skipped=True), crash_metadata(RUN, "glm"), events_metadata(RUN)):
        assert shown["run_id"] == str(RUN.run_id)
        assert f"eval-pipeline trace {RUN.run_id}" in str(shown["transcript"])


def test_a_long_answer_is_cut() -> None:
    shown = run_metadata(replace(RUN, final_answer="x" * 10_000), "glm", skipped=False)
    assert 0 < len(str(shown["answer"])) <= 300


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        ("a|b", "a\\|b"),
        ("two\nlines\tand  more", "two lines and more"),
        ("<script>alert(1)</script>", "&lt;script>alert(1)&lt;/script>"),
        ("a & b", "a &amp; b"),
        ("`code`", "'code'"),
        (0.123456, "0.123"),
        (1234.5, "1,234.5"),
        (0.0, "0"),
        (True, "True"),
        ("한글", "한글"),
    ],
)
def test_a_cell_is_one_line_that_marks_nothing_up(value: object, text: str) -> None:
    assert cell_text(value) == text


@given(st.lists(st.lists(st.text(), min_size=2, max_size=2), max_size=5))
def test_whatever_the_cells_hold_a_table_has_its_rows_and_columns(rows: list[list[str]]) -> None:
    lines = table(("one", "two"), rows).split("\n")
    assert len(lines) == 2 + len(rows)
    assert {line.replace("\\|", "").count("|") for line in lines} == {3}


@given(st.text(alphabet="`ab\n", max_size=40))
def test_nothing_inside_closes_a_fence(text: str) -> None:
    first, *inside, last = fenced(text).split("\n")
    assert first == last
    assert set(first) == {"`"}
    assert "\n".join(inside) == text
    assert first not in text
