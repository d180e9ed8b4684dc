"""The smoke test says of each capability whether the endpoint has it, and why not."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from eval_pipeline.agents.smoke import SmokeResult, smoke
from eval_pipeline.errors import SettingsError
from eval_pipeline.settings import Settings
from eval_pipeline_tests.stub_openai import Reply, Request, StubServer, error, html, text, tool_calls

CHOICE = text('{"next": "planner", "reason_code": "NEEDS_PLANNING"}')


def _able(request: Request) -> Reply:
    last = request.messages[-1]
    if last["role"] == "tool":
        return text(f"The sum is {last['content']}.")
    if request.body.get("tools"):
        return tool_calls([("add_numbers", json.dumps({"a": 17, "b": 25}))])
    return CHOICE if "JSON" in last["content"] else text("ready")


async def _smoke(answer: Callable[[Request], Reply]) -> dict[str, SmokeResult]:
    async with StubServer(answer) as stub:
        settings = Settings.model_validate(
            {"llm_provider": "openai", "llm_base_url": stub.base_url, "llm_model": "stub-model"}
        )
        return {result.name: result for result in await smoke(settings)}


async def test_an_endpoint_that_can_do_all_works_in_all() -> None:
    results = await _smoke(_able)
    assert {name: result.works for name, result in results.items()} == dict.fromkeys(
        ("text", "tools", "streaming", "JSON"), True
    )
    assert "usage 11+7 tokens" in results["streaming"].detail
    assert "add_numbers" in results["tools"].detail


@pytest.mark.parametrize(
    ("broken", "answer", "detail"),
    [
        ("tools", lambda request: text("42") if request.body.get("tools") else _able(request), "instead of calling"),
        ("streaming", lambda request: html() if request.stream else _able(request), "bad_response"),
        ("JSON", lambda request: text("planner") if "JSON" in str(request.messages) else _able(request), "not a JSON"),
        (
            "tools",
            lambda request: tool_calls([("add_numbers", "[]")]) if request.body.get("tools") else _able(request),
            "not the two numbers",
        ),
        ("text streaming", lambda request: text("") if not request.body.get("tools") else _able(request), "empty"),
    ],
)
async def test_what_does_not_work_is_named_with_its_reason(
    broken: str, answer: Callable[[Request], Reply], detail: str
) -> None:
    results = await _smoke(answer)
    failed = [name for name, result in results.items() if not result.works]
    assert set(broken.split()) <= set(failed)
    assert any(detail in results[name].detail for name in failed)


async def test_an_endpoint_that_refuses_the_key_fails_in_all_with_the_class() -> None:
    results = await _smoke(lambda _request: error(401))
    assert {result.works for result in results.values()} == {False}
    assert all(result.detail.startswith("auth: HTTP 401") for result in results.values())


async def test_an_endpoint_that_reports_no_usage_is_said_to() -> None:
    results = await _smoke(lambda _request: text("ready", usage="none"))
    assert "usage NOT reported" in results["text"].detail


async def test_without_an_endpoint_there_is_nothing_to_try() -> None:
    with pytest.raises(SettingsError, match="EVAL_LLM_BASE_URL"):
        await smoke(Settings.model_validate({"llm_provider": "openai"}))
