"""Plays runs against the stub endpoint through the product's own run path, and shows what they left in the database.

A scene says what the endpoint answers to each role of one run; all scenes of a play are the cells of one launch. What
has to come of them is for the tests to say.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import Row, Table, select

from eval_pipeline.benchmarks.base import Task
from eval_pipeline.db import tables
from eval_pipeline.execution import run_many
from eval_pipeline.execution.cells import CellResult
from eval_pipeline.execution.launch import Launch, open_launch
from eval_pipeline.ids import BatchTeam, TaskAttempt
from eval_pipeline.settings import Settings
from eval_pipeline.suites import LoadedSuite, Suite, content_hash
from eval_pipeline.teams.registry import load_teams
from eval_pipeline.teams.spec import ROLES, TeamSpec
from eval_pipeline_tests.conftest import Database
from eval_pipeline_tests.stub_openai import Reply, Request, StubServer, text, tool_calls

GOLD = "42"
PLAN = text("Compute 6 * 7.")
ANSWER = text(f"The sum is done.\nFINAL ANSWER: {GOLD}")
COMPUTE = tool_calls([("python_calc", '{"expression": "6 * 7"}')])
APPROVAL = text("It follows from the tool's result.\n\nAPPROVE")
SHORT = ("planner", "critic")
LONG = ("planner", "executor", "planner", "critic")
_TASK = re.compile(r"\[scene ([\w.-]+)\]")
_REASONS = {"planner": "NEEDS_PLANNING", "executor": "NEEDS_EXECUTION", "critic": "NEEDS_VERIFICATION"}


def choose(name: str, summary: str = "", **more: Any) -> Reply:
    """The selector's answer that names ``name``."""
    reason = _REASONS.get(name, "NEEDS_PLANNING")
    return text(f'{{"next": "{name}", "reason_code": "{reason}", "summary": "{summary}"}}', **more)


@dataclass(frozen=True, eq=False)
class Scene:
    """What the endpoint answers in one run: to each role its replies in order, the last of them for ever.

    A role without replies behaves well: the selector follows ``route``, the planner plans while the executor is still
    to come and answers then, the executor computes, the critic approves.
    """

    task_id: str
    replies: Mapping[str, Sequence[Reply]] = field(default_factory=dict)
    route: Sequence[str] = SHORT
    question: str = "What is 6 * 7?"

    @property
    def task(self) -> Task:
        return Task(self.task_id, "gaia", 1, f"{self.question} [scene {self.task_id}]", GOLD)


class Stage:
    """A script for the stub that plays many scenes at once, told apart by their task's text."""

    def __init__(self, scenes: Sequence[Scene], spec: TeamSpec) -> None:
        self._scenes = {scene.task_id: scene for scene in scenes}
        self._roles = {spec.prompts[role].strip(): role for role in ROLES}
        self._asked: Counter[tuple[str, str]] = Counter()
        self._choices: dict[str, list[str]] = {scene.task_id: [] for scene in scenes}
        self.requests: dict[str, list[tuple[str, Request]]] = {scene.task_id: [] for scene in scenes}
        """By scene, the role that asked and its request."""

    def __call__(self, request: Request) -> Reply:
        texts = [str(message.get("content")) for message in request.messages]
        scene = self._scenes[_found(_TASK, "\n".join(texts))]
        role = self._roles.get(texts[0].strip(), "selector")
        self.requests[scene.task_id].append((role, request))
        number = self._asked[scene.task_id, role]
        self._asked[scene.task_id, role] += 1
        usual = self._usual(scene, role, texts[0])
        replies = scene.replies.get(role) or (usual,)
        reply = replies[min(number, len(replies) - 1)]
        # figures that no other answer of any scene has, so that a mix-up shows
        at = sum(map(len, self.requests.values()))
        return replace(usual if reply is GOOD else reply, prompt_tokens=1000 + at, completion_tokens=10 + at % 7)

    def _usual(self, scene: Scene, role: str, prompt: str) -> Reply:
        if role == "selector":
            # a prompt that was not there before is a new choice; the same one again is a retry
            choices = self._choices[scene.task_id]
            if prompt not in choices:
                choices.append(prompt)
            return choose(scene.route[min(choices.index(prompt), len(scene.route) - 1)])
        if role == "planner":
            spoken = sum(one == "planner" for one, _ in self.requests[scene.task_id])
            return PLAN if "executor" in scene.route and spoken == 1 else ANSWER
        return COMPUTE if role == "executor" else APPROVAL


GOOD = Reply()
"""In a scene's replies: what the role would have said without any."""


@dataclass
class Played:
    """What became of the scenes: rows by task id, and what the launch left behind."""

    results: dict[str, CellResult]
    runs: dict[str, Row[Any]]
    calls: dict[str, list[Row[Any]]]
    events: dict[str, list[Row[Any]]]
    requests: dict[str, list[tuple[str, Request]]]
    leftover_tasks: list[str]
    complaints: list[str]
    """What asyncio had to say of exceptions that nobody took."""

    def sent_usage(self, task_id: str) -> tuple[int, int]:
        """The tokens that the endpoint told of in all its answers to one run."""
        sent = [request.usage or (None, None) for _, request in self.requests[task_id]]
        return sum(one[0] or 0 for one in sent), sum(one[1] or 0 for one in sent)


