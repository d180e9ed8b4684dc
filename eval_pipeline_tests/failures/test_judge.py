"""A model's labels beside the rules': bounded, kept at once, and never instead of theirs."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import text

from eval_pipeline.agents.judge import EndpointJudge
from eval_pipeline.errors import SettingsError
from eval_pipeline.failures.judge import Judged, judge_batch
from eval_pipeline.failures.judge_prompt import version
from eval_pipeline.failures.store import classify_batch
from eval_pipeline.settings import Settings, load_settings
from eval_pipeline.tracing.masking import Masker
from eval_pipeline_tests.conftest import Database
from eval_pipeline_tests.played import V1
from eval_pipeline_tests.stub_openai import Reply, Request, StubServer, error
from eval_pipeline_tests.stub_openai import text as says

KEY = "sk-judge-1234567890abcdef"


def labelled(*modes: str, why: str = "seen") -> str:
    return json.dumps({"modes": [{"mode": mode, "events": [0, 2], "why": why} for mode in modes]})


def asked_of(stub: StubServer, monkeypatch: pytest.MonkeyPatch, **more: str) -> Settings:
    given = {"PROVIDER": "openai", "BASE_URL": stub.base_url, "MODEL": "glm", "API_KEY": KEY, "BACKOFF_S": "0", **more}
    for name, value in given.items():
        monkeypatch.setenv(f"EVAL_LLM_{name}", value)
    return load_settings()


async def judge(database: Database, settings: Settings, **bounds: Any) -> Judged:
    limits = {"most_runs": 20, "most_tokens": 100_000, **bounds}
    asker = EndpointJudge(settings)
    try:
        return await judge_batch(database.engine, V1, asker, Masker((KEY,)), **limits)
    finally:
        await asker.aclose()


def stored(database: Database) -> set[tuple[str, str, str]]:
    query = "select task_id, mode, found_by from v_failure_signals where latest and team_id = 'v1-baseline'"
    with database.engine.connect() as connection:
        return {
            (row.task_id.removeprefix("sample-"), row.mode, row.found_by) for row in connection.execute(text(query))
        }


async def test_the_wrong_runs_get_the_judges_labels_beside_those_of_the_rules(
    played: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    with played.engine.begin() as connection:
        classify_batch(connection, V1)
    by_rules = stored(played)
    async with StubServer(lambda _: says(labelled("task_derailment", "step_repetition"))) as stub:
        settings = asked_of(stub, monkeypatch)
        done = await judge(played, settings)
        again = await judge(played, settings)
    wrong = {"cafe-food-total", "museum-weekend-children", "last-bus-minute", "bike-member-minutes"}
    assert (done.asked, done.left, done.stopped, done.tokens) == (4, 0, None, 4 * 18)
    assert done.modes == {"task_derailment": 4, "step_repetition": 4}
    assert stored(played) == by_rules | {
        (task, mode, "judge") for task in wrong for mode in ("task_derailment", "step_repetition")
    }
    assert (again.asked, again.left) == (0, 0)
    # what is asked: no gold, little output, and a transcript as data
    request = stub.requests[0]
    assert len(stub.requests) == 4
    assert request.body["max_tokens"] == 2000
    assert "42" not in json.dumps(request.body["messages"][0])
    assert '"verdict": "wrong"' in request.messages[1]["content"]
    with played.engine.connect() as connection:
        versions = connection.execute(text("select distinct version from failure_signals where found_by = 'judge'"))
        assert versions.scalars().all() == [version("glm")]
        stages = connection.execute(text("select count(*) from runs where failure_stage = 'task_derailment'"))
        assert stages.scalar_one() == 0


@pytest.mark.parametrize(
    ("bounds", "asked", "words"),
    [({"most_runs": 1}, 1, None), ({"most_tokens": 20}, 2, "tokens are spent, 20 were allowed")],
)
async def test_asking_ends_at_its_bounds(
    played: Database, monkeypatch: pytest.MonkeyPatch, bounds: dict[str, int], asked: int, words: str | None
) -> None:
    async with StubServer(lambda _: says(labelled())) as stub:
        done = await judge(played, asked_of(stub, monkeypatch), **bounds)
    assert (done.asked, done.left) == (asked, 4 - asked)
    assert done.stopped is None if words is None else words in (done.stopped or "")


def after(first: Reply, then: Callable[[], Reply]) -> Callable[[Request], Reply]:
    return lambda request: first if request.number == 0 else then()


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (lambda: error(401), "auth"),
        (lambda: error(429, "You exceeded your current quota", "insufficient_quota"), "quota"),
        (lambda: error(500), "server_error"),
        (lambda: Reply(drop_before_status="rst"), "connection"),
        (lambda: Reply(status=200, body="<html>", content_type="text/html"), "bad_response"),
        (lambda: says("  "), "no answer in words"),
    ],
    ids=["auth", "quota", "server", "reset", "html", "empty"],
)
async def test_an_endpoints_failure_is_one_line_and_what_came_before_it_is_kept(
    played: Database, monkeypatch: pytest.MonkeyPatch, reply: Callable[[], Reply], said: str
) -> None:
    async with StubServer(after(says(labelled("task_derailment")), reply)) as stub:
        done = await judge(played, asked_of(stub, monkeypatch, RETRIES="1"))
    assert said in (done.stopped or "")
    assert "\n" not in (done.stopped or "")
    assert KEY not in (done.stopped or "")
    assert (done.asked, done.left) == (1, 3)
    assert len(stored(played)) == 1


async def test_a_passing_failure_is_tried_again(played: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    async with StubServer(after(error(503), lambda: says(labelled()))) as stub:
        done = await judge(played, asked_of(stub, monkeypatch), most_runs=1)
    assert (done.asked, done.stopped, len(stub.requests)) == (1, None, 2)


async def test_an_answer_that_cannot_be_read_is_counted_and_asked_for_again(
    played: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with StubServer(after(says("I would rather not."), lambda: says(labelled()))) as stub:
        settings = asked_of(stub, monkeypatch)
        first = await judge(played, settings)
        second = await judge(played, settings)
    assert (first.asked, first.unreadable, first.left) == (4, 1, 1)
    assert (second.asked, second.unreadable, second.left) == (1, 0, 0)


async def test_what_the_judge_writes_is_cleaned_masked_and_cut(
    played: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    why = f"nul \0 surrogate \ud800 key {KEY} " + "한글 " * 1000
    async with StubServer(lambda _: says(labelled("task_derailment", why=why))) as stub:
        await judge(played, asked_of(stub, monkeypatch), most_runs=1)
    with played.engine.connect() as connection:
        detail = connection.execute(text("select detail from failure_signals where found_by = 'judge'")).scalar_one()
    assert KEY not in detail
    assert "\0" not in detail
    assert len(detail) <= 500


async def test_unknown_usage_is_taken_to_be_long(played: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    async with StubServer(lambda _: says(labelled(), usage="none")) as stub:
        done = await judge(played, asked_of(stub, monkeypatch), most_tokens=1)
    assert done.asked == 1
    assert done.tokens > 1000


async def test_a_judge_without_an_endpoint_is_refused(clean_environment: object) -> None:
    with pytest.raises(SettingsError, match="EVAL_LLM_BASE_URL"):
        EndpointJudge(load_settings())
