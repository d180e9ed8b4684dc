"""Runs as OpenTelemetry traces, read back with OpenTelemetry's own reader."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert, text

from eval_pipeline.db import tables
from eval_pipeline.export.otlp import traces
from eval_pipeline.ids import BatchTeam
from eval_pipeline_tests.commands.running import command
from eval_pipeline_tests.conftest import Database
from eval_pipeline_tests.db.builders import Rows
from eval_pipeline_tests.played import V1, V5


def values(span: Mapping[str, Any]) -> dict[str, Any]:
    return {one["key"]: next(iter(one["value"].values())) for one in span["attributes"]}


def spans(request: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [dict(span) for span in request["resourceSpans"][0]["scopeSpans"][0]["spans"]]


def test_a_run_is_a_trace_of_its_model_and_tool_calls(played: Database) -> None:
    with played.engine.connect() as connection:
        exported = {values(spans(one)[0])["eval.task"]: spans(one) for one in traces(connection, V5)}
        query = "select run_id, all_tokens_in, model_calls from runs where team_id = :team and task_id = :task"
        known = {"team": V5.team, "task": "sample-cafe-food-total"}
        run = connection.execute(text(query), known).one()
    root, *children = exported["sample-cafe-food-total"]
    assert root["name"] == "invoke_workflow v5-multitool"
    assert root["traceId"] == run.run_id.hex
    assert "parentSpanId" not in root
    told = values(root)
    assert (told["eval.success"], told["eval.final_answer"], told["eval.scripted"]) == (True, "89706.00", True)
    assert told["gen_ai.usage.input_tokens"] == str(run.all_tokens_in)
    chats = [span for span in children if values(span)["gen_ai.operation.name"] == "chat"]
    tools = [span for span in children if values(span)["gen_ai.operation.name"] == "execute_tool"]
    assert len(chats) == run.model_calls
    assert {values(span)["gen_ai.agent.name"] for span in chats} == {"planner", "executor", "critic", "selector"}
    assert [span["name"] for span in tools] == ["execute_tool read_attached_file", "execute_tool python_exec"]
    assert values(tools[1])["gen_ai.tool.call.result"] == "89706.00"
    # the whole text, not what the row keeps of it
    assert len(values(tools[0])["gen_ai.tool.call.result"]) == 3914
    assert json.loads(values(tools[0])["gen_ai.tool.call.arguments"])["path"].endswith("cafe_sales.xlsx")
    said = [event["name"] for event in root["events"]]
    assert said[:3] == ["eval.agent_message", "eval.selector_decision", "eval.agent_message"]
    assert said[-1] == "eval.final_answer"
    for span in children:
        assert span["parentSpanId"] == root["spanId"]
        assert int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"])
    assert len({span["spanId"] for span in (root, *children)}) == 1 + len(children)


def test_a_failed_tool_is_an_error_of_its_type(played: Database) -> None:
    with played.engine.connect() as connection:
        found = [span for one in traces(connection, V1) for span in spans(one) if "execute_tool" in span["name"]]
    failed = [span for span in found if span["status"]["code"] == 2]
    assert {values(span)["error.type"] for span in failed} == {"FileNotFoundError"}


def test_a_crash_an_open_call_and_odd_texts_are_told_and_a_run_under_way_is_not(rows: Rows) -> None:
    rows.one_run()
    rows.task("t2")
    rows.cell("t2")
    run_id = rows.crashed("t2", error_message="reset")
    rows.event(run_id, 0, source="user", content="한글 \ufffd\u202e")
    rows.event(run_id, 1, "tool_call", source="executor", tool_name="t", tool_call_id="c", tool_args="cut {")
    call = {"call_no": 0, "role": "planner", "kind": "turn", "latency_ms": 250, "outcome": "error"}
    rows.connection.execute(insert(tables.model_calls).values(run_id=run_id, error_class="connection", **call))
    (request,) = traces(rows.connection, BatchTeam("b1", "v1"))
    root, chat, tool = spans(request)
    assert (root["status"], values(root)["error.type"]) == ({"code": 2, "message": "reset"}, "connection")
    assert values(root["events"][0])["eval.text"] == "한글 \ufffd\u202e"
    assert (chat["status"]["code"], values(chat)["error.type"]) == (2, "connection")
    assert int(chat["endTimeUnixNano"]) - int(chat["startTimeUnixNano"]) == 250_000_000
    assert (tool["status"]["code"], tool["startTimeUnixNano"]) == (2, tool["endTimeUnixNano"])
    assert json.loads(values(tool)["gen_ai.tool.call.arguments"]) == "cut {"


def test_opentelemetrys_own_reader_takes_every_line(played: Database, tmp_path: Path) -> None:
    service = pytest.importorskip("opentelemetry.proto_json.collector.trace.v1.trace_service")
    shown = command("export", "--batch", V1.key, "--format", "otlp", "--output", str(tmp_path))
    path = tmp_path / V1.key / "traces.jsonl"
    assert f"{path}: 5 rows" in shown.out
    lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    assert len(lines) == 5
    for line in lines:
        request = service.ExportTraceServiceRequest.from_json(line)
        assert json.loads(request.to_json()) == json.loads(line)
        (scope,) = request.resource_spans[0].scope_spans
        assert {len(span.trace_id) for span in scope.spans} == {16}
        assert {len(span.span_id) for span in scope.spans} == {8}
