"""What the tests of this folder share: a clock that stands still, the café run, and rows for runs to hang on."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

from sqlalchemy import Engine, insert

from eval_pipeline.db import tables
from eval_pipeline.tracing.items import StreamItem, ToolCall, ToolOutcome, Usage
from eval_pipeline.tracing.records import RecordBuilder
from eval_pipeline.tracing.rows import EventRow

START = datetime(2026, 11, 30, 12, tzinfo=UTC)


class FakeClock:
    """Stands at ``ms`` milliseconds after :data:`START` until a test moves it."""

    def __init__(self) -> None:
        self.ms = 0

    def now(self) -> datetime:
        return START + timedelta(milliseconds=self.ms)

    def monotonic(self) -> float:
        return 1_000_000.0 + self.ms / 1000


def selection(name: str, reason_code: str, summary: str = "") -> StreamItem:
    text = json.dumps({"next": name, "reason_code": reason_code, "summary": summary})
    return StreamItem("SelectorEvent", "SelectorGroupChatManager", text=text, chosen=name)


def speaker(name: str | None) -> StreamItem:
    return StreamItem("SelectSpeakerEvent", "SelectorGroupChatManager", chosen=name)


def message(source: str, text: str, usage: Usage | None = None, type_name: str = "TextMessage") -> StreamItem:
    return StreamItem(type_name, source, text=text, usage=usage)


def calls(*wanted: ToolCall, source: str = "executor", usage: Usage | None = None) -> StreamItem:
    return StreamItem("ToolCallRequestEvent", source, calls=wanted, usage=usage)


def outcomes(*got: ToolOutcome, source: str = "executor") -> StreamItem:
    return StreamItem("ToolCallExecutionEvent", source, outcomes=got)


SHEET = "\n".join(f"{number:>4} | 음식 | sandwich and soup {number:>4} | 17.25" for number in range(93))[:3914]
"""What the reader returns of the workbook: 3,914 characters."""
PATH = "/stage/sample-cafe/cafe_sales.xlsx"

CAFE: tuple[tuple[int, StreamItem], ...] = (
    (0, message("user", "What were the total sales of food, drinks left out?")),
    (1_100, selection("planner", "NEEDS_PLANNING", "nothing is planned yet")),
    (1_110, speaker("planner")),
    (3_900, StreamItem("ModelClientStreamingChunkEvent", "planner", text="1. read")),
    (4_000, message("planner", "1. read the workbook 2. add up", Usage(540, 95))),
    (5_000, selection("executor", "NEEDS_EXECUTION", "the workbook must be read")),
    (5_010, speaker("executor")),
    (7_200, calls(ToolCall("call_1", "read_attached_file", json.dumps({"path": PATH})), usage=Usage(690, 38))),
    (7_650, outcomes(ToolOutcome("call_1", "read_attached_file", SHEET, False, latency_ms=430))),
    (7_660, message("executor", SHEET, type_name="ToolCallSummaryMessage")),
    (8_600, selection("planner", "NEEDS_PLANNING")),
    (11_400, message("planner", "Add up the rows that are food.", Usage(1105, 60))),
    (12_300, selection("executor", "NEEDS_EXECUTION")),
    (15_800, calls(ToolCall("call_2", "python_exec", json.dumps({"code": "print(89706)"})), usage=Usage(1230, 112))),
    (17_900, outcomes(ToolOutcome("call_2", "python_exec", "89706.00\n", False, latency_ms=2050))),
    (17_910, message("executor", "89706.00\n", type_name="ToolCallSummaryMessage")),
    (18_900, selection("planner", "NEEDS_PLANNING")),
    (21_700, message("planner", "The food adds up.\nFINAL ANSWER: 89706.00", Usage(1380, 24))),
    (22_800, selection("critic", "NEEDS_VERIFICATION", "there is an answer")),
    (26_800, message("critic", "The sum was computed from the file.\nAPPROVE", Usage(392, 4))),
    (26_900, StreamItem("TaskResult", stop_reason="the critic approved", terminated_by="approve")),
)
"""The reference run with its times, in milliseconds since its first event."""


def rows_of(builder: RecordBuilder, *items: StreamItem) -> list[EventRow]:
    return [row for item in items for row in builder.rows(item)]


def new_run(engine: Engine) -> UUID:
    """A run that is under way, of a batch of its own."""
    run_id = uuid4()
    batch_id = f"b-{run_id}"
    with engine.begin() as connection:
        connection.execute(
            insert(tables.tasks),
            {"task_id": batch_id, "content_hash": "h", "benchmark": "gaia", "level": 1, "question": "?", "gold": "!"},
        )
        connection.execute(
            insert(tables.teams),
            {
                "team_id": batch_id,
                "answers": "line",
                "prompt_bundle_hash": "h",
                "contract_hash": "h",
                "spec": {},
                "change": "",
                "changes": [],
            },
        )
        connection.execute(
            insert(tables.batches),
            {
                "batch_id": batch_id,
                "team_id": batch_id,
                "suite": "sample",
                "benchmark": "gaia",
                "suite_hash": "h",
                "contract": {},
                "contract_hash": "h",
                "info": {},
                "provider": "scripted",
                "model": "scripted",
                "scripted": True,
            },
        )
        cell = {"batch_id": batch_id, "team_id": batch_id, "task_id": batch_id, "attempt": 1, "task_hash": "h"}
        connection.execute(insert(tables.plan), cell)
        connection.execute(insert(tables.runs), {**cell, "run_id": run_id, "level": 1})
    return run_id
