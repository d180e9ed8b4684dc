"""Fifty runs at once against an endpoint that spoils a tenth of its answers: nobody hangs, nobody hears of another."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence

import pytest

from eval_pipeline.db.checks import run_checks
from eval_pipeline_tests.agents.scenes import LONG, Scene, choose, play
from eval_pipeline_tests.conftest import Database
from eval_pipeline_tests.stub_openai import Reply, content_filter_400, error, html, text, tool_calls

RUNS = 50
RETRIES = 2
SPOILT = 0.1
SPOILS: dict[str, tuple[Reply, bool]] = {
    "server_error": (error(503), True),
    "rate_limit": (error(429, headers={"retry-after-ms": "20"}), True),
    "connection": (Reply(drop_before_status="rst"), True),
    "bad_response": (html(), True),
    "content_filter": (content_filter_400(), False),
}
"""What is spoilt, by the class of a run that dies of it, and whether asking again helps."""
TORN: dict[str, tuple[Reply, bool]] = {
    "connection": (text("an answer in four pieces", break_after=2, usage="every"), False),
    "bad_response": (text("an answer in four pieces", break_after=2, break_how="eof_clean", usage="every"), False),
}
"""The same for streams, on which nothing is asked again once they have begun."""


def _good(number: int) -> list[tuple[str, Reply]]:
    """The requests of run ``number``, in order, each with the right answer; all of it is this run's alone."""
    said = {
        "planner": [text(f"Compute {number} * 1000."), text(f"FINAL ANSWER: {number * 1000}")],
        "executor": [tool_calls([("python_calc", json.dumps({"expression": f"{number} * 1000"}))])],
        "critic": [text("APPROVE")],
    }
    return [step for role in LONG for step in (("selector", choose(role)), (role, said[role].pop(0)))]


def _spoilt(number: int, stream: bool) -> tuple[Scene, str]:
    """The scene of run ``number``, and what it must end in."""
    dice = random.Random(f"{number} {stream}")
    spoils = list((SPOILS | TORN if stream else SPOILS).items())
    if stream:
        spoils += [(name, SPOILS[name]) for name in TORN]
    replies: dict[str, list[Reply]] = {"selector": [], "planner": [], "executor": [], "critic": []}
    for role, good in _good(number):
        for attempt in range(RETRIES + 1):
            if dice.random() >= SPOILT:
                replies[role].append(good)
                break
            error_class, (spoilt, again) = dice.choice(spoils)
            replies[role].append(spoilt)
            if not again or attempt == RETRIES:
                return Scene(f"run-{number:02d}", replies, LONG), error_class
    return Scene(f"run-{number:02d}", replies, LONG), "approve"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_fifty_runs_at_once_end_each_in_its_own_way(stream: bool, database: Database) -> None:
    scenes, expected = _all_of(stream)

    played = await play(database, scenes, concurrency=RUNS, llm_retries=RETRIES, llm_backoff_s=0.01, llm_stream=stream)

    ends = {name: run.terminated_by or run.error_class for name, run in played.runs.items()}
    assert ends == expected
    assert len(set(ends.values())) > 2, "the dice left too little to see"
    for number, scene in enumerate(scenes):
        run, calls = played.runs[scene.task_id], played.calls[scene.task_id]
        assert (run.all_tokens_in or 0, run.all_tokens_out or 0) == played.sent_usage(scene.task_id)
        assert run.model_calls == len(calls) == len(played.requests[scene.task_id])
        assert (sum(c.prompt_tokens or 0 for c in calls)) == (run.all_tokens_in or 0)
        if run.status == "completed":
            assert run.final_answer == str(number * 1000)
        _hears_only_of_itself(scene, [request.body for _, request in played.requests[scene.task_id]])
    assert played.leftover_tasks == []
    assert played.complaints == []
    assert all(check.count == 0 for check in run_checks(database.engine))


def _all_of(stream: bool) -> tuple[list[Scene], dict[str, str]]:
    made = [_spoilt(number, stream) for number in range(RUNS)]
    return [scene for scene, _ in made], {scene.task_id: end for scene, end in made}


def _hears_only_of_itself(scene: Scene, bodies: Sequence[object]) -> None:
    named = {name for body in bodies for name in re.findall(r"\[scene ([\w-]+)\]", json.dumps(body))}
    assert named == {scene.task_id}
