"""The scripts of the benchmarks that compare a text with a gold one: their answers come out of tools, never typed."""

from __future__ import annotations

from pathlib import Path

import pytest

import eval_pipeline.sample_data
from eval_pipeline.benchmarks.base import Answer, Task
from eval_pipeline.benchmarks.registry import benchmark
from eval_pipeline.sample_data.scripts import fill, load_script
from eval_pipeline.teams.registry import load_teams
from eval_pipeline.teams.verdict import is_approval
from eval_pipeline.tools.registry import TOOLS

TASKS = [
    task
    for name in ("extract", "meeting", "ocrproxy")
    for task in benchmark(name).load(Path(eval_pipeline.sample_data.__file__).parent / name)
]
each_task = pytest.mark.parametrize("task", TASKS, ids=lambda task: task.task_id)


@each_task
def test_without_what_the_tools_return_the_answer_is_wrong(task: Task) -> None:
    steps = load_script("t1-text", task.task_id).steps
    answer = next(step.say for step in reversed(steps) if step.by == "planner" and step.say)
    assert not benchmark(task.benchmark).score(task, Answer(None, fill(answer, "/stage/x", []))).success


@each_task
def test_a_script_uses_the_tools_there_are_and_ends(task: Task) -> None:
    script = load_script("t1-text", task.task_id)
    keys = (*load_teams(None)["t1-text"].tools, *benchmark(task.benchmark).tools)
    called = {call.name for step in script.steps for call in step.calls}
    assert called
    assert called <= {TOOLS[key].name for key in keys}
    assert script.steps[-1].by == "critic"
    assert is_approval(script.steps[-1].say or "")


@each_task
def test_the_question_does_not_give_the_answer_away(task: Task) -> None:
    assert not benchmark(task.benchmark).score(task, Answer(None, task.question)).success


def test_hangul_is_among_the_tasks_of_each_benchmark() -> None:
    for name in ("extract", "meeting", "ocrproxy"):
        questions = [task.question for task in TASKS if task.benchmark == name]
        assert len(questions) >= 5
        assert (
            2
            <= sum(any("가" <= character <= "힣" for character in question) for question in questions)
            < len(questions)
        )
