"""``compare`` and ``experiment`` in a terminal and as JSON."""

from __future__ import annotations

import pytest

from eval_pipeline.stats.paired import holm
from eval_pipeline_tests.commands.running import command
from eval_pipeline_tests.conftest import Database
from eval_pipeline_tests.played import V1, V3, V5


def test_several_batches_are_held_against_one_baseline_and_adjusted(played: Database) -> None:
    told = command("compare", V1.key, V3.key, V5.key, "--json").json
    assert [(one["before"], one["after"]) for one in told] == [(V1.key, V3.key), (V1.key, V5.key)]
    (to_v3, to_v5) = told
    assert (to_v3["tasks"], to_v5["tasks"]) == (2, 3)
    assert (to_v5["gained"], to_v5["lost"]) == (["sample-cafe-food-total", "sample-last-bus-minute"], [])
    assert to_v5["difference"]["mean"] == pytest.approx(2 / 3)
    assert to_v5["attachments"] == pytest.approx({"none": 0.5, "xlsx": 1})
    adjusted = holm({one["after"]: one["p_value"] for one in told})
    assert {one["after"]: one["p_value_holm"] for one in told} == adjusted
    shown = command("compare", V1.key, V5.key)
    assert "(scripted model)" in shown.out
    assert "gained: sample-cafe-food-total, sample-last-bus-minute" in shown.out
    assert "No difference is shown between b@v5-multitool and b@v1-baseline" in shown.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("compare", "b", "b@v5-multitool"), "batch@team"),
        (("compare", "b@v1-baseline", "c@v5-multitool"), "no batch 'c@v5-multitool'"),
        (("experiment", "open", "EXP-42", "--team", "v5-multitool", "--hypothesis", "x"), "EXP-42"),
        (("experiment", "open", "EXP-60", "--team", "v1-baseline", "--hypothesis", "x"), "extends no other"),
        (("experiment", "close", "EXP-42", "--before", "b", "--after", "b"), "no batch 'b@v4-prompt-fix'"),
        (("experiment", "close", "EXP-99", "--before", "b", "--after", "b"), "EXP-99"),
    ],
)
def test_a_mistake_is_one_line(played: Database, arguments: tuple[str, ...], said: str) -> None:
    assert said in (command(*arguments).error or "")


def test_an_experiment_is_opened_closed_and_listed(played: Database) -> None:
    opened = command("experiment", "open", "EXP-60", "--team", "v5-multitool", "--hypothesis", "Readers help.")
    assert opened.out.strip() == "EXP-60 is open: v4-prompt-fix → v5-multitool (tools)"
    tasks = "sample-floor-tiles,sample-first-letters-word"
    run = command("run", "--suite", "sample", "--batch", "c", "--team", "v4-prompt-fix", "--task-ids", tasks)
    assert run.code == 0
    closed = command("experiment", "close", "EXP-60", "--before", "c", "--after", "b")
    assert closed.out.startswith("EXP-60: inconclusive. No difference is shown between b@v5-multitool and c@v4-prompt")
    entries = {one["experiment_id"]: one for one in command("experiment", "list", "--json").json}
    assert (entries["EXP-60"]["verdict"], entries["EXP-60"]["tasks_compared"]) == ("inconclusive", 2)
    assert entries["EXP-40"]["verdict"] == "open"
    shown = command("experiment", "list")
    assert "v5-multitool [tools]: EXP-42 open, EXP-60 inconclusive +0.0 (+0.0 to +0.0)" in shown.out
