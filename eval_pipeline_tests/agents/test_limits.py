"""Our own limits end a run as completed, each under its name, and score what there is."""

from __future__ import annotations

from typing import Any

import pytest

from eval_pipeline_tests.agents.scenes import ANSWER, Scene, choose, play, trace_line
from eval_pipeline_tests.conftest import Database
from eval_pipeline_tests.stub_openai import Reply, text

REJECTING = {"critic": [text("Redo it.")]}
FOR_EVER = ("planner", "critic") * 20
ROUND = "→planner planner →critic critic"


@pytest.mark.parametrize(
    ("limits", "trace"),
    [
        # selector and planner together are past 2,000 tokens; the task's first check comes before any call
        ({"max_tokens_per_run": 2000}, "user →planner planner end:token_limit"),
        ({"max_tokens_per_run": 4000}, f"user {ROUND} end:token_limit"),
        ({"price_input": 1.0, "price_output": 2.0, "max_cost_per_run": 0.004}, f"user {ROUND} end:token_limit"),
        ({"max_messages": 4}, f"user {ROUND} →planner planner end:max_messages"),
        ({"max_messages": 1}, "user end:max_messages"),
    ],
)
async def test_a_limit_ends_a_run_as_completed_under_its_own_name(
    limits: dict[str, Any], trace: str, database: Database
) -> None:
    played = await play(database, [Scene("long", REJECTING, FOR_EVER)], **{"max_messages": 40, **limits})
    run = played.runs["long"]
    assert trace_line(played.events["long"]) == trace
    assert (run.status, run.terminated_by) == ("completed", trace.partition("end:")[2])
    assert run.success is ("planner planner" in trace)


async def test_the_selector_counts_towards_the_token_limit(database: Database) -> None:
    played = await play(database, [Scene("long", REJECTING, FOR_EVER)], max_messages=40, max_tokens_per_run=4000)
    run = played.runs["long"]
    assert run.tokens_in + run.tokens_out < 4000 <= run.all_tokens_in + run.all_tokens_out


async def test_time_ends_a_run_as_completed_where_the_endpoint_has_answered_all_along(database: Database) -> None:
    def slowly(reply: Reply) -> list[Reply]:
        return [text(reply.text or "", delay_s=0.15)]

    slow = Scene("slow", {"planner": slowly(ANSWER), "critic": slowly(text("Redo it."))}, FOR_EVER)
    played = await play(database, [slow], max_messages=1000, run_timeout_s=2.5)
    run = played.runs["slow"]
    assert (run.status, run.terminated_by, run.success) == ("completed", "timeout", True)
    assert trace_line(played.events["slow"]).endswith(" end:timeout")
    assert played.leftover_tasks == played.complaints == []


async def test_cost_is_that_of_all_calls_and_unknown_where_usage_is(database: Database) -> None:
    prices: dict[str, Any] = {"price_input": 3.0, "price_output": 15.0}
    told = Scene("told")
    silent = Scene(
        "silent",
        {
            "selector": [choose("planner", usage="none"), choose("critic", usage="none")],
            "planner": [text(ANSWER.text or "", usage="none")],
            "critic": [text("APPROVE", usage="none")],
        },
    )
    played = await play(database, [told, silent], **prices)

    run = played.runs["told"]
    assert run.cost == pytest.approx((run.all_tokens_in * 3 + run.all_tokens_out * 15) / 1_000_000)
    unknown = played.runs["silent"]
    assert (unknown.status, unknown.model_calls) == ("completed", 4)
    assert {unknown.cost, unknown.all_tokens_in, unknown.all_tokens_out, unknown.tokens_in, unknown.tokens_out} == {
        None
    }
    summary = played.results["silent"].run
    assert summary is not None
    assert (summary.all_tokens, summary.cost) == (None, None)