def settings_for(database: Database, base_url: str, **changes: object) -> Settings:
    """Settings that lead to the stub, with quick retries."""
    values = {
        "llm_provider": "openai",
        "llm_base_url": base_url,
        "llm_model": "stub-model",
        "llm_retries": 2,
        "llm_backoff_s": 0.0,
        "llm_timeout_s": 60.0,
        "run_timeout_s": 120.0,
        "max_messages": 8,
        "concurrency": 25,
    }
    return Settings.model_validate({**database.settings.model_dump(), **values, **changes})


def launch_of(database: Database, settings: Settings, scenes: Sequence[Scene], key: str) -> Launch:
    """A launch whose suite has the scenes' tasks."""
    tasks = tuple(scene.task for scene in scenes)
    suite = Suite("scenes", "gaia", "Scenes", "", 1, (), False, (), None, None, {})
    loaded = LoadedSuite(suite, tasks, content_hash(tasks))
    return open_launch(settings, database.engine, BatchTeam.parse(key), loaded, load_teams(None))


async def play(
    database: Database, scenes: Sequence[Scene], *, key: str = "scenes@v1-baseline", **changes: Any
) -> Played:
    """Run all scenes in one launch, to its end, and read back what it stored."""
    spec = load_teams(None)[BatchTeam.parse(key).team]
    stage = Stage(scenes, spec)
    async with StubServer(stage) as stub:
        settings = settings_for(database, stub.base_url, **changes)
        launch = launch_of(database, settings, scenes, key)
        return await played(launch, scenes, stage, stub)


async def played(launch: Launch, scenes: Sequence[Scene], stage: Stage, stub: StubServer | None = None) -> Played:
    """Run the scenes of an open launch; ``stub`` is the endpoint if it lives in this event loop."""
    before = asyncio.all_tasks()
    results: list[CellResult] = []
    with _loop_complaints() as complaints:
        cells = [TaskAttempt(scene.task_id, 1) for scene in scenes]
        await run_many.run_cells(launch, cells, lambda _plan: None, results.extend)
        left = asyncio.all_tasks() - before - (stub.tasks if stub else set())
        gc.collect()  # an exception that nobody took is complained of when its task is collected
    return Played(
        {result.task_attempt.task_id: result for result in results},
        *stored(launch, scenes),
        stage.requests,
        [task.get_name() + repr(task.get_coro()) for task in left],
        complaints,
    )


def stored(
    launch: Launch, scenes: Sequence[Scene]
) -> tuple[dict[str, Row[Any]], dict[str, list[Row[Any]]], dict[str, list[Row[Any]]]]:
    """The rows of ``runs`` (the latest try), ``model_calls`` and ``events`` that a launch has stored, by task id."""
    runs = tables.runs
    batch_team = launch.batch_team
    with launch.engine.connect() as connection:
        of_batch = select(runs).where(runs.c.batch_id == batch_team.batch, runs.c.team_id == batch_team.team)
        found = {row.task_id: row for row in connection.execute(of_batch.order_by(runs.c.try_no))}

        def rows(table: Table, order: str) -> dict[str, list[Row[Any]]]:
            query = select(table).order_by(table.c[order])
            return {
                scene.task_id: list(connection.execute(query.where(table.c.run_id == found[scene.task_id].run_id)))
                for scene in scenes
                if scene.task_id in found
            }

        return found, rows(tables.model_calls, "call_no"), rows(tables.events, "seq")


class _loop_complaints:  # noqa: N801 - used as a function is
    """Collects what the launch's exception handler hears of the event loop."""

    def __enter__(self) -> list[str]:
        self._heard: list[str] = []
        self._logger = logging.getLogger(run_many.__name__)
        self._level = self._logger.level
        self._handler = _Listener(self._heard)
        self._logger.setLevel(logging.DEBUG)
        self._logger.addHandler(self._handler)
        return self._heard

    def __exit__(self, *_: object) -> None:
        self._logger.removeHandler(self._handler)
        self._logger.setLevel(self._level)


class _Listener(logging.Handler):
    def __init__(self, heard: list[str]) -> None:
        super().__init__(logging.DEBUG)
        self._heard = heard

    def emit(self, record: logging.LogRecord) -> None:
        if record.getMessage().startswith("event loop"):
            self._heard.append(record.getMessage())


def _found(pattern: re.Pattern[str], whole: str) -> str:
    found = pattern.search(whole)
    assert found is not None, f"no scene is named in {whole[:200]!r}"
    return found[1]


_WORDS: Mapping[str, Callable[[Row[Any]], str]] = {
    "agent_message": lambda row: row.source,
    "selector_decision": lambda row: f"→{row.target or '?'}{_unusual(row.reason_code)}",
    "tool_call": lambda row: f"call:{row.tool_name}",
    "tool_result": lambda _row: "result",
    "tool_error": lambda row: f"error:{row.error['type']}",
    "final_answer": lambda row: f"end:{row.payload['terminated_by']}",
}


def _unusual(reason_code: str) -> str:
    return f"({reason_code})" if reason_code in ("FALLBACK", "PARSE_FAILED") else ""


def trace_line(events: Sequence[Row[Any]]) -> str:
    """A trace in short: who spoke, ``→`` whom the selector chose, tool calls and what came of them, the end."""
    return " ".join(_WORDS[row.message_type](row) for row in events)
