"""A stored trace as the rules see it: a run's end and its events, read in two queries for many runs at once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from uuid import UUID

from sqlalchemy import Connection, select

from eval_pipeline.db import tables
from eval_pipeline.jsontypes import JsonValue


@dataclass(frozen=True, slots=True)
class Event:
    """One row of the trace; ``content`` is what the row keeps of the text."""

    seq: int
    message_type: str
    source: str
    target: str | None
    content: str
    content_sha256: str | None
    tool_name: str | None
    tool_call_id: str | None
    tool_args: JsonValue
    reason_code: str | None
    error_type: str | None


@dataclass(frozen=True)
class Trace:
    """One try with its verdict and its events in order."""

    run_id: UUID
    status: str
    success: bool | None
    format_valid: bool | None
    terminated_by: str | None
    final_answer: str | None
    question: str
    answers: str
    events: tuple[Event, ...]

    def of(self, *message_types: str) -> list[Event]:
        """The events of these types, in order."""
        return [event for event in self.events if event.message_type in message_types]

    def said_by(self, source: str) -> list[Event]:
        """What one agent said; a tool's output that it passed on is not among it."""
        passed_on = {event.seq + 1 for event in self.of("tool_result", "tool_error")}
        return [e for e in self.of("agent_message") if e.source == source and e.seq not in passed_on]

    @cached_property
    def outcome_of(self) -> Mapping[str, Event]:
        """The result or error of every call, by call id."""
        return {event.tool_call_id or "": event for event in self.of("tool_result", "tool_error")}


def canonical(arguments: JsonValue) -> str:
    """Tool arguments in one spelling, so that the same call is the same text."""
    return json.dumps(arguments, sort_keys=True, ensure_ascii=True)


def traces(connection: Connection, run_ids: Sequence[UUID]) -> Iterable[Trace]:
    """The traces of these tries."""
    runs, events, tasks, teams = tables.runs, tables.events, tables.tasks, tables.teams
    columns = (
        events.c.run_id,
        events.c.seq,
        events.c.message_type,
        events.c.source,
        events.c.target,
        events.c.content,
        events.c.content_sha256,
        events.c.tool_name,
        events.c.tool_call_id,
        events.c.tool_args,
        events.c.reason_code,
        events.c.error["type"].astext.label("error_type"),
    )
    by_run: dict[UUID, list[Event]] = {run_id: [] for run_id in run_ids}
    query = select(*columns).where(events.c.run_id.in_(run_ids)).order_by(events.c.run_id, events.c.seq)
    for row in connection.execute(query).mappings():
        fields = {name: row[name] for name in Event.__slots__}
        by_run[row["run_id"]].append(Event(**{**fields, "content": fields["content"] or ""}))
    heads = (
        select(
            runs.c.run_id,
            runs.c.status,
            runs.c.success,
            runs.c.format_valid,
            runs.c.terminated_by,
            runs.c.final_answer,
            tasks.c.question,
            teams.c.answers,
        )
        .join(tasks, (tasks.c.task_id == runs.c.task_id) & (tasks.c.content_hash == runs.c.task_hash))
        .join(teams, teams.c.team_id == runs.c.team_id)
        .where(runs.c.run_id.in_(run_ids))
    )
    for row in connection.execute(heads).mappings():
        yield Trace(events=tuple(by_run[row["run_id"]]), **{str(name): value for name, value in row.items()})
