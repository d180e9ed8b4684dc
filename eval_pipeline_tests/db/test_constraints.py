"""Every rule that the database keeps, broken through SQL."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import timedelta
from enum import StrEnum
from hashlib import sha256
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import Table, delete, insert, select, text, update
from sqlalchemy.exc import DBAPIError, IntegrityError

from eval_pipeline.db import tables
from eval_pipeline.errors import ErrorClass
from eval_pipeline.run_ids import Month
from eval_pipeline_tests.db.builders import NOON, Rows

Break = Callable[[Rows], object]


def refused(rows: Rows, attempt: Break) -> str:
    """The name of the constraint that refuses ``attempt``."""
    with pytest.raises(IntegrityError) as caught:
        attempt(rows)
    name: str = caught.value.orig.diag.constraint_name  # type: ignore[union-attr]
    return name


RUNNING: dict[str, dict[str, Any]] = {
    "an end": {"finished_at": NOON},
    "a verdict": {"success": True},
    "a format": {"format_valid": True},
    "an ending": {"terminated_by": "approve"},
    "an error": {"error_class": "quota"},
}
COUNTS = (
    "latency_ms",
    "turns",
    "tool_calls",
    "tool_errors",
    "selector_fallbacks",
    "tokens_in",
    "tokens_out",
    "all_tokens_in",
    "all_tokens_out",
    "model_calls",
    "events_dropped",
    "text_repairs",
)


def completed(**columns: Any) -> Break:
    return lambda rows: rows.completed(**columns)


def crashed(**columns: Any) -> Break:
    return lambda rows: rows.crashed(**columns)


def running(**columns: Any) -> Break:
    return lambda rows: rows.run(**columns)


RUNS: dict[str, tuple[str, Break]] = {
    "an unknown status": ("runs_status_is_known", running(status="paused")),
    "an unknown ending": ("runs_terminated_by_is_known", completed(terminated_by="boredom")),
    "an unknown error class": ("runs_error_class_is_known", crashed(error_class="gremlins")),
    "completed without success": ("runs_completed_needs_verdict", completed(success=None)),
    "completed without format_valid": ("runs_completed_needs_verdict", completed(format_valid=None)),
    "completed without an end": ("runs_completed_needs_verdict", completed(finished_at=None)),
    "completed with an error": ("runs_completed_has_no_error", completed(error_class="tool")),
    "crashed without an error class": ("runs_crashed_needs_error_class", crashed(error_class=None)),
    "crashed without an end": ("runs_crashed_needs_error_class", crashed(finished_at=None)),
    "crashed and wrong": ("runs_crashed_has_no_verdict", crashed(success=False)),
    "crashed with a format": ("runs_crashed_has_no_verdict", crashed(format_valid=False)),
    "a superseded try that is running": ("runs_superseded_try_has_crashed", running(live=False)),
    "a superseded try that is completed": ("runs_superseded_try_has_crashed", completed(live=False)),
    "a try 0": ("runs_try_no_counts_from_1", running(try_no=0)),
    "a negative level": ("runs_level_is_not_negative", running(level=-1)),
    "a negative cost": ("runs_cost_is_a_finite_amount", running(cost=-0.01)),
    "an infinite cost": ("runs_cost_is_a_finite_amount", running(cost=math.inf)),
    "a cost that is no number": ("runs_cost_is_a_finite_amount", running(cost=math.nan)),
    "a cell that is not planned": ("runs_cell_is_planned", running(attempt=2)),
    "a batch that there is not": ("runs_cell_is_planned", running(batch_id="b2")),
    "a task content that there is not": ("runs_task_is_stored", running(task_hash="h2")),
    **{f"running with {what}": ("runs_running_has_not_ended", running(**columns)) for what, columns in RUNNING.items()},
    **{f"a negative {name}": ("runs_counts_are_not_negative", running(**{name: -1})) for name in COUNTS},
}


@pytest.fixture
def planned(rows: Rows) -> Rows:
    """A cell without a try."""
    rows.team()
    rows.task()
    rows.batch()
    rows.cell()
    return rows


@pytest.mark.parametrize(("constraint", "attempt"), RUNS.values(), ids=RUNS.keys())
def test_a_run_is_refused_that_is(planned: Rows, constraint: str, attempt: Break) -> None:
    assert refused(planned, attempt) == constraint


def test_a_running_run_needs_few_columns(planned: Rows) -> None:
    planned.run()
    row = planned.connection.execute(select(tables.runs)).one()
    assert (row.status, row.try_no, row.live) == ("running", 1, True)
    assert (row.turns, row.tool_calls, row.events_dropped, row.abandoned) == (0, 0, 0, False)
    assert row.started_at is not None
    assert row.heartbeat_at is not None
    assert (row.tokens_in, row.all_tokens_in, row.cost) == (None, None, None)


@pytest.mark.parametrize("terminated_by", ["approve", "max_messages", "timeout", "token_limit", None])
def test_a_completed_run_may_have_ended_by(planned: Rows, terminated_by: str | None) -> None:
    planned.completed(terminated_by=terminated_by)


@pytest.mark.parametrize("error_class", ErrorClass)
def test_every_error_class_of_the_code_can_be_stored(planned: Rows, error_class: StrEnum) -> None:
    run_id = planned.crashed(error_class=str(error_class))
    call = {"run_id": run_id, "call_no": 0, "role": "planner", "kind": "turn", "latency_ms": 1, "outcome": "error"}
    planned.connection.execute(insert(tables.model_calls).values(**call, error_class=str(error_class)))


def test_a_cell_has_one_live_try(planned: Rows) -> None:
    planned.run()
    assert refused(planned, running(try_no=2)) == "runs_one_live_try"


def test_a_try_number_is_given_once(planned: Rows) -> None:
    planned.crashed(live=False)
    assert refused(planned, running()) == "runs_try_no_is_unique"


def test_a_crashed_try_can_be_superseded_by_a_new_live_one(planned: Rows) -> None:
    first = planned.crashed()
    planned.connection.execute(update(tables.runs).where(tables.runs.c.run_id == first).values(live=False))
    planned.run(try_no=2)
    live = planned.connection.scalars(select(tables.runs.c.try_no).where(tables.runs.c.live)).all()
    assert live == [2]


BIG = "가" * 8193
EVENTS: dict[str, tuple[str, dict[str, Any]]] = {
    "an unknown type": ("events_message_type_is_known", {"message_type": "telepathy"}),
    "a seq below 0": ("events_seq_counts_from_0", {"seq": -1}),
    "a call without a name": (
        "events_tool_call_needs_name_and_id",
        {"message_type": "tool_call", "tool_call_id": "c1"},
    ),
    "a call without an id": (
        "events_tool_call_needs_name_and_id",
        {"message_type": "tool_call", "tool_name": "python_calc"},
    ),
    "a result without a call id": ("events_tool_outcome_needs_call_id", {"message_type": "tool_result"}),
    "an error without a call id": (
        "events_tool_outcome_needs_call_id",
        {"message_type": "tool_error", "error": {"type": "ValueError"}},
    ),
    "an error without its payload": (
        "events_tool_error_needs_error",
        {"message_type": "tool_error", "tool_call_id": "c1"},
    ),
    "an error whose payload is a JSON null": (
        "events_tool_error_needs_error",
        {"message_type": "tool_error", "tool_call_id": "c1", "error": text("'null'::jsonb")},
    ),
    "a decision without a reason": ("events_selector_decision_needs_reason", {"message_type": "selector_decision"}),
    "a content of 8,193 characters": ("events_content_is_cut", {"content": BIG}),
    "a tool result of 2,049 characters": (
        "events_content_is_cut",
        {"message_type": "tool_result", "tool_call_id": "c1", "content": BIG[:2049]},
    ),
    "a cut content whose full text is missing": (
        "events_full_text_is_kept",
        {"content_sha256": "0" * 64, "content_length": 9000},
    ),
    "a tool name without an end": ("events_tool_name_is_short", {"tool_name": "x" * 257}),
    "a negative length": ("events_counts_are_not_negative", {"content_length": -1}),
    "negative tokens in": ("events_counts_are_not_negative", {"tokens_in": -1}),
    "negative tokens out": ("events_counts_are_not_negative", {"tokens_out": -1}),
    "a negative latency": ("events_counts_are_not_negative", {"latency_ms": -1}),
    "a run that there is not": ("events_run_is_stored", {"run_id": uuid4()}),
}


@pytest.mark.parametrize(("constraint", "columns"), EVENTS.values(), ids=EVENTS.keys())
def test_an_event_is_refused_with(rows: Rows, constraint: str, columns: dict[str, Any]) -> None:
    event = {"run_id": rows.one_run(), "seq": 0, "message_type": "agent_message"} | columns
    assert refused(rows, lambda _: rows.connection.execute(insert(tables.events).values(event))) == constraint


@pytest.mark.parametrize(
    "columns",
    [
        {"message_type": "agent_message", "content": BIG[:8192]},
        {"message_type": "tool_call", "tool_name": "python_calc", "tool_call_id": "", "tool_args": {"식": "1+1"}},
        {"message_type": "tool_result", "tool_call_id": "c1", "content": BIG[:2048]},
        {"message_type": "tool_error", "tool_call_id": "c1", "error": {"type": "ValueError"}},
        {"message_type": "selector_decision", "reason_code": "NEEDS_PLANNING", "target": "planner"},
        {"message_type": "final_answer", "content": "42"},
        {"message_type": "handoff", "target": "critic"},
        {"message_type": "evaluator_score", "payload": {"score": 0.5}},
    ],
    ids=lambda columns: columns["message_type"],
)
def test_an_event_is_stored_of_type(rows: Rows, columns: dict[str, Any]) -> None:
    rows.event(rows.one_run(), 0, **columns)


def test_two_events_cannot_have_one_number(rows: Rows) -> None:
    run_id = rows.one_run()
    rows.event(run_id, 0)
    # a unique index is its partition's, and has its name
    assert re.fullmatch(r"events_[a-z0-9_]+_pkey", refused(rows, lambda _: rows.event(run_id, 0)))


def test_a_cut_content_needs_its_full_length(rows: Rows) -> None:
    run_id = rows.one_run()
    digest = store_text(rows, BIG)
    assert (
        refused(rows, lambda _: rows.event(run_id, 0, content_sha256=digest)) == "events_cut_content_keeps_its_length"
    )


def store_text(rows: Rows, body: str, **columns: Any) -> str:
    digest = sha256(body.encode()).hexdigest()
    values: dict[str, Any] = {"sha256": digest, "body": body, "length": len(body)} | columns
    rows.connection.execute(insert(tables.texts).values(values))
    return digest


@pytest.mark.parametrize("body", ["", "plain", "한글 émoji 🙂", "\r\n\t"])
def test_a_text_is_stored_under_its_own_hash_and_length(rows: Rows, body: str) -> None:
    assert store_text(rows, body) == sha256(body.encode()).hexdigest()


def test_a_text_under_another_hash_is_refused(rows: Rows) -> None:
    assert refused(rows, lambda _: store_text(rows, "a", sha256="0" * 64)) == "texts_sha256_is_of_the_body"


def test_a_text_with_another_length_is_refused(rows: Rows) -> None:
    assert refused(rows, lambda _: store_text(rows, "한글", length=6)) == "texts_length_is_of_the_body"


def test_a_text_that_an_event_needs_cannot_be_deleted(rows: Rows) -> None:
    digest = store_text(rows, BIG)
    rows.event(rows.one_run(), 0, content_sha256=digest, content_length=len(BIG))
    assert refused(rows, lambda _: rows.connection.execute(delete(tables.texts))) == "events_full_text_is_kept"


MODEL_CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "an unknown role": ("model_calls_role_is_known", {"role": "jester"}),
    "an unknown kind": ("model_calls_kind_is_known", {"kind": "whim"}),
    "an unknown outcome": ("model_calls_outcome_is_known", {"outcome": "maybe"}),
    "attempt 0": ("model_calls_attempt_counts_from_1", {"attempt": 0}),
    "an unknown error class": ("model_calls_error_class_is_known", {"error_class": "gremlins"}),
    "an error without its class": ("model_calls_error_needs_class", {"outcome": "error"}),
    "a negative number": ("model_calls_counts_are_not_negative", {"call_no": -1}),
    "a negative latency": ("model_calls_counts_are_not_negative", {"latency_ms": -1}),
    "negative prompt tokens": ("model_calls_counts_are_not_negative", {"prompt_tokens": -1}),
    "negative completion tokens": ("model_calls_counts_are_not_negative", {"completion_tokens": -1}),
    "a negative HTTP status": ("model_calls_counts_are_not_negative", {"http_status": -1}),
    "a run that there is not": ("model_calls_run_is_stored", {"run_id": uuid4()}),
}


@pytest.mark.parametrize(("constraint", "columns"), MODEL_CALLS.values(), ids=MODEL_CALLS.keys())
def test_a_model_call_is_refused_with(rows: Rows, constraint: str, columns: dict[str, Any]) -> None:
    call: dict[str, Any] = {"run_id": rows.one_run(), "call_no": 0, "role": "planner", "kind": "turn"}
    call |= {"latency_ms": 1, "outcome": "ok"} | columns
    assert refused(rows, lambda _: rows.connection.execute(insert(tables.model_calls).values(call))) == constraint


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_metric_is_a_finite_number(rows: Rows, value: float) -> None:
    metric = {"run_id": rows.one_run(), "name": "f1", "scorer_version": "1", "value": value}
    statement = insert(tables.run_metrics).values(metric)
    assert refused(rows, lambda _: rows.connection.execute(statement)) == "run_metrics_value_is_finite"


RESEARCH = {"evidence": 3, "claims": 4, "claims_cited": 2, "claims_supported": 2, "citations": 3, "citations_valid": 3}
CPPX = {
    "facts": 4,
    "facts_found": 3,
    "forbidden_found": 0,
    "identifiers": 2,
    "identifiers_valid": 2,
    "locations": 1,
    "locations_valid": 1,
}
GROUNDING: list[tuple[str, str, dict[str, Any]]] = [
    *(("research_grounding", "counts_are_not_negative", {name: -1}) for name in RESEARCH),
    *(("cppx_grounding", "counts_are_not_negative", {name: -1}) for name in CPPX),
    ("research_grounding", "parts_fit_the_whole", {"claims_cited": 5}),
    ("research_grounding", "parts_fit_the_whole", {"claims_supported": 5}),
    ("research_grounding", "parts_fit_the_whole", {"citations_valid": 4}),
    ("cppx_grounding", "parts_fit_the_whole", {"facts_found": 5}),
    ("cppx_grounding", "parts_fit_the_whole", {"identifiers_valid": 3}),
    ("cppx_grounding", "parts_fit_the_whole", {"locations_valid": 2}),
    *(
        ("research_grounding", "shares_are_0_to_1", {name: value})
        for name in ("citation_precision", "citation_recall", "grounding_f1")
        for value in (-0.1, 1.1, math.nan)
    ),
    *(
        ("cppx_grounding", "shares_are_0_to_1", {name: value})
        for name in ("fact_ratio", "identifier_precision", "location_precision")
        for value in (-0.1, 1.1, math.nan)
    ),
]


@pytest.mark.parametrize(("table", "rule", "columns"), GROUNDING)
def test_figures_of_grounding_are_refused(rows: Rows, table: str, rule: str, columns: dict[str, Any]) -> None:
    figures = RESEARCH if table == "research_grounding" else CPPX
    values = {"run_id": rows.one_run(), "scorer_version": "1"} | figures | columns
    statement = insert(tables.metadata.tables[table]).values(values)
    assert refused(rows, lambda _: rows.connection.execute(statement)) == f"{table}_{rule}"


EXPERIMENTS: dict[str, tuple[str, dict[str, Any]]] = {
    "one team on both sides": ("experiments_teams_differ", {"team_after": "v1"}),
    "a negative number of tasks": ("experiments_tasks_compared_is_not_negative", {"tasks_compared": -1}),
    "a difference without an interval": ("experiments_figures_come_together", {"difference": 0.1}),
    "an interval upside down": (
        "experiments_interval_is_in_order",
        {"difference": 0.1, "ci_low": 0.2, "ci_high": 0.1},
    ),
    "a difference above 1": (
        "experiments_figures_are_differences",
        {"difference": 1.5, "ci_low": 0.2, "ci_high": 0.3},
    ),
}


@pytest.mark.parametrize(("constraint", "columns"), EXPERIMENTS.values(), ids=EXPERIMENTS.keys())
def test_an_experiment_is_refused_with(rows: Rows, constraint: str, columns: dict[str, Any]) -> None:
    values: dict[str, Any] = {"experiment_id": "EXP-1", "hypothesis": "It helps.", "layer": "prompt"}
    values |= {"team_before": "v1", "team_after": "v2"} | columns
    statement = insert(tables.experiments).values(values)
    assert refused(rows, lambda _: rows.connection.execute(statement)) == constraint


CIRCUITS: dict[str, tuple[str, dict[str, Any]]] = {
    "a negative count": ("circuits_failures_not_negative", {"failures": -1}),
    "an opening without a reason": ("circuits_open_has_a_reason", {"opened_at": NOON}),
}


@pytest.mark.parametrize(("constraint", "columns"), CIRCUITS.values(), ids=CIRCUITS.keys())
def test_a_circuit_is_refused_with(rows: Rows, constraint: str, columns: dict[str, Any]) -> None:
    statement = insert(tables.circuits).values({"endpoint": "localhost:8000"} | columns)
    assert refused(rows, lambda _: rows.connection.execute(statement)) == constraint


SIGNAL = {"mode": "step_repetition", "version": "rules-1", "confidence": "signal", "seqs": [1]}
FLAG = {"rule": "answer_key", "version": "1", "confidence": "signal", "seqs": [1], "detail": ""}
EXAMINATION = {"examiner": "rules", "version": "rules-1"}
FINDINGS: dict[str, tuple[str, Table, dict[str, Any]]] = {
    "a signal of unknown confidence": (
        "failure_signals_confidence_is_known",
        tables.failure_signals,
        SIGNAL | {"confidence": "sure"},
    ),
    "a signal found by nobody known": (
        "failure_signals_found_by_is_known",
        tables.failure_signals,
        SIGNAL | {"found_by": "gossip"},
    ),
    "a mode with a number": ("failure_signals_mode_is_a_name", tables.failure_signals, SIGNAL | {"mode": "1.3"}),
    "a long detail": ("failure_signals_detail_is_short", tables.failure_signals, SIGNAL | {"detail": "x" * 501}),
    "a rule with spaces": ("contamination_flags_rule_is_a_name", tables.contamination_flags, FLAG | {"rule": "a b c"}),
    "a flag of unknown confidence": (
        "contamination_flags_confidence_is_known",
        tables.contamination_flags,
        FLAG | {"confidence": "sure"},
    ),
    "a flag without an event": (
        "contamination_flags_names_its_events",
        tables.contamination_flags,
        FLAG | {"seqs": []},
    ),
    "a flag with a long detail": (
        "contamination_flags_detail_is_short",
        tables.contamination_flags,
        FLAG | {"detail": "x" * 501},
    ),
    "an unknown examiner": (
        "examinations_examiner_is_known",
        tables.examinations,
        EXAMINATION | {"examiner": "a guest"},
    ),
    "an examination without a version": (
        "examinations_version_is_short",
        tables.examinations,
        EXAMINATION | {"version": ""},
    ),
}


@pytest.mark.parametrize(("constraint", "table", "columns"), FINDINGS.values(), ids=FINDINGS.keys())
def test_a_finding_is_refused_that_is(rows: Rows, constraint: str, table: Table, columns: dict[str, Any]) -> None:
    statement = insert(table).values({"run_id": rows.one_run()} | columns)
    assert refused(rows, lambda _: rows.connection.execute(statement)) == constraint


ARCHIVED: dict[str, tuple[str, dict[str, Any]]] = {
    "a month that is none": ("archived_months_month_is_one", {"month": "2026-13"}),
    "a range without an end": ("archived_months_range_is_in_order", {"end_id": Month(2026, 10).first_id}),
    "a negative count": ("archived_months_counts_are_not_negative", {"texts": -1}),
    "texts that went before their events": ("archived_months_texts_go_last", {"texts_dropped_at": NOON}),
}


@pytest.mark.parametrize(("constraint", "columns"), ARCHIVED.values(), ids=ARCHIVED.keys())
def test_an_archived_month_is_refused_with(rows: Rows, constraint: str, columns: dict[str, Any]) -> None:
    month = Month(2026, 10)
    values = {"month": str(month), "first_id": month.first_id, "end_id": month.end_id, "folder": "f"}
    values |= {"manifest_sha256": "0" * 64, "events": 1, "model_calls": 1, "texts": 0} | columns
    assert refused(rows, lambda _: rows.connection.execute(insert(tables.archived_months).values(values))) == constraint


CONFIGURATION: dict[str, tuple[str, Break]] = {
    "a task with half a file": ("tasks_file_is_whole_or_absent", lambda rows: rows.task("t2", file_name="a.xlsx")),
    "a task with a negative level": ("tasks_level_is_not_negative", lambda rows: rows.task("t2", level=-1)),
    "a file of negative size": (
        "tasks_file_size_is_not_negative",
        lambda rows: rows.task("t2", file_name="a", file_sha256="f", file_size=-1),
    ),
    "a summary that there is not": (
        "stale_summaries_summary_is_known",
        lambda rows: rows.connection.execute(
            insert(tables.stale_summaries).values(batch_id="b1", team_id="v1", summary="mv_runs")
        ),
    ),
    "a stale summary of no batch": (
        "stale_summaries_is_of_a_batch",
        lambda rows: rows.connection.execute(
            insert(tables.stale_summaries).values(batch_id="b9", team_id="v1", summary="mv_passk")
        ),
    ),
    "a task stored twice": ("tasks_pkey", lambda rows: rows.task()),
    "a team of neither kind": ("teams_answers_is_line_or_text", lambda rows: rows.team("v2", answers="song")),
    "a team that extends itself": ("teams_is_not_its_own_parent", lambda rows: rows.team("v2", parent_id="v2")),
    "changes that are no list": ("teams_changes_is_a_list", lambda rows: rows.team("v2", changes={})),
    "a spec that is no object": ("teams_spec_is_an_object", lambda rows: rows.team("v2", spec=[])),
    "a batch of an unknown team": ("batches_team_is_registered", lambda rows: rows.batch("b2", "v9")),
    "a contract that is no object": ("batches_contract_is_an_object", lambda rows: rows.batch("b2", contract=[])),
    "a cell of an unknown batch": ("plan_batch_is_frozen", lambda rows: rows.cell(batch_id="b2")),
    "a cell of an unknown task": ("plan_task_is_stored", lambda rows: rows.cell("t2")),
    "attempt 0": ("plan_attempt_is_1_to_9999", lambda rows: rows.cell(attempt=0)),
    "attempt 10000": ("plan_attempt_is_1_to_9999", lambda rows: rows.cell(attempt=10_000)),
}


@pytest.mark.parametrize(("constraint", "attempt"), CONFIGURATION.values(), ids=CONFIGURATION.keys())
def test_the_configuration_is_refused_of(planned: Rows, constraint: str, attempt: Break) -> None:
    assert refused(planned, attempt) == constraint


@pytest.mark.parametrize(
    "columns",
    [
        {"prompt_bundle_hash": "q" * 64},
        {"contract_hash": "q" * 64},
        {"spec": {"prompts": {"planner": "Plan!"}}},
        {"answers": "text"},
        {"team_id": "v2"},
    ],
    ids=lambda columns: next(iter(columns)),
)
def test_what_decides_a_stored_teams_runs_cannot_be_updated(rows: Rows, columns: dict[str, Any]) -> None:
    rows.team()
    with pytest.raises(DBAPIError) as caught:
        rows.connection.execute(update(tables.teams).values(columns))
    assert caught.value.orig is not None
    assert str(caught.value.orig).splitlines()[0] == (
        "team 'v1' is registered with another content, which cannot be changed; give the changed team a new id"
    )


def test_what_only_describes_a_team_can_be_updated(rows: Rows) -> None:
    rows.team()
    rows.connection.execute(update(tables.teams).values(change="better words", contract_hash="c" * 64))


def test_a_team_that_has_batches_cannot_be_deleted(planned: Rows) -> None:
    assert refused(planned, lambda _: planned.connection.execute(delete(tables.teams))) == "batches_team_is_registered"


@pytest.mark.parametrize(
    "columns",
    [
        {"contract": {"suite": "other"}},
        {"contract_hash": "x" * 64},
        {"suite": "other"},
        {"suite_hash": "x" * 64},
        {"benchmark": "sql"},
        {"provider": "openai"},
        {"model": "other"},
        {"scripted": False},
        {"batch_id": "b2"},
    ],
    ids=lambda columns: next(iter(columns)),
)
def test_a_contract_cannot_be_updated(rows: Rows, columns: dict[str, Any]) -> None:
    rows.team()
    rows.batch()
    with pytest.raises(DBAPIError) as caught:
        rows.connection.execute(update(tables.batches).values(columns))
    assert caught.value.orig is not None
    assert str(caught.value.orig).splitlines()[0] == (
        "the contract of batch 'b1' under team 'v1' is fixed and cannot be changed; start a new batch"
    )


def test_what_is_recorded_of_a_batch_for_information_can_be_updated(rows: Rows) -> None:
    rows.team()
    rows.batch()
    rows.connection.execute(update(tables.batches).values(info={"git_commit": "abc"}))


@pytest.mark.parametrize("table", ["plan", "batches", "tasks"])
def test_nothing_under_a_run_can_be_deleted(rows: Rows, table: str) -> None:
    rows.one_run()
    with pytest.raises(IntegrityError):
        rows.connection.execute(delete(tables.metadata.tables[table]))


def test_a_run_takes_its_trace_calls_and_metrics_with_it(rows: Rows) -> None:
    run_id = rows.one_run()
    rows.event(run_id, 0)
    connection = rows.connection
    call = {"run_id": run_id, "call_no": 0, "role": "critic", "kind": "turn", "latency_ms": 1, "outcome": "ok"}
    connection.execute(insert(tables.model_calls).values(call))
    version = {"run_id": run_id, "scorer_version": "1"}
    connection.execute(insert(tables.run_metrics).values(version | {"name": "f1", "value": 0.5}))
    connection.execute(insert(tables.research_grounding).values(version | RESEARCH))
    connection.execute(insert(tables.cppx_grounding).values(version | CPPX))
    connection.execute(delete(tables.runs))
    for name in ("events", "model_calls", "run_metrics", "research_grounding", "cppx_grounding"):
        assert connection.execute(select(tables.metadata.tables[name])).all() == [], name


def test_none_in_a_json_column_is_null_and_not_a_json_null(rows: Rows) -> None:
    rows.event(rows.one_run(), 0, tool_args=None, payload=None, error=None)
    found = rows.connection.scalar(text("select num_nulls(tool_args, payload, error) from events"))
    assert found == 3


def test_every_check_constraint_of_the_schema_is_tried_here(rows: Rows) -> None:
    tried = {name for name, _ in (*RUNS.values(), *EVENTS.values(), *MODEL_CALLS.values())}
    tried |= {name for name, _ in (*EXPERIMENTS.values(), *CIRCUITS.values(), *CONFIGURATION.values())}
    tried |= {name for name, _, _ in FINDINGS.values()}
    tried |= {name for name, _ in ARCHIVED.values()}
    tried |= {f"{table}_{rule}" for table, rule, _ in GROUNDING}
    tried |= {
        "events_cut_content_keeps_its_length",
        "texts_sha256_is_of_the_body",
        "texts_length_is_of_the_body",
        "run_metrics_value_is_finite",
    }
    there = rows.connection.scalars(
        text("select conname from pg_constraint where contype = 'c' and connamespace = current_schema()::regnamespace")
    ).all()
    assert set(there) - tried == set()


def test_a_wall_clock_that_was_put_back_does_not_stop_a_run_from_ending(planned: Rows) -> None:
    planned.completed(started_at=NOON + timedelta(hours=1))
