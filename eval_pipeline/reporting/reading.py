"""Reads the material of one report from the database, all of it as of one moment. Nothing is counted or worded here."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime
from uuid import UUID

from sqlalchemy import Connection, Engine, RowMapping, select

from eval_pipeline.comparison.outcomes import outcomes
from eval_pipeline.db import tables
from eval_pipeline.db.accounting import accounting
from eval_pipeline.db.lookups import expect_lookups
from eval_pipeline.db.sqlfiles import query
from eval_pipeline.db.views import tool_summary
from eval_pipeline.errors import IdError
from eval_pipeline.ids import BatchTeam, TaskAttempt, shown
from eval_pipeline.jsontypes import JsonValue
from eval_pipeline.reporting.contrast import contrast_with_baseline
from eval_pipeline.reporting.material import Entry, Event, Figures, Material, PassK, Run, Tool, Try
from eval_pipeline.reporting.signals import examined, flags_of, signals_of
from eval_pipeline.tracing import mapping
from eval_pipeline.tracing.hygiene import RAW

MOST_CHARACTERS = 20_000
"""Of one text of a trace; what is longer is read with ``eval-pipeline trace --full``."""
MOST_EVENTS = 400
"""Of one try; a run that loops through its tools can have any number of them."""

_ANSWERING = (mapping.AGENT_MESSAGE, "planner")
_COUNTS = frozenset({"planned", "runs", "tries", "completed", "crashed", "running", "successes"}) | {
    "model_calls",
    "tool_calls",
    "tool_errors",
    "events_dropped",
}


def read_material(engine: Engine, batch_team: BatchTeam, against: BatchTeam | None = None) -> Material:
    """The material of ``batch_team``, compared with ``against`` or else with its default baseline.

    The tools' figures are those of ``mv_tool_summary`` at its last refresh; everything else is fresh.

    Raises:
        IdError: there is no such batch.
        ComparisonError: ``against`` ran over other tasks, or shares no completed task.
    """
    snapshot = engine.connect().execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
    with snapshot as connection:
        expect_lookups(connection)
        batch = _batch(connection, batch_team)
        figures = _figures(connection, batch_team)
        contrast, no_contrast = contrast_with_baseline(connection, outcomes(connection, batch_team), against)
        return Material(
            batch_team=batch_team,
            suite=batch["suite"],
            benchmark=batch["benchmark"],
            suite_hash=batch["suite_hash"],
            contract_hash=batch["contract_hash"],
            prompt_bundle_hash=batch["prompt_bundle_hash"],
            parent=batch["parent_id"],
            layer=batch["layer"],
            change=batch["change"],
            model=batch["model"],
            scripted=batch["scripted"],
            read_at=datetime.now(UTC),
            created_at=batch["created_at"],
            figures=next((row for row in figures if row.level is None), NOTHING_PLANNED),
            levels=tuple(row for row in figures if row.level is not None),
            passk=tuple(PassK(**row) for row in _rows(connection, "report_passk", batch_team)),
            tools=_tools(connection, batch_team),
            accounting=accounting(connection, batch_team),
            examined=examined(connection, batch_team),
            contract=_entries(batch["contract"]),
            circumstances=_entries(batch["info"]),
            runs=_runs(connection, batch_team, by_text=batch["answers"] == "text"),
            contrast=contrast,
            no_contrast=no_contrast,
        )


NOTHING_PLANNED = Figures(
    **dict.fromkeys(_COUNTS, 0),
    level=None,
    format_invalid_rate=None,
    loop_rate=None,
    all_tokens=None,
    tokens_per_success=None,
    cost=None,
    p50_latency_ms=None,
    p95_latency_ms=None,
    mean_turns=None,
)
"""The figures of a batch in which nothing was ever planned."""


def _rows(connection: Connection, name: str, batch_team: BatchTeam, **bound: int) -> Sequence[RowMapping]:
    parameters = {"batch_id": batch_team.batch, "team_id": batch_team.team, **bound}
    return connection.execute(query(name), parameters).mappings().all()


def _batch(connection: Connection, batch_team: BatchTeam) -> RowMapping:
    batches, teams = tables.batches, tables.teams
    row = (
        connection.execute(
            select(
                batches,
                teams.c.answers,
                teams.c.parent_id,
                teams.c.layer,
                teams.c.change,
                teams.c.prompt_bundle_hash,
            )
            .join(teams, teams.c.team_id == batches.c.team_id)
            .where(batches.c.batch_id == batch_team.batch, batches.c.team_id == batch_team.team)
        )
        .mappings()
        .one_or_none()
    )
    if row is None:
        raise IdError(f"there is no batch {shown(batch_team.key)}; eval-pipeline status lists those there are")
    return row


def _figures(connection: Connection, batch_team: BatchTeam) -> list[Figures]:
    names = [field.name for field in fields(Figures)]
    return [Figures(**{name: row[name] for name in names}) for row in _rows(connection, "report_figures", batch_team)]


def _tools(connection: Connection, batch_team: BatchTeam) -> tuple[Tool, ...]:
    rows = [row._mapping for row in tool_summary(connection, batch_team)]
    tools = [Tool(str(row["tool_name"]), row["calls"], row["errors"], row["p50_latency_ms"]) for row in rows]
    return tuple(sorted(tools, key=lambda tool: (-tool.calls, tool.name)))


def _entries(values: Mapping[str, JsonValue]) -> tuple[Entry, ...]:
    return tuple(Entry(name, _entry_text(value)) for name, value in sorted(values.items()))


def _entry_text(value: JsonValue) -> str:
    match value:
        case None:
            return "–"
        case str():
            return value
        case dict() if all(isinstance(member, str) or member is None for member in value.values()):
            return "\n".join(f"{name} {member or '–'}" for name, member in sorted(value.items())) or "–"
    return json.dumps(value, ensure_ascii=False)


def _runs(connection: Connection, batch_team: BatchTeam, *, by_text: bool) -> tuple[Run, ...]:
    tries = _tries(connection, batch_team)
    signals, flags = signals_of(connection, batch_team), flags_of(connection, batch_team)
    found = []
    for row in _rows(connection, "report_runs", batch_team):
        cell, run_id = TaskAttempt(row["task_id"], row["attempt"]), row["run_id"]
        columns = {name: value for name, value in row.items() if name not in ("task_id", "attempt", "final_answer")}
        run = Run(
            cell=cell,
            answer=_last_message(tries.get(cell, ())) if by_text else row["final_answer"],
            tries=tries.get(cell, ()),
            signals=signals.get(run_id, ()),
            flags=flags.get(run_id, ()),
            **columns,
        )
        found.append(run)
    return tuple(found)


def _last_message(tries: Sequence[Try]) -> str | None:
    """The planner's last message in the live try; ``None`` where the trace is not all there, which would be a guess."""
    live = next((one for one in tries if one.live), None)
    if live is None or live.more_events:
        return None
    said = (event.text for event in reversed(live.events) if (event.kind, event.source) == _ANSWERING)
    return next(said, None)


