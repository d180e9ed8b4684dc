"""Signals of stored runs: what the sample scripts planted is found, once, and again when there is a reason to look."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from sqlalchemy import Connection, Row, select, text, update

from eval_pipeline.db import tables
from eval_pipeline.failures import store
from eval_pipeline.failures.store import NO_SIGNAL, classify_batch
from eval_pipeline.ids import BatchTeam
from eval_pipeline_tests.played import V1, V3, V5

PLANTED = {
    (V1, "cafe-food-total"): {
        "disobey_task_specification": "the answer is a placeholder",
        "fail_to_ask_for_clarification": "the path of the file was guessed",
        "incorrect_verification": "the critic approved a wrong answer",
    },
    (V1, "museum-weekend-children"): {
        "disobey_task_specification": "no FINAL ANSWER line was written",
        "unaware_of_termination_conditions": "went on to the message limit",
        "step_repetition": "read_attached_file was called 7 times alike",
        "ignored_other_agents_input": "read_attached_file failed alike 7 times",
        "fail_to_ask_for_clarification": "the path of the file was guessed",
    },
    (V1, "last-bus-minute"): {
        "unaware_of_termination_conditions": "answered, then went on to the message limit",
        "no_or_incomplete_verification": "nobody checked the answer",
        "step_repetition": "the planner said the same 14 times",
    },
    (V1, "bike-member-minutes"): {
        "fail_to_ask_for_clarification": "the path of the file was guessed",
        "premature_termination": "answered right after a tool error",
        "incorrect_verification": "the critic approved a wrong answer",
    },
    (V1, "floor-tiles"): {},
    (V3, "cafe-food-total"): {
        "premature_termination": "answered right after a tool error",
        "incorrect_verification": "the critic approved a wrong answer",
    },
    (V3, "first-letters-word"): {
        "disobey_task_specification": "no FINAL ANSWER line was written",
        "incorrect_verification": "the critic approved a wrong answer",
    },
    (V3, "floor-tiles"): {},
    (V5, "cafe-food-total"): {},
    (V5, "first-letters-word"): {},
    (V5, "floor-tiles"): {},
    (V5, "last-bus-minute"): {},
    (V5, "shapes-red-squares"): {"incorrect_verification": "the critic approved a wrong answer"},
}
"""What the scripts planted, by team and task; nothing for a clean run."""


def signals_of(
    connection: Connection, batch_team: BatchTeam, *, latest: bool = True
) -> Sequence[Row[tuple[object, ...]]]:
    query = (
        "select task_id, mode, confidence, seqs, detail, version from v_failure_signals"
        " where batch_id = :batch and team_id = :team and latest = :latest order by 1, 2, 6"
    )
    parameters = {"batch": batch_team.batch, "team": batch_team.team, "latest": latest}
    return connection.execute(text(query), parameters).all()


def test_the_planted_signals_are_found_and_clean_runs_have_none(connection: Connection) -> None:
    for batch_team in (V1, V3, V5):
        counts = classify_batch(connection, batch_team)
        found: dict[str, dict[str, str]] = {}
        for row in signals_of(connection, batch_team):
            found.setdefault(row.task_id.removeprefix("sample-"), {})[row.mode] = row.detail
        planted = {task: modes for (team, task), modes in PLANTED.items() if team == batch_team and modes}
        assert found == planted
        assert counts == {
            mode: sum(mode in modes for modes in planted.values()) for modes in planted.values() for mode in modes
        }


def test_every_signal_names_events_of_its_run(connection: Connection) -> None:
    classify_batch(connection, V1)
    query = (
        "select count(*) from failure_signals as signal cross join unnest(signal.seqs) as named"
        " left join events as event on event.run_id = signal.run_id and event.seq = named where event.seq is null"
    )
    assert connection.execute(text(query)).scalar_one() == 0
    assert connection.execute(text("select min(cardinality(seqs)) from failure_signals")).scalar_one() > 0


def test_a_run_is_filed_under_its_first_mode_and_a_clean_one_under_none(connection: Connection) -> None:
    classify_batch(connection, V1)
    rows = connection.execute(
        select(tables.runs.c.task_id, tables.runs.c.failure_stage).where(tables.runs.c.team_id == V1.team)
    )
    filed = {task_id.removeprefix("sample-"): stage for task_id, stage in rows}
    assert filed["cafe-food-total"] == "disobey_task_specification"
    assert filed["last-bus-minute"] == "unaware_of_termination_conditions"
    assert filed["floor-tiles"] == NO_SIGNAL


@pytest.mark.parametrize("again", [False, True])
def test_computing_again_changes_nothing(connection: Connection, again: bool) -> None:
    first = classify_batch(connection, V1)
    before = signals_of(connection, V1)
    assert classify_batch(connection, V1, again=again) == first
    assert signals_of(connection, V1) == before


def test_what_has_been_looked_at_is_left_alone_until_it_is_asked_for(connection: Connection) -> None:
    classify_batch(connection, V1)
    connection.execute(text("delete from failure_signals"))
    assert classify_batch(connection, V1) == {}
    assert classify_batch(connection, V1, again=True)["step_repetition"] == 2


def test_another_version_looks_again_and_the_older_signals_stay(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    classify_batch(connection, V1)
    older = signals_of(connection, V1)
    monkeypatch.setattr(store, "VERSION", "rules-next")
    classify_batch(connection, V1)
    assert [row[:5] for row in signals_of(connection, V1)] == [row[:5] for row in older]
    assert {row.version for row in signals_of(connection, V1)} == {"rules-next"}
    assert signals_of(connection, V1, latest=False) == older


def test_a_changed_verdict_is_looked_at_again(connection: Connection) -> None:
    classify_batch(connection, V5)
    (wrong,) = signals_of(connection, V5)
    runs = tables.runs
    connection.execute(
        update(runs).where(runs.c.team_id == V5.team, runs.c.task_id == wrong.task_id).values(success=True)
    )
    assert signals_of(connection, V5) == []
    assert classify_batch(connection, V5) == {}
    connection.execute(
        update(runs).where(runs.c.team_id == V5.team, runs.c.task_id == "sample-floor-tiles").values(success=False)
    )
    assert classify_batch(connection, V5) == {"incorrect_verification": 1}


def test_a_crashed_run_is_looked_at_and_a_running_one_is_not(connection: Connection) -> None:
    runs = tables.runs
    ended = {"success": None, "format_valid": None, "terminated_by": None}
    of_team = update(runs).where(runs.c.team_id == V3.team)
    crash = {"status": "crashed", "error_class": "connection", **ended}
    connection.execute(of_team.where(runs.c.task_id == "sample-cafe-food-total").values(crash))
    running = {"status": "running", "finished_at": None, **ended}
    connection.execute(of_team.where(runs.c.task_id == "sample-first-letters-word").values(running))
    classify_batch(connection, V3)
    rows = connection.execute(select(runs.c.task_id, runs.c.failure_stage).where(runs.c.team_id == V3.team))
    filed = {task_id.removeprefix("sample-"): stage for task_id, stage in rows}
    assert filed["first-letters-word"] is None
    assert {filed["cafe-food-total"], filed["floor-tiles"]} == {"premature_termination", NO_SIGNAL}
