"""What each role did and cost, who spoke after whom, and how runs ended, on traces worked out by hand."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import insert

from eval_pipeline.db import tables
from eval_pipeline.db.accounting import Accounting, Ending, Handover, RoleFigures, accounting
from eval_pipeline.ids import BatchTeam
from eval_pipeline_tests.db.builders import Rows

B1 = BatchTeam("b1", "v1")
PLANNING, EXECUTION, VERIFICATION = "NEEDS_PLANNING", "NEEDS_EXECUTION", "NEEDS_VERIFICATION"


def model_call(rows: Rows, run_id: UUID, number: int, role: str, tokens: int | None = 100, **columns: Any) -> None:
    values = {
        "run_id": run_id,
        "call_no": number,
        "role": role,
        "kind": "selection" if role == "selector" else "turn",
        "latency_ms": 1000,
        "outcome": "ok",
        "prompt_tokens": tokens,
        "completion_tokens": None if tokens is None else tokens // 10,
    }
    rows.connection.execute(insert(tables.model_calls).values(values | columns))


def talk(rows: Rows, run_id: UUID, *steps: tuple[str, str]) -> None:
    """Steps are (kind, value): ``says`` a source, ``picks`` a reason code, ``calls`` or ``fails`` a tool."""
    for seq, (kind, value) in enumerate(steps):
        match kind:
            case "says":
                rows.event(run_id, seq, source=value, content="x")
            case "picks":
                rows.event(run_id, seq, "selector_decision", source="selector", target="?", reason_code=value)
            case "calls":
                rows.event(run_id, seq, "tool_call", source="executor", tool_name=value, tool_call_id=f"c{value}")
            case "fails":
                error = {"class": "tool", "type": "E", "message": "m"}
                rows.event(run_id, seq, "tool_error", source="executor", tool_call_id=f"c{value}", error=error)


@pytest.fixture
def batch(rows: Rows) -> Rows:
    rows.team()
    for task_id in ("t1", "t2", "t3", "t4"):
        rows.task(task_id)
    for batch_id in ("b1", "other"):
        rows.batch(batch_id)
        for task_id in ("t1", "t2", "t3", "t4"):
            rows.cell(task_id, batch_id=batch_id)
    # t1: a try that crashed at its first request, and one that was right
    crashed = rows.crashed("t1", live=False, cost=0.1)
    model_call(rows, crashed, 0, "selector", 50)
    model_call(rows, crashed, 1, "planner", None, outcome="error", error_class="connection", latency_ms=500)
    talk(rows, crashed, ("says", "user"), ("picks", PLANNING))
    right = rows.completed("t1", try_no=2, terminated_by="approve", cost=1.0)
    for number, (role, tokens) in enumerate((("selector", 100), ("planner", 200), ("executor", 300), ("critic", 400))):
        model_call(rows, right, number, role, tokens)
    talk(
        rows, right,
        ("says", "user"), ("picks", "PARSE_FAILED"), ("picks", PLANNING), ("says", "planner"),
        ("picks", EXECUTION), ("calls", "a"), ("fails", "a"), ("says", "executor"),
        ("picks", PLANNING), ("says", "planner"), ("picks", VERIFICATION), ("says", "critic"),
    )  # fmt: skip
    # t2: cut off by a limit after a decision that nobody's turn followed
    cut = rows.completed("t2", success=False, terminated_by="token_limit")
    model_call(rows, cut, 0, "planner", 1000, outcome="cancelled", error_class="interrupted")
    talk(rows, cut, ("says", "user"), ("picks", PLANNING), ("says", "planner"), ("picks", "FALLBACK"))
    # t3 crashed before anybody spoke, t4 is under way
    rows.crashed("t3")
    running = rows.run("t4")
    talk(rows, running, ("says", "user"))
    # another batch that must not be seen
    foreign = rows.completed("t1", batch_id="other", terminated_by="approve")
    model_call(rows, foreign, 0, "critic", 9999)
    talk(rows, foreign, ("says", "user"), ("picks", PLANNING), ("says", "critic"))
    return rows


def roles(found: Accounting) -> dict[str, RoleFigures]:
    return {one.role: one for one in found.roles}


def test_every_call_of_every_try_is_in_its_roles_figures(batch: Rows) -> None:
    found = accounting(batch.connection, B1)
    assert [one.role for one in found.roles] == ["planner", "executor", "critic", "selector"]
    planner, executor, critic, selector = found.roles
    assert (planner.model_calls, planner.failed_calls, planner.tokens_in, planner.tokens_out) == (3, 2, 1200, 120)
    assert (planner.latency_ms, planner.turns, planner.tool_calls) == (2500, 3, 0)
    assert (executor.model_calls, executor.tokens, executor.turns) == (1, 330, 1)
    assert (executor.tool_calls, executor.tool_errors) == (1, 1)
    assert (critic.model_calls, critic.turns, critic.failed_calls) == (1, 1, 0)
    assert (selector.model_calls, selector.tokens, selector.turns) == (2, 165, 0)
    assert (selector.decisions, selector.failed_decisions) == (8, 2)


def test_a_runs_cost_is_shared_out_by_tokens_and_adds_up(batch: Rows) -> None:
    found = roles(accounting(batch.connection, B1))
    # the crashed try's 0.1 is all the selector's, since the planner's call told no usage
    assert found["selector"].cost == pytest.approx(0.1 + 0.1)
    assert found["planner"].cost == pytest.approx(0.2)
    assert found["critic"].cost == pytest.approx(0.4)
    assert sum(one.cost or 0 for one in found.values()) == pytest.approx(1.1)


def test_what_is_unknown_is_no_zero(rows: Rows) -> None:
    run_id = rows.one_run()
    model_call(rows, run_id, 0, "planner", None)
    (planner,) = accounting(rows.connection, B1).roles
    assert (planner.model_calls, planner.tokens_in, planner.tokens, planner.cost) == (1, None, None, None)
    assert (planner.turns, planner.tool_calls) == (0, 0)


def test_a_hand_over_is_a_turn_that_followed_with_the_reason_of_the_last_attempt(batch: Rows) -> None:
    assert set(accounting(batch.connection, B1).handovers) == {
        Handover("user", "planner", PLANNING, 2, 2),
        Handover("planner", "executor", EXECUTION, 1, 1),
        Handover("executor", "planner", PLANNING, 1, 1),
        Handover("planner", "critic", VERIFICATION, 1, 1),
    }


def test_endings_say_what_ended_the_talk_and_who_had_the_last_word(batch: Rows) -> None:
    assert set(accounting(batch.connection, B1).endings) == {
        Ending("completed", "approve", "critic", 1, 1),
        Ending("completed", "token_limit", "planner", 1, 0),
        Ending("crashed", "connection", "nobody", 1, 0),
    }


def test_a_choice_of_autogens_own_is_a_hand_over_with_that_reason(rows: Rows) -> None:
    run_id = rows.one_run()
    talk(rows, run_id, ("says", "user"), ("picks", PLANNING), ("picks", "FALLBACK"), ("says", "executor"))
    found = accounting(rows.connection, B1)
    assert found.handovers == (Handover("user", "executor", "FALLBACK", 1, 1),)
    assert roles(found)["selector"].failed_decisions == 1


def test_a_batch_without_runs_has_no_rows(rows: Rows) -> None:
    assert accounting(rows.connection, B1) == Accounting((), (), ())
