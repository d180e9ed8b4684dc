"""Runs as OpenTelemetry traces with the GenAI conventions (semantic conventions 1.41): a trace per run.

The form is OTLP's JSON, one export request a line, as the OpenTelemetry Collector's ``otlpjsonfile`` receiver reads it;
from there it goes to Jaeger, Tempo, Phoenix, Langfuse or whatever else takes OTLP. A run is an ``invoke_workflow``
span; below it are a ``chat`` span per request to the model and an ``execute_tool`` span per tool call; what was said,
and why the selector chose, are events of the run's span. Names of our own begin with ``eval.``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

from sqlalchemy import Connection, Select, column, literal_column, select, table

from eval_pipeline.ids import BatchTeam
from eval_pipeline.jsontypes import JsonObject, JsonValue

Row = Mapping[str, object]
_INTERNAL, _CLIENT = 1, 3
_OK, _ERROR = 1, 2
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SCOPE = "eval_pipeline"
_SPOKEN = ("agent_message", "selector_decision", "final_answer", "handoff", "evaluator_score")


def traces(connection: Connection, batch_team: BatchTeam) -> Iterator[JsonObject]:
    """One export request per ended run of ``batch_team``, in the order of task and attempt."""
    for run in _rows(connection, "v_runs", "task_id", "attempt", batch_id=batch_team.batch, team_id=batch_team.team):
        if run["status"] != "running":
            events = _rows(connection, "v_trace", "seq", run_id=run["run_id"])
            calls = _rows(connection, "v_model_calls", "call_no", run_id=run["run_id"])
            yield export_request(run, events, calls)


def _rows(connection: Connection, view: str, *order: str, **equal: object) -> list[Row]:
    query: Select[tuple[object, ...]] = select(literal_column("*")).select_from(table(view))
    for name, value in equal.items():
        query = query.where(column(name) == value)
    rows = connection.execute(query.order_by(*(column(name) for name in order))).mappings()
    return [{str(name): value for name, value in row.items()} for row in rows]


def export_request(run: Row, events: Sequence[Row], calls: Sequence[Row]) -> JsonObject:
    """One ended run with its events and model calls, rows of the views of those names, as an OTLP export request."""
    run_id = run["run_id"]
    assert isinstance(run_id, UUID)
    root = _span_id(run_id, "run", 0)
    spans: list[JsonValue] = [_run_span(run, events, run_id, root)]
    spans += [_chat_span(call, run, run_id, root) for call in calls]
    spans += [_tool_span(call, events, run_id, root) for call in events if call["message_type"] == "tool_call"]
    resource = _attributes({"service.name": "eval-pipeline", "eval.suite": run["suite"], "eval.batch": run["batch_id"]})
    scope: JsonObject = {"name": _SCOPE}
    return {"resourceSpans": [{"resource": {"attributes": resource}, "scopeSpans": [{"scope": scope, "spans": spans}]}]}


def _run_span(run: Row, events: Sequence[Row], run_id: UUID, span_id: str) -> JsonObject:
    attributes = {
        "gen_ai.operation.name": "invoke_workflow",
        "gen_ai.workflow.name": run["team_id"],
        "gen_ai.agent.name": run["team_id"],
        "gen_ai.provider.name": run["provider"],
        "gen_ai.request.model": run["model"],
        "gen_ai.usage.input_tokens": run["all_tokens_in"],
        "gen_ai.usage.output_tokens": run["all_tokens_out"],
        "error.type": run["error_class"],
        "eval.team": run["team_id"],
        "eval.task": run["task_id"],
        "eval.attempt": run["attempt"],
        "eval.level": run["level"],
        "eval.scripted": run["scripted"],
        "eval.success": run["success"],
        "eval.format_valid": run["format_valid"],
        "eval.terminated_by": run["terminated_by"],
        "eval.final_answer": run["final_answer"],
        "eval.failure_stage": run["failure_stage"],
        "eval.cost": run["cost"],
    }
    crashed = run["status"] == "crashed"
    return {
        "traceId": run_id.hex,
        "spanId": span_id,
        "name": f"invoke_workflow {run['team_id']}",
        "kind": _INTERNAL,
        "startTimeUnixNano": _nanoseconds(run["started_at"]),
        "endTimeUnixNano": _nanoseconds(run["finished_at"]),
        "attributes": _attributes(attributes),
        "events": [_event(event) for event in events if event["message_type"] in _SPOKEN],
        "status": {"code": _ERROR, "message": str(run["error_message"] or "")} if crashed else {"code": _OK},
    }


def _event(event: Row) -> JsonObject:
    attributes = {
        "eval.seq": event["seq"],
        "gen_ai.agent.name": event["source"],
        "eval.chosen": event["target"],
        "eval.reason_code": event["reason_code"],
        "eval.text": event["content"],
    }
    return {
        "timeUnixNano": _nanoseconds(event["ts"]),
        "name": f"eval.{event['message_type']}",
        "attributes": _attributes(attributes),
    }


def _chat_span(call: Row, run: Row, run_id: UUID, parent: str) -> JsonObject:
    model = call["model"] or run["model"]
    reason = call["finish_reason"]
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": run["provider"],
        "gen_ai.agent.name": call["role"],
        "gen_ai.request.model": run["model"],
        "gen_ai.response.model": call["model"],
        "gen_ai.response.finish_reasons": [reason] if reason else None,
        "gen_ai.usage.input_tokens": call["prompt_tokens"],
        "gen_ai.usage.output_tokens": call["completion_tokens"],
        "http.response.status_code": call["http_status"],
        "error.type": call["error_class"],
        "eval.kind": call["kind"],
        "eval.request_attempt": call["request_attempt"],
    }
    began, latency_ms = call["started_at"], call["latency_ms"]
    assert isinstance(began, datetime)
    assert isinstance(latency_ms, int)
    ended = began + timedelta(milliseconds=latency_ms)
    failed = call["outcome"] != "ok"
    return {
        "traceId": run_id.hex,
        "spanId": _span_id(run_id, "call", call["call_no"]),
        "parentSpanId": parent,
        "name": f"chat {model}",
        "kind": _CLIENT,
        "startTimeUnixNano": _nanoseconds(began),
        "endTimeUnixNano": _nanoseconds(ended),
        "attributes": _attributes(attributes),
        "status": {"code": _ERROR, "message": str(call["error_message"] or call["outcome"])}
        if failed
        else {"code": _OK},
    }


def _tool_span(call: Row, events: Sequence[Row], run_id: UUID, parent: str) -> JsonObject:
    outcome = next(
        (
            event
            for event in events
            if event["message_type"] in ("tool_result", "tool_error") and event["tool_call_id"] == call["tool_call_id"]
        ),
        None,
    )
    failed = outcome is None or outcome["message_type"] == "tool_error"
    error = outcome["error"] if outcome is not None else None
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": call["tool_name"],
        "gen_ai.tool.call.id": call["tool_call_id"],
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.arguments": json.dumps(call["tool_args"], ensure_ascii=False),
        "gen_ai.tool.call.result": outcome["content"] if outcome is not None else None,
        "gen_ai.agent.name": call["source"],
        "error.type": (error.get("type") if isinstance(error, dict) else None) if failed else None,
        "eval.seq": call["seq"],
    }
    return {
        "traceId": run_id.hex,
        "spanId": _span_id(run_id, "tool", call["seq"]),
        "parentSpanId": parent,
        "name": f"execute_tool {call['tool_name']}",
        "kind": _INTERNAL,
        "startTimeUnixNano": _nanoseconds(call["ts"]),
        "endTimeUnixNano": _nanoseconds(outcome["ts"] if outcome is not None else call["ts"]),
        "attributes": _attributes(attributes),
        "status": {"code": _ERROR if failed else _OK},
    }


def _span_id(run_id: UUID, kind: str, number: object) -> str:
    """Sixteen hexadecimal digits, the same in every export."""
    return hashlib.sha256(f"{run_id} {kind} {number}".encode()).hexdigest()[:16]


def _nanoseconds(moment: object) -> str:
    """Since 1970; a text, since JSON's numbers are too short for it."""
    assert isinstance(moment, datetime)
    since = moment - _EPOCH
    return str((since.days * 86_400 + since.seconds) * 1_000_000_000 + since.microseconds * 1_000)


def _attributes(values: Mapping[str, object]) -> list[JsonValue]:
    return [{"key": name, "value": _value(value)} for name, value in values.items() if value is not None]


def _value(value: object) -> JsonObject:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case list():
            return {"arrayValue": {"values": [_value(one) for one in value]}}
        case _:
            return {"stringValue": str(value)}
