"""Batches for the tests of reports: small ones with named runs, and a large one that is made in bulk."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import Connection, insert, select

from eval_pipeline.db import tables
from eval_pipeline.ids import BatchTeam
from eval_pipeline.tracing.rows import TOOL_RESULT_KEPT
from eval_pipeline_tests.db.builders import NOON, Rows

BASE = BatchTeam("b1", "v1")
CHANGED = BatchTeam("b1", "v2")

_PROSE = (
    "the planner asks the executor to read the attached workbook and to add up every branch without the drinks "
    "표에서 지점별 합계를 구하고 음료는 빼 주세요 then the critic compares the total with the last row of the sheet"
)
_WORDS = _PROSE.split()


class Batches(Rows):
    """Rows for reports: a base team and one that extends it, and runs with traces."""

    def teams(self) -> None:
        """``v1`` and ``v2``, which extends it by its prompt."""
        self.team("v1")
        self.team("v2", parent_id="v1", layer="prompt", change="The planner is told more.", contract_hash="d" * 64)

    def under(self, batch_team: BatchTeam, **columns: Any) -> None:
        """A batch under a team; its contract names the team, so that two of them differ in nothing else."""
        contract = {"suite": "sample", "team": batch_team.team, "team.contract_hash": batch_team.team * 8, "seed": 1}
        self.batch(batch_team.batch, batch_team.team, **({"contract": contract} | columns))

    def ended(self, batch_team: BatchTeam, task_id: str, attempt: int = 1, **columns: Any) -> UUID:
        """A planned cell of ``batch_team`` with a completed run, right unless ``success`` says otherwise."""
        self.cell(task_id, attempt, batch_team.batch, team_id=batch_team.team)
        defaults: dict[str, Any] = {"success": True, "terminated_by": "approve", "latency_ms": 1500}
        success = columns.pop("success", defaults.pop("success"))
        named = {"batch_id": batch_team.batch, "team_id": batch_team.team}
        return self.completed(task_id, attempt, success, **(defaults | named | columns))

    def failed(self, batch_team: BatchTeam, task_id: str, attempt: int = 1, **columns: Any) -> UUID:
        """A planned cell of ``batch_team`` with a crashed run."""
        self.cell(task_id, attempt, batch_team.batch, team_id=batch_team.team)
        return self.crashed(task_id, attempt, batch_id=batch_team.batch, team_id=batch_team.team, **columns)

    def said(self, run_id: UUID, *texts: str, source: str = "planner") -> None:
        """Messages of one agent, from event 0 on."""
        for seq, text in enumerate(texts):
            self.event(run_id, seq, source=source, content=text)

    def full_text(self, text: str) -> str:
        """Store a text that was cut from an event; its hash."""
        sha256 = hashlib.sha256(text.encode()).hexdigest()
        self.connection.execute(insert(tables.texts).values(sha256=sha256, body=text, length=len(text)))
        return sha256


def rows_of(connection: Connection, table: str) -> int:
    """How many rows a table has."""
    return len(connection.execute(select(tables.metadata.tables[table].c[0])).all())


_POOL = " ".join(random.Random(0).choices(_WORDS, k=20_000))


def prose(dice: random.Random, characters: int) -> str:
    """A text of so many characters in two scripts, hardly ever the same twice."""
    begin = dice.randrange(len(_POOL) - characters)
    return _POOL[begin : begin + characters]


def large_batch(connection: Connection, batch_team: BatchTeam, *, tasks: int, attempts: int, seed: int = 0) -> None:
    """``tasks`` × ``attempts`` runs of the size of a real team's: 29 events, cut tool results, some crashes."""
    dice = random.Random(seed)
    rows = Batches(connection)
    task_ids = [f"{uuid4()}" for _ in range(tasks)]
    connection.execute(
        insert(tables.tasks),
        [
            {
                "task_id": task_id,
                "content_hash": "h1",
                "benchmark": "gaia",
                "level": 1 + number % 3,
                "question": prose(dice, 400),
                "gold": f"{1000 + number}",
                "file_name": f"data {number}.xlsx" if number % 4 == 0 else None,
                "file_sha256": "f" * 64 if number % 4 == 0 else None,
                "file_size": 1 if number % 4 == 0 else None,
            }
            for number, task_id in enumerate(task_ids)
        ],
    )
    rows.under(batch_team)
    cells = [(task_id, attempt) for task_id in task_ids for attempt in range(1, attempts + 1)]
    key = {"batch_id": batch_team.batch, "team_id": batch_team.team}
    connection.execute(
        insert(tables.plan),
        [key | {"task_id": task_id, "attempt": attempt, "task_hash": "h1"} for task_id, attempt in cells],
    )
    runs, events, calls = [], [], []
    texts: dict[str, str] = {}
    for number, (task_id, attempt) in enumerate(cells):
        run_id, crashed = uuid4(), dice.random() < 0.03
        success = dice.random() < 0.55
        runs.append(
            key
            | {
                "run_id": run_id,
                "task_id": task_id,
                "attempt": attempt,
                "task_hash": "h1",
                "level": 1 + (number // attempts) % 3,
                "status": "crashed" if crashed else "completed",
                "success": None if crashed else success,
                "format_valid": None if crashed else success or dice.random() < 0.8,
                "terminated_by": None if crashed else "approve" if dice.random() < 0.85 else "max_messages",
                "final_answer": None if crashed else f"{1000 + number // attempts}",
                "error_class": dice.choice(("timeout", "rate_limit")) if crashed else None,
                "error_message": "the endpoint did not answer" if crashed else None,
                "finished_at": NOON,
                "latency_ms": int(dice.lognormvariate(10.5, 0.8)),
                "turns": 9,
                "tool_calls": 4,
                "tool_errors": int(dice.random() < 0.2),
                "tokens_in": 20_000,
                "tokens_out": 1_500,
                "all_tokens_in": int(dice.lognormvariate(10.3, 0.6)),
                "all_tokens_out": 2_000,
                "model_calls": 20,
            }
        )
        calls += [
            {
                "run_id": run_id,
                "call_no": call_no,
                "role": role,
                "kind": "selection" if role == "selector" else "turn",
                "latency_ms": 900,
                "outcome": "ok",
                "prompt_tokens": 1_500,
                "completion_tokens": 90,
            }
            for call_no, role in enumerate(("planner", "executor", "critic", "selector") * 2)
        ]
        events += list(_trace(dice, run_id, texts))
    connection.execute(insert(tables.texts), [{"sha256": k, "body": v, "length": len(v)} for k, v in texts.items()])
    # crashed and completed rows have the same columns, so that both go in one statement
    connection.execute(insert(tables.runs), runs)
    connection.execute(insert(tables.events), events)
    connection.execute(insert(tables.model_calls), calls)


_NO_COLUMNS: Mapping[str, object] = {
    column.name: None for column in tables.events.c if column.name not in ("run_id", "seq", "ts", "message_type")
}


def _trace(dice: random.Random, run_id: UUID, texts: dict[str, str]) -> Iterable[dict[str, object]]:
    """Four rounds of selector, planner, selector, tool call, result and its summary."""
    seq = 0

    def event(kind: str, source: str, **columns: object) -> dict[str, object]:
        nonlocal seq
        seq += 1
        moment = NOON + timedelta(seconds=seq)
        own = {"run_id": run_id, "seq": seq - 1, "ts": moment, "message_type": kind, "source": source}
        return {**_NO_COLUMNS, **own, "latency_ms": dice.randrange(9000), **columns}

    yield event("agent_message", "user", content=prose(dice, 420))
    for number in range(4):
        chosen = {"reason_code": "NEEDS_PLANNING", "payload": {"summary": prose(dice, 70)}}
        yield event("selector_decision", "selector", target="planner", content="{}", **chosen)
        yield event("agent_message", "planner", content=prose(dice, 600), tokens_in=1200, tokens_out=150)
        yield event("selector_decision", "selector", target="executor", content="{}", **chosen)
        call_id = f"call_{number}_1"
        arguments = {"code": prose(dice, 500).replace(" 표", "\n표")}
        yield event(
            "tool_call", "executor", tool_name="python_exec", tool_call_id=call_id, tool_args=arguments, tokens_in=900
        )
        result = prose(dice, 3_000)
        sha256 = hashlib.sha256(result.encode()).hexdigest()
        texts[sha256] = result
        cut = {"content": result[:TOOL_RESULT_KEPT], "content_sha256": sha256, "content_length": len(result)}
        yield event("tool_result", "executor", tool_name="python_exec", tool_call_id=call_id, **cut)
        yield event("agent_message", "executor", content=result)
    yield event("agent_message", "planner", content=f"{prose(dice, 300)}\nFINAL ANSWER: 42", tokens_in=1500)
    yield event("selector_decision", "selector", target="critic", reason_code="NEEDS_VERIFICATION", content="{}")
    yield event("agent_message", "critic", content="APPROVE", tokens_in=400, tokens_out=4)
    yield event("final_answer", "team", content="42", payload={"terminated_by": "approve", "stop_reason": "approve"})
