"""The live view of a launch where there is no terminal: plain lines, each of which says all there is to know."""

from __future__ import annotations

import re
from dataclasses import replace
from uuid import uuid4

import pytest

from eval_pipeline import console
from eval_pipeline.execution.cells import CellEnd, CellResult, RunSummary
from eval_pipeline.execution.run_many import LaunchPlan, LaunchResult
from eval_pipeline.ids import BatchTeam, TaskAttempt

CONDITION = BatchTeam("b", "v1-baseline")
RUN = RunSummary(
    run_id=uuid4(), task_id="t", attempt=1, try_no=1, status="completed", success=True, format_valid=True,
    final_answer="42", gold="42", terminated_by="approve", error_class=None, error_message=None, turns=3, tool_calls=0,
    tool_errors=0, tokens_in=900, tokens_out=100, all_tokens=1500, model_calls=4, latency_ms=10, cost=None,
    events_dropped=0,
)  # fmt: skip


def cell(number: int) -> TaskAttempt:
    return TaskAttempt(f"t{number}", 1)


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    said: list[str] = []
    monkeypatch.setattr(console, "note", said.append)
    monkeypatch.setattr(console, "_PLAIN_EVERY_S", 0.0)
    return said


def test_a_line_has_done_running_crashed_tokens_rate_and_time_left(lines: list[str]) -> None:
    watch = console.Watch()
    watch.planned(CONDITION, LaunchPlan(run=5, retry=1, skip=2, left=0, most_calls=99))
    assert lines == ["b@v1-baseline: plan: 5 cells to run, 1 to retry, 2 done already, 0 crashed and left; "
                     "at most 99 model calls"]  # fmt: skip
    for number in range(3):
        watch.begun(cell(number))
    assert lines[-1].startswith("0/6 runs, 3 running, 0 crashed, 0 tokens, ")
    assert lines[-1].endswith("none ended yet")
    watch.ended(CellResult(cell(0), CellEnd.COMPLETED, RUN))
    watch.ended(CellResult(cell(1), CellEnd.CRASHED, replace(RUN, status="crashed", all_tokens=None)))
    watch.ended(CellResult(cell(9), CellEnd.SKIPPED, RUN))
    pattern = r"2/6 runs, 1 running, 1 crashed, 1,500 tokens, \d+\.\d runs/s, about \d+ s left"
    assert re.fullmatch(pattern, lines[-1])
    watch.finished(LaunchResult(CONDITION))


def test_a_second_plan_begins_to_count_again_and_quiet_says_nothing(lines: list[str]) -> None:
    watch = console.Watch()
    plan = LaunchPlan(run=1, retry=0, skip=0, left=0, most_calls=1)
    for _ in range(2):
        watch.planned(CONDITION, plan)
        watch.begun(cell(0))
        watch.ended(CellResult(cell(0), CellEnd.COMPLETED, RUN))
        assert lines[-1].startswith("1/1 runs, 0 running")
    lines.clear()
    quiet = console.Watch(quiet=True)
    quiet.planned(CONDITION, plan)
    quiet.begun(cell(0))
    quiet.ended(CellResult(cell(0), CellEnd.COMPLETED, RUN))
    quiet.close()
    assert lines == []
