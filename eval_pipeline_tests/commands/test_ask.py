"""``ask``: the questions and their answers in a terminal and as JSON."""

from __future__ import annotations

import pytest

from eval_pipeline_tests.commands.running import command
from eval_pipeline_tests.conftest import Database
from eval_pipeline_tests.played import V1, V5


def test_without_a_name_the_questions_are_listed_and_no_database_is_needed(clean_environment: object) -> None:
    shown = command("ask")
    assert shown.code == 0
    assert "tool_errors" in shown.out
    assert "Which tools fail how often, under which team?" in shown.out
    told = command("ask", "--json").json
    assert len(told) == 10
    assert set(told[0]) == {"name", "asks", "notes"}


def test_an_answer_is_a_table_under_its_question(played: Database) -> None:
    shown = command("ask", "tool-errors")
    assert shown.code == 0
    first, *_ = shown.out.splitlines()
    assert first.strip() == "Which tools fail how often, under which team?"
    assert "runs with errors" in shown.out
    (line,) = [line for line in shown.out.splitlines() if V1.team in line and "read_attached_file" in line]
    calls, errors = line.split()[2:4]
    assert calls == errors
    assert "100.0 %" in line


def test_an_answer_as_json_has_the_names_of_the_columns(played: Database) -> None:
    told = command("ask", "role_tokens", "--batch", V5.key, "--json").json
    assert (told["question"], told["asks"]) == ("role_tokens", "How many tokens does each role use, under which team?")
    assert {row["team"] for row in told["rows"]} == {V5.team}
    assert {"planner", "executor", "critic", "selector"} >= {row["role"] for row in told["rows"]}
    assert sum(row["team_share"] for row in told["rows"]) == pytest.approx(1)


def test_a_batch_can_be_meant_under_all_its_teams(played: Database) -> None:
    teams = {row["team"] for row in command("ask", "role_tokens", "--batch", "b", "--json").json["rows"]}
    assert {V1.team, V5.team} < teams
    assert command("ask", "tool_calls", "--suite", "sample", "--rows", "3", "--json").json["rows"].__len__() == 3


def test_no_rows_are_an_answer(played: Database) -> None:
    shown = command("ask", "tool_calls", "--tool", "no\0tool\ud800")
    assert (shown.code, shown.error) == (0, None)
    assert (
        shown.out.strip()
        == "What were the tools called with, and what came of each call? None that the database knows of."
    )
    assert command("ask", "flips", "--json").json["rows"] == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("tool_error",), "there is no question 'tool_error'; there are error_texts"),
        (("flips", "--batch", "nowhere"), "--batch: there is no batch of 'nowhere'"),
        (("flips", "--batch", "b@nobody"), "--batch: there is no batch of 'b@nobody'"),
        (("flips", "--batch", "a b"), "--batch: batch id 'a b' cannot be used"),
        (("flips", "--batch", "a@b@c"), "is not of the form batch@team"),
        (("flips", "--suite", "sampel"), "--suite: there is no batch of 'sampel'"),
        (("flips", "--suite", "x'; drop table runs; --\0"), "--suite: there is no batch of"),
        (("flips", "--tool", "python_calc"), "flips is about all tools"),
    ],
)
def test_what_cannot_be_answered_is_one_line(played: Database, arguments: tuple[str, ...], said: str) -> None:
    refused = command("ask", *arguments)
    assert refused.error is not None
    assert said in refused.error


@pytest.mark.parametrize("rows", ["0", "-3", "10001", "many"])
def test_a_number_of_rows_out_of_range_is_a_usage_error(clean_environment: object, rows: str) -> None:
    assert command("ask", "flips", "--rows", rows).code == 2
