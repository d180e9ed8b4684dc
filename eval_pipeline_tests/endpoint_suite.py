"""A suite of small tasks and an endpoint that solves them, for tests with real processes: commands, workers, daemons.

The endpoint keeps no state of a run: what it answers follows from the request alone, so that a run which was killed
can be tried again, and any number of processes can ask at once. What is done to those processes is for the tests.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from eval_pipeline.teams.registry import load_teams
from eval_pipeline.teams.spec import ROLES, TeamSpec
from eval_pipeline_tests.agents.scenes import ANSWER, APPROVAL, COMPUTE, GOLD, PLAN, choose
from eval_pipeline_tests.stub_openai import Reply, Request, StubServer, stub_in_a_thread

SUITE = "small"
TEAM = "v1-baseline"
CALLS_OF_A_RUN = 8
"""Four choices of a speaker; planner, executor, planner and critic."""
_TASK = re.compile(r"\[task ([\w.-]+)\]")
_RESULT = "42"
_GOLDEN = 0.618

_SUITES = """
suites:
  {name}:
    title: Small
    benchmark: gaia
    data: {data}
    attempts: {attempts}
{more}
"""

Meddler = Callable[[str, Request], Reply | None]
"""Given the task's id and the request: an answer in place of the right one, or ``None``."""


def task_ids(count: int) -> list[str]:
    return [f"task-{number:03}" for number in range(count)]


def write_suite(folder: Path, count: int, more: str = "", attempts: int = 1) -> Path:
    """A suites file in ``folder`` with one suite of ``count`` tasks; ``more`` is YAML below it."""
    data = folder / "tasks"
    data.mkdir(parents=True, exist_ok=True)
    lines = [
        {"task_id": name, "Question": f"What is 6 * 7? [task {name}]", "Level": 1, "Final answer": GOLD}
        for name in task_ids(count)
    ]
    (data / "metadata.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    suites = folder / "suites.yaml"
    suites.write_text(_SUITES.format(name=SUITE, data=data, attempts=attempts, more=more), encoding="utf-8")
    return suites


@dataclass(frozen=True)
class Asked:
    """One request that came in, by task and role; ``first`` begins a try."""

    task_id: str
    role: str
    first: bool
    request: Request


class Solver:
    """Answers as a team that does well would, after ``delay_s`` or so; ``meddler`` lets it do otherwise."""

    def __init__(self, team: TeamSpec, delay_s: float = 0.0) -> None:
        self._roles = {team.prompts[role].strip(): role for role in ROLES}
        self._lock = threading.Lock()
        self.delay_s = delay_s
        self.meddler: Meddler | None = None
        self.asked: list[Asked] = []

    def __call__(self, request: Request) -> Reply:
        texts = [str(message.get("content")) for message in request.messages]
        found = _TASK.search("\n".join(texts))
        assert found is not None, texts
        role = self._roles.get(texts[0].strip(), "selector")
        talk = "\n".join(texts) if role == "selector" else "\n".join(texts[1:])
        planned, answered = PLAN.text in talk, "The sum is done." in talk
        asked = Asked(found[1], role, role == "selector" and not planned, request)
        with self._lock:
            self.asked.append(asked)
        if self.meddler is not None and (instead := self.meddler(asked.task_id, request)) is not None:
            return instead
        said = {line.strip().removeprefix("executor:").strip() for line in talk.split("\n")}
        computed = planned and _RESULT in said
        # half as long to half as long again, or runs that begin together would end together
        delay_s = self.delay_s * (0.5 + request.number * _GOLDEN % 1)
        return replace(self._answer(role, planned, computed, answered), delay_s=delay_s)

    def _answer(self, role: str, planned: bool, computed: bool, answered: bool) -> Reply:
        match role:
            case "selector":
                return choose("critic" if answered else "executor" if planned and not computed else "planner")
            case "planner":
                return ANSWER if computed else PLAN
            case "executor":
                return COMPUTE
            case _:
                return APPROVAL

    def of(self, task_id: str) -> list[Asked]:
        """What was asked for one task, in order."""
        with self._lock:
            return [asked for asked in self.asked if asked.task_id == task_id]


@dataclass(frozen=True)
class Endpoint:
    """A running endpoint with its suite, and the environment that leads a process to both."""

    solver: Solver
    stub: StubServer
    suites_file: Path

    @property
    def environment(self) -> Mapping[str, str]:
        return {
            "EVAL_LLM_PROVIDER": "openai",
            "EVAL_LLM_BASE_URL": self.stub.base_url,
            "EVAL_LLM_MODEL": "stub-model",
            "EVAL_LLM_BACKOFF_S": "0.1",
            "EVAL_SUITES_FILE": str(self.suites_file),
        }


@contextmanager
def endpoint_with(folder: Path, count: int, *, delay_s: float = 0.0, more: str = "") -> Iterator[Endpoint]:
    """The suite in ``folder`` and its endpoint in a thread of this process."""
    suites = write_suite(folder, count, more)
    solver = Solver(load_teams(None)[TEAM], delay_s)
    with stub_in_a_thread(solver) as stub:
        yield Endpoint(solver, stub, suites)


def run_arguments(batch: str, *more: str) -> Sequence[str]:
    """The arguments of ``eval-pipeline`` that run the suite."""
    return ("run", "--suite", SUITE, "--batch", batch, "--team", TEAM, "--retry-crashed", *more)
