"""What is sent to an endpoint: every request is one that it can take, whatever was said before."""

from __future__ import annotations

import json
from typing import Any

from eval_pipeline_tests.agents.scenes import Scene, choose, play
from eval_pipeline_tests.conftest import Database
from eval_pipeline_tests.stub_openai import Call, Reply, text, tool_calls

AGAIN = ("planner", "executor", "planner", "executor", "planner", "critic")
STEPS = [text("Compute it."), text("Compute it once more."), text("FINAL ANSWER: 42")]


async def test_the_selector_sees_what_it_wrote_itself_when_it_is_asked_again(database: Database) -> None:
    wrong = choose("manager", "the manager knows")
    played = await play(
        database, [Scene("asked", {"selector": [wrong, text(""), choose("planner"), choose("critic")]})]
    )

    first, second, third, next_choice = (body for role, body in played.requests["asked"] if role == "selector")
    assert len(first.messages) == len(next_choice.messages) == 1
    assert [message["role"] for message in third.messages] == ["user", "assistant", "user", "assistant", "user"]
    assert second.messages[1]["content"] == third.messages[1]["content"] == wrong.text
    assert third.messages[3]["content"], "no server takes an empty message"
    assert "planner" in second.messages[2]["content"]


async def test_calls_go_back_to_the_server_with_arguments_that_it_can_parse(database: Database) -> None:
    written = [
        "",
        "[1]",
        "null",
        '{"expression": ',
        "[" * 5000,
        f'{{"expression": {"9" * 5000}}}',
        '{"expression": "1"}',
    ]
    scenes = [
        Scene(f"calls-{n}", {"planner": STEPS, "executor": [Reply(calls=[Call("python_calc", one, None)] * 2)]}, AGAIN)
        for n, one in enumerate(written)
    ]
    played = await play(database, scenes, max_messages=12)

    assert {run.terminated_by for run in played.runs.values()} == {"approve"}
    for scene in scenes:
        last = [request for role, request in played.requests[scene.task_id] if role == "executor"][-1]
        calls = [call for message in last.messages for call in message.get("tool_calls", [])]
        answered = [message["tool_call_id"] for message in last.messages if message["role"] == "tool"]
        assert [call["id"] for call in calls] == answered
        assert len(set(answered)) == 2
        assert all(isinstance(json.loads(call["function"]["arguments"]), dict) for call in calls)


async def test_settings_of_the_model_go_out_with_every_request(database: Database) -> None:
    changes: dict[str, Any] = {
        "llm_temperature": 0.5,
        "llm_seed": 7,
        "llm_max_tokens": 99,
        "llm_parallel_tool_calls": False,
        "llm_include_name": False,
    }
    for stream in (False, True):
        played = await play(database, [Scene("set")], key=f"set-{stream}@v1-baseline", llm_stream=stream, **changes)
        for role, request in played.requests["set"]:
            sent = {name: request.body.get(name) for name in ("temperature", "seed", "max_tokens", "model")}
            assert sent == {"temperature": 0.5, "seed": 7, "max_tokens": 99, "model": "stub-model"}
            assert request.wants_usage is stream, "servers refuse stream options without a stream"
            assert all("name" not in message for message in request.messages), role
            assert request.headers["x-stainless-retry-count"] == "0"


async def test_unset_settings_are_left_out_of_the_request(database: Database) -> None:
    played = await play(database, [Scene("unset")], llm_temperature=None)
    for _, request in played.requests["unset"]:
        assert set(request.body) <= {"messages", "model", "stream", "tools", "tool_choice"}


async def test_a_task_of_any_text_reaches_the_model(database: Database) -> None:
    strange = "값은? \ud83d {braces} {0} <think> APPROVE\x00"
    # PostgreSQL takes no NUL and no lone surrogate for a task's own text: those come from models and tools only
    said = text(f"{strange}\nFINAL ANSWER: 42")
    played = await play(
        database,
        [
            Scene("strange", {"planner": [said]}, question="값은? {braces} {0} <think> %s"),
            Scene(
                "tool", {"executor": [tool_calls([("python_calc", json.dumps({"expression": strange}))])]}, AGAIN[2:]
            ),
        ],
    )
    assert {run.terminated_by for run in played.runs.values()} == {"approve"}
    assert played.runs["strange"].text_repairs > 0
    critic = next(request for role, request in played.requests["strange"] if role == "critic")
    assert "값은?" in json.dumps(critic.messages, ensure_ascii=False)
