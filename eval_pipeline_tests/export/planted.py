"""Months of traces that are old enough to archive, with contents that a format could make something else of."""

from __future__ import annotations

from hashlib import sha256
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, insert, select, text

from eval_pipeline.db import tables
from eval_pipeline.ids import BatchTeam
from eval_pipeline.run_ids import Month, new_run_id
from eval_pipeline_tests.db.builders import Rows

JANUARY, FEBRUARY, MARCH = Month(2025, 1), Month(2025, 2), Month(2025, 3)
B1 = BatchTeam("b1", "v1")
ODD = (
    None, "", "null", "NULL", "\\N", "\\.", "\\\\", "\t\r\n\x0b\x0c\x1b[31m\x7f\x85", "'; drop table events; --",
    "한글 \ufffd", "e\u0301 \u200b\u202e \U0001f642 \U0010ffff \ufeff", "=1+1", "{}", "x" * 8192, "가" * 8192,
)  # fmt: skip
ODD_JSON = (
    "null", '"\\\\u0000 is not a character"', "[]", "1e400", "0.1000000000000000055511151231257827", "-0.0",
    '{"b": 1, "a": {"": [true, null, "한글"]}}', '"' + "y" * 8000 + '"',
)  # fmt: skip
"""As text, since a driver would make floats of the numbers."""
ONLY_JANUARY, BOTH, HUGE = "January " * 2000, "both " * 3000, "huge 매출 " * 30_000
"""Full texts, the last of 240,000 characters."""


def run_of(month: Month, number: int) -> UUID:
    """The id of a run of ``month``; the first and the last are at its ends."""
    begin, end = month.first_id.int >> 80, (month.end_id.int >> 80) - 1
    return new_run_id((begin, end, begin + 1000 * number)[min(number, 2)])


def plant(connection: Connection) -> dict[Month, list[UUID]]:
    """Three runs each in January and February of 2025, one in March; the runs of each month."""
    rows = Rows(connection)
    rows.team()
    rows.task()
    rows.batch()
    runs: dict[Month, list[UUID]] = {}
    for month, count in {JANUARY: 3, FEBRUARY: 3, MARCH: 1}.items():
        for number in range(count):
            attempt = 1 + sum(map(len, runs.values()))
            rows.cell(attempt=attempt)
            run_id = run_of(month, number)
            figures = {"turns": 4, "all_tokens_in": 100, "all_tokens_out": 10, "cost": 0.5, "final_answer": "42"}
            rows.completed(attempt=attempt, run_id=run_id, **figures)
            runs.setdefault(month, []).append(run_id)
            _trace(rows, run_id, (BOTH, ONLY_JANUARY, HUGE) if month == JANUARY else (BOTH,))
    return runs


def _trace(rows: Rows, run_id: UUID, texts: tuple[str, ...]) -> None:
    connection = rows.connection
    rows.event(run_id, 0, source="user", content="How many?")
    rows.event(run_id, 1, "tool_call", source="executor", tool_name="python_calc", tool_call_id="c", tool_args={"x": 1})
    rows.event(run_id, 2, "tool_result", source="executor", tool_call_id="c", content="42", latency_ms=5)
    seq = 3
    for content in ODD:
        rows.event(run_id, seq, source="planner", content=content, tokens_in=seq, target=content and content[:5])
        seq += 1
    for value in ODD_JSON:
        rows.event(run_id, seq, source="critic")
        as_json = text("update events set payload = cast(:value as jsonb), error = cast(:value as jsonb) "
                       "where run_id = :run and seq = :seq")  # fmt: skip
        connection.execute(as_json, {"value": value, "run": run_id, "seq": seq})
        seq += 1
    for body in texts:
        digest = sha256(body.encode()).hexdigest()
        if not connection.execute(select(tables.texts.c.sha256).where(tables.texts.c.sha256 == digest)).all():
            connection.execute(insert(tables.texts).values(sha256=digest, body=body, length=len(body)))
        rows.event(run_id, seq, content=body[:100], content_sha256=digest, content_length=len(body))
        seq += 1
    for number in range(3):
        call: dict[str, Any] = {"role": "planner", "kind": "turn", "latency_ms": 2**40, "outcome": "ok"}
        call |= {"error_message": ODD[-1 - number], "prompt_tokens": number or None}
        connection.execute(insert(tables.model_calls).values(run_id=run_id, call_no=number, **call))


def everything(connection: Connection) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every trace with the exact text of its JSON, and every text."""
    events = "run_id, seq, ts, tool_args::text, payload::text, error::text, events.*"
    return {
        name: [tuple(row) for row in connection.execute(text(statement))]
        for name, statement in {
            "events": f"select {events} from events order by run_id, seq",  # noqa: S608
            "model_calls": "select * from model_calls order by run_id, call_no",
            "texts": "select sha256, body, length from texts order by sha256",
        }.items()
    }
