"""Failures counted by class, by ending and by what was seen in the traces."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eval_pipeline.ids import TaskAttempt
from eval_pipeline.reporting.failures import contaminations, endings, failure_classes, modes
from eval_pipeline.reporting.material import Run, Signal
from eval_pipeline_tests.reporting.test_rates import crashed, ended


def wrong(task_id: str, **changes: object) -> Run:
    return replace(ended(task_id, False), **changes)  # type: ignore[arg-type]


def test_a_failure_is_filed_under_its_crash_its_format_or_its_answer() -> None:
    runs = [
        ended("a", True),
        wrong("b"),
        wrong("c"),
        wrong("d", format_valid=False),
        crashed("e"),
        replace(crashed("f"), error_class="quota"),
        replace(ended("g", True), status="running", success=None),
    ]
    found = [(one.name, one.verdict, one.count) for one in failure_classes(runs)]
    assert found == [
        ("wrong", "wrong", 2),
        ("crashed: quota", "crashed", 1),
        ("crashed: timeout", "crashed", 1),
        ("no valid answer", "no valid answer", 1),
    ]
    assert sum(one.share for one in failure_classes(runs)) == pytest.approx(5 / 7)


def test_every_verdict_has_a_word() -> None:
    verdicts = {
        "right": ended("a", True),
        "wrong": wrong("a"),
        "no valid answer": wrong("a", format_valid=False),
        "crashed": crashed("a"),
        "running": replace(ended("a", True), status="running", success=None),
        "not started": replace(ended("a", True), status=None, success=None),
    }
    assert {name: run.verdict for name, run in verdicts.items()} == {name: name for name in verdicts}


def test_endings_keep_their_order_and_count_each_verdict() -> None:
    runs = [
        replace(ended("a", True), terminated_by="max_messages"),
        wrong("b", terminated_by="max_messages"),
        replace(ended("c", True), terminated_by="approve"),
        wrong("d", terminated_by=None),
        crashed("e"),
    ]
    assert [(one.name, one.counts, one.total) for one in endings(runs)] == [
        ("approve", (("right", 1),), 1),
        ("max_messages", (("right", 1), ("wrong", 1)), 2),
        ("not said", (("wrong", 1),), 1),
    ]


def test_modes_count_runs_and_a_judges_stand_behind_the_rules() -> None:
    repeats = Signal("step_repetition", "decided", "rules", (3, 5), "alike")
    looks_so = replace(repeats, confidence="signal")
    judged = replace(repeats, found_by="judge")
    other = Signal("premature_termination", "signal", "rules", (1,), "")
    runs = [
        wrong("a", signals=(repeats, judged)),
        wrong("b", signals=(looks_so,)),
        replace(ended("c", True), signals=(repeats,)),
        wrong("d", signals=(other,)),
    ]
    assert [(one.name, one.found_by, one.runs, one.decided, one.failed) for one in modes(runs)] == [
        ("step_repetition", "rules", 3, 2, 2),
        ("premature_termination", "rules", 1, 0, 1),
        ("step_repetition", "judge", 1, 1, 1),
    ]


def test_contaminations_are_counted_apart() -> None:
    flag = Signal("answer_key_file", "decided", "contamination", (4,), "")
    runs = [replace(ended("a", True), flags=(flag,)), replace(wrong("b"), cell=TaskAttempt("b", 1))]
    assert [(one.name, one.runs, one.failed) for one in contaminations(runs)] == [("answer_key_file", 1, 0)]
    assert modes(runs) == []
