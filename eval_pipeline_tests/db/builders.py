"""Rows for the tests of the database, with as few columns as it takes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import Connection, insert

from eval_pipeline.db import tables

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


class Rows:
    """Inserts rows through one connection, each with defaults that the constraints accept."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def team(self, team_id: str = "v1", **columns: Any) -> None:
        defaults: dict[str, Any] = {
            "answers": "line",
            "prompt_bundle_hash": "p" * 64,
            "contract_hash": "c" * 64,
            "spec": {"prompts": {"planner": "Plan."}, "tools": ["python_calc"], "input": "question"},
        }
        self.connection.execute(insert(tables.teams).values(team_id=team_id, **(defaults | columns)))

    def task(self, task_id: str = "t1", content_hash: str = "h1", level: int = 1, **columns: Any) -> None:
        defaults: dict[str, Any] = {"benchmark": "gaia", "question": "How many?", "gold": "42"}
        self.connection.execute(
            insert(tables.tasks).values(task_id=task_id, content_hash=content_hash, level=level, **(defaults | columns))
        )

    def batch(self, batch_id: str = "b1", team_id: str = "v1", **columns: Any) -> None:
        defaults: dict[str, Any] = {
            "suite": "sample",
            "benchmark": "gaia",
            "suite_hash": "s" * 64,
            "contract": {"suite": "sample"},
            "contract_hash": "k" * 64,
            "provider": "scripted",
            "model": "scripted",
            "scripted": True,
        }
        self.connection.execute(
            insert(tables.batches).values(batch_id=batch_id, team_id=team_id, **(defaults | columns))
        )

    def cell(self, task_id: str = "t1", attempt: int = 1, batch_id: str = "b1", **columns: Any) -> None:
        defaults: dict[str, Any] = {"team_id": "v1", "task_hash": "h1"}
        self.connection.execute(
            insert(tables.plan).values(task_id=task_id, attempt=attempt, batch_id=batch_id, **(defaults | columns))
        )

    def run(self, task_id: str = "t1", attempt: int = 1, batch_id: str = "b1", **columns: Any) -> UUID:
        """A running try of a cell that is planned already."""
        run_id = uuid4()
        defaults: dict[str, Any] = {"run_id": run_id, "team_id": "v1", "task_hash": "h1", "level": 1}
        self.connection.execute(
            insert(tables.runs).values(task_id=task_id, attempt=attempt, batch_id=batch_id, **(defaults | columns))
        )
        return run_id

    def completed(self, task_id: str = "t1", attempt: int = 1, success: bool = True, **columns: Any) -> UUID:
        ended: dict[str, Any] = {"status": "completed", "format_valid": True, "finished_at": NOON}
        return self.run(task_id, attempt, success=success, **(ended | columns))

    def crashed(self, task_id: str = "t1", attempt: int = 1, **columns: Any) -> UUID:
        ended: dict[str, Any] = {"status": "crashed", "error_class": "connection", "finished_at": NOON}
        return self.run(task_id, attempt, **(ended | columns))

    def event(self, run_id: UUID, seq: int, message_type: str = "agent_message", **columns: Any) -> None:
        moment = NOON + timedelta(seconds=seq)
        self.connection.execute(
            insert(tables.events).values(run_id=run_id, seq=seq, message_type=message_type, ts=moment, **columns)
        )

    def one_run(self) -> UUID:
        """A team, a task, a batch, a cell and its running try: the least that a trace needs."""
        self.team()
        self.task()
        self.batch()
        self.cell()
        return self.run()