def _tries(connection: Connection, batch_team: BatchTeam) -> dict[TaskAttempt, tuple[Try, ...]]:
    counts = {row["run_id"]: row["events"] for row in _rows(connection, "report_event_counts", batch_team)}
    events = _events(connection, batch_team)
    found: dict[TaskAttempt, list[Try]] = {}
    for row in _rows(connection, "report_tries", batch_team):
        run_id = row["run_id"]
        columns = {name: value for name, value in row.items() if name not in ("task_id", "attempt")}
        one = Try(**columns, events=tuple(events.get(run_id, ())))
        one = replace(one, more_events=counts.get(run_id, 0) - len(one.events))
        found.setdefault(TaskAttempt(row["task_id"], row["attempt"]), []).append(one)
    return {cell: tuple(tries) for cell, tries in found.items()}


def _events(connection: Connection, batch_team: BatchTeam) -> dict[UUID, list[Event]]:
    found: dict[UUID, list[Event]] = {}
    for row in _rows(connection, "report_events", batch_team, characters=MOST_CHARACTERS, events=MOST_EVENTS):
        found.setdefault(row["run_id"], []).append(_event(row))
    return found


def _event(row: RowMapping) -> Event:
    kind, payload, error, text = row["message_type"], row["payload"], row["error"], row["content"]
    length, cut, arguments = row["content_length"], row["cut"], None
    if kind == mapping.TOOL_CALL:
        # a call has no content: what is there is the whole of arguments that were cut
        arguments, text = text if text is not None else _json_text(row["tool_args"]), None
    elif kind == mapping.EVALUATOR_SCORE and text is None:
        text = _json_text(payload)
    elif kind == mapping.SELECTOR_DECISION and isinstance(payload, dict) and "summary" in payload:
        text, length, cut = str(payload["summary"]), None, False
    elif kind == mapping.FINAL_ANSWER and isinstance(payload, dict) and payload.get("stop_reason"):
        arguments = str(payload["stop_reason"])
    return Event(
        seq=row["seq"],
        kind=kind,
        source=row["source"] or "?",
        target=row["target"],
        text=text,
        arguments=arguments,
        length=length if cut and length > len(text or arguments or "") else None,
        cut=cut,
        tool=row["tool_name"],
        call_id=row["tool_call_id"],
        reason=row["reason_code"],
        error_type=str(error.get("type") or "an error") if isinstance(error, dict) else None,
        ended_by=str(payload["terminated_by"]) if isinstance(payload, dict) and payload.get("terminated_by") else None,
        tokens_in=row["tokens_in"],
        tokens_out=row["tokens_out"],
        latency_ms=row["latency_ms"],
    )


def _json_text(value: JsonValue) -> str:
    """``value`` as JSON; what was no JSON when the model wrote it, as the model wrote it."""
    if isinstance(value, dict) and set(value) == {RAW}:
        value = value[RAW]
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
