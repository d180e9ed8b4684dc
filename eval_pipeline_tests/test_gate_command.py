"""``eval-pipeline gate``: its exit code is all that a CI job needs, its JUnit file what a person then reads."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from eval_pipeline_tests.assets.grids import block_staging
from eval_pipeline_tests.conftest import Database
from eval_pipeline_tests.db.builders import Rows
from eval_pipeline_tests.execution.launching import CAFE, TANK, TILES
from eval_pipeline_tests.test_cli import Outcome, command

GOOD, POOR = "good@v1", "poor@v1"
Verdict = bool | str | None
"""Right or wrong; ``crashed``; ``running``; or planned and nothing more."""
Planted = Callable[..., None]


@pytest.fixture
def plant(database: Database) -> Planted:
    """Makes a batch with the given verdicts by task."""
    with database.engine.begin() as connection:
        Rows(connection).team()
    known: set[str] = set()

    def planted(key: str, verdicts: Mapping[str, Verdict], **columns: Any) -> None:
        batch_id = key.partition("@")[0]
        with database.engine.begin() as connection:
            rows = Rows(connection)
            rows.batch(batch_id, **columns)
            for task_id, verdict in verdicts.items():
                if task_id not in known:
                    rows.task(task_id)
                known.add(task_id)
                rows.cell(task_id, batch_id=batch_id)
                match verdict:
                    case bool():
                        rows.completed(task_id, success=verdict, batch_id=batch_id, terminated_by="approve")
                    case "crashed":
                        rows.crashed(task_id, batch_id=batch_id)
                    case "running":
                        rows.run(task_id, batch_id=batch_id)

    return planted


def tasks(*verdicts: Verdict) -> dict[str, Verdict]:
    return {f"task-{number:02}": verdict for number, verdict in enumerate(verdicts)}


def gate(batch_team: str, *more: str) -> Outcome:
    return command("gate", "--batch", batch_team, *more)


def test_the_exit_code_says_whether_every_bound_is_kept(plant: Planted) -> None:
    plant(GOOD, tasks(True, True, False))
    for more, code in (
        ((), 0),
        (("--min-pass", "0"), 0),
        (("--min-pass", "0.66"), 0),
        (("--min-pass", "0.67"), 1),
        (("--min-pass", "1"), 1),
        (("--max-crashed", "0"), 0),
    ):
        outcome = gate(GOOD, *more)
        assert outcome.code == code, more
        assert ("FAIL" in outcome.out) is bool(code)
        document = json.loads(gate(GOOD, *more, "--json").out)
        assert document["passed"] is all(one["holds"] for one in document["conditions"]) is not bool(code)
        assert (document["planned"], document["completed"], document["successes"]) == (3, 3, 2)


def test_crashes_stay_in_the_denominator_and_have_a_bound_of_their_own(plant: Planted) -> None:
    plant(GOOD, tasks(True, True, "crashed"))
    assert gate(GOOD).code == 1
    assert gate(GOOD, "--max-crashed", "0.34").code == 0
    assert gate(GOOD, "--max-crashed", "0.34", "--min-pass", "0.67").code == 1
    said = gate(GOOD).out
    assert "FAIL  at most 5% crashed: 1 of 3 (33.3%)" in said
    assert "pass  every planned run has ended: 0 of 3 have not" in said


@pytest.mark.parametrize("verdicts", [tasks(True, "running"), tasks(True, None), {}])
def test_a_batch_that_has_not_ended_or_never_began_does_not_pass(
    plant: Planted, verdicts: Mapping[str, Verdict]
) -> None:
    plant(GOOD, verdicts)
    outcome = gate(GOOD, "--min-pass", "0", "--max-crashed", "1")
    assert outcome.code == 1
    assert "FAIL  every planned run has ended" in outcome.out


@pytest.mark.parametrize(
    ("after", "code", "words"),
    [
        (tasks(*[True] * 30), 0, "is better than"),
        (tasks(*[True] * 16, *[False] * 14), 0, "No difference is shown"),
        (tasks(*[False] * 30), 1, "is worse than"),
        (tasks(*[True] * 20, *["crashed"] * 10), 1, "Not comparable"),
    ],
)
def test_a_batch_is_held_against_a_baseline(
    plant: Planted, after: Mapping[str, Verdict], code: int, words: str
) -> None:
    plant(POOR, tasks(*[True, False] * 15))
    plant(GOOD, after)
    outcome = gate(GOOD, "--against", POOR, "--max-crashed", "1")
    assert outcome.code == code
    assert words in outcome.out


def test_other_tasks_are_no_baseline(plant: Planted) -> None:
    plant(POOR, tasks(True), suite_hash="o" * 64)
    plant(GOOD, tasks(True))
    outcome = gate(GOOD, "--against", POOR)
    assert outcome.code == 2
    assert "different tasks" in (outcome.error or "")


def test_the_junit_file_has_a_case_per_condition_and_per_cell(plant: Planted, tmp_path: Path) -> None:
    plant(GOOD, tasks(True, False, "crashed", None))
    path = tmp_path / "결과" / "junit.xml"
    assert gate(GOOD, "--min-pass", "0.9", "--junit", str(path)).code == 1

    suite = ElementTree.parse(path).getroot()
    assert (suite.tag, suite.get("name")) == ("testsuite", GOOD)
    cases = suite.findall("testcase")
    assert suite.get("tests") == str(len(cases)) == str(3 + 4)
    assert suite.get("failures") == str(len(suite.findall("testcase/failure"))) == str(3 + 1)
    assert suite.get("errors") == str(len(suite.findall("testcase/error"))) == "2"
    problems = {case.get("name"): [child.get("message") for child in case] for case in cases}
    assert problems["task-00#1"] == []
    assert problems["task-01#1"] == ["wrong answer"]
    assert problems["task-02#1"] == ["crashed connection"]
    assert problems["task-03#1"] == ["not started"]
    assert all(float(str(case.get("time"))) >= 0 for case in cases if case.get("classname") == GOOD)


HOSTILE = (
    (("--batch", "nothing@v1"), "nothing@v1"),
    (("--batch", "no-team"), "batch@team"),
    (("--batch", "a@b@c"), "batch@team"),
    (("--batch", "../etc@passwd"), "--batch"),
    (("--batch", "가나@다라"), "--batch"),
    (("--batch", "good@v1\x00'; drop table runs"), "--batch"),
    (("--batch", "\ud800@v1"), "--batch"),
    (("--batch", "x" * 5000 + "@v1"), "--batch"),
    (("--batch", GOOD, "--against", "nothing@v1"), "nothing@v1"),
    (("--batch", GOOD, "--against", "nonsense"), "--against"),
    (("--batch", GOOD, "--junit", "/proc/none/junit.xml"), "--junit"),
    (("--batch", GOOD, "--junit", "."), "--junit"),
)


def test_what_cannot_be_asked_is_one_line(plant: Planted) -> None:
    plant(GOOD, tasks(True))
    for arguments, said in HOSTILE:
        outcome = command("gate", *arguments)
        assert outcome.code == 2, arguments
        assert outcome.error is not None
        assert said in outcome.error
        assert len(outcome.error) < 500


def test_a_share_is_from_0_to_1(plant: Planted) -> None:
    plant(GOOD, tasks(True))
    for value in ("1.5", "-0.1", "many", "inf", "nan", ""):
        assert gate(GOOD, f"--min-pass={value}").code == 2, value
        assert gate(GOOD, f"--max-crashed={value}").code == 2, value


@pytest.mark.slow
def test_a_batch_that_really_ran_is_judged_by_what_it_came_to(database: Database) -> None:
    obstacle = block_staging(CAFE.task_id)
    chosen = ",".join(task.task_id for task in (CAFE, TANK, TILES))
    key = "b@v4-prompt-fix"
    run = ("run", "--suite", "sample", "--batch", "b", "--team", "v4-prompt-fix", "--task-ids", chosen)
    assert command(*run).code == 1
    obstacle.unlink()
    assert gate(key).code == 1
    assert command(*run, "--retry-crashed").code == 0
    assert gate(key, "--min-pass", "0.6").code == 0
    assert gate(key, "--min-pass", "0.7").code == 1
