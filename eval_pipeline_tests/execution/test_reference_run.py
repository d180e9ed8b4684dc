"""The café run under v5: the rows that the contract of the product states, one by one."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from sqlalchemy import select

from eval_pipeline.db import tables
from eval_pipeline_tests.conftest import Database
from eval_pipeline_tests.execution.launching import CAFE, opened, run, tries

_SECONDS = (0, 1.1, 2.4, 0.9, 2.0, 0.6, 0.1, 1.2, 2.1, 0.9, 2.8, 1.9, 0.1, 1.3, 3.1, 1.0, 5.3, 0.1)
"""From each event to the next; 26.9 s together."""

EXPECTED = [
    # message type, source, target or tool, reason code, tokens
    ("agent_message", "user", None, None, None),
    ("selector_decision", "selector", "planner", "NEEDS_PLANNING", None),
    ("agent_message", "planner", None, None, (540, 95)),
    ("selector_decision", "selector", "executor", "NEEDS_EXECUTION", None),
    ("tool_call", "executor", "read_attached_file", None, (690, 38)),
    ("tool_result", "executor", "read_attached_file", None, None),
    ("agent_message", "executor", None, None, None),
    ("selector_decision", "selector", "planner", "NEEDS_PLANNING", None),
    ("agent_message", "planner", None, None, (1105, 60)),
    ("selector_decision", "selector", "executor", "NEEDS_EXECUTION", None),
    ("tool_call", "executor", "python_exec", None, (1230, 112)),
    ("tool_result", "executor", "python_exec", None, None),
    ("agent_message", "executor", None, None, None),
    ("selector_decision", "selector", "planner", "NEEDS_PLANNING", None),
    ("agent_message", "planner", None, None, (1380, 24)),
    ("selector_decision", "selector", "critic", "NEEDS_VERIFICATION", None),
    ("agent_message", "critic", None, None, (392, 4)),
    ("final_answer", "team", None, None, None),
]


class FakeClock:
    """Moves on by the next of ``_SECONDS`` whenever an event is timed."""

    def __init__(self) -> None:
        self._elapsed = 0.0
        self._steps = iter(_SECONDS)

    def now(self) -> datetime:
        return datetime(2026, 3, 9, 9, 0, tzinfo=UTC) + timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        self._elapsed += next(self._steps)
        return self._elapsed


async def test_the_cafe_run_under_v5_has_exactly_the_stated_rows(database: Database) -> None:
    launch = replace(opened(database, "reference@v5-multitool"), clock=FakeClock())
    await run(launch, [CAFE])

    (done,) = tries(database, CAFE)
    with database.engine.connect() as connection:
        events = connection.execute(
            select(tables.events).where(tables.events.c.run_id == done.run_id).order_by(tables.events.c.seq)
        ).all()
        full = connection.execute(select(tables.texts).where(tables.texts.c.sha256 == events[5].content_sha256)).one()
        calls = connection.execute(
            select(tables.model_calls.c.role).where(tables.model_calls.c.run_id == done.run_id)
        ).scalars()
        roles = list(calls)

    assert [event.seq for event in events] == list(range(18))
    rows = [
        (
            event.message_type,
            event.source,
            event.target or event.tool_name,
            event.reason_code,
            (event.tokens_in, event.tokens_out) if event.tokens_in else None,
        )
        for event in events
    ]
    assert rows == EXPECTED
    assert [event.latency_ms for event in events] == [None, *(round(1000 * seconds) for seconds in _SECONDS[1:])]

    result = events[5]
    assert result.content_length == 3914
    assert len(result.content) == 2048
    assert full.body.startswith(result.content)
    assert hashlib.sha256(full.body.encode()).hexdigest() == result.content_sha256
    assert events[4].tool_call_id == result.tool_call_id
    assert events[10].tool_call_id == events[11].tool_call_id
    assert events[11].content == "89706.00"
    assert events[14].content.splitlines()[-1] == "FINAL ANSWER: 89706.00"
    assert events[16].content == "APPROVE"
    assert events[17].content == "89706.00"
    assert events[17].payload["terminated_by"] == "approve"

    assert (done.status, done.success, done.format_valid) == ("completed", True, True)
    assert done.final_answer == "89706.00"
    assert done.terminated_by == "approve"
    assert done.tokens_in + done.tokens_out == 5670
    assert (done.turns, done.tool_calls, done.tool_errors) == (7, 2, 0)
    assert done.latency_ms == 26_900
    assert (done.events_dropped, done.selector_fallbacks) == (0, 0)

    # one call per selector row; the agents' calls are those with tokens on their rows
    assert roles.count("selector") == 6
    assert len(roles) == 12
    assert done.all_tokens_in + done.all_tokens_out > 5670
