"""The everyday questions, each on a small trace whose answer is worked out by hand."""

from __future__ import annotations

import os
import re
import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import insert

from eval_pipeline.db import postgres_binaries, sqlfiles, tables
from eval_pipeline.db.questions import MOST_ROWS, About, Question, answer, question, questions
from eval_pipeline.errors import DatabaseError, IdError
from eval_pipeline_tests.conftest import Database
from eval_pipeline_tests.db.builders import NOON, Rows

DOCUMENT = Path(__file__).parents[2] / "docs" / "questions.md"

NAMES = (
    "error_texts",
    "fallbacks",
    "flips",
    "last_words",
    "longest_gaps",
    "role_tokens",
    "slowest_calls",
    "tool_calls",
    "tool_errors",
    "without_critic",
)
HOSTILE = ("'; drop table runs; --", "%", "_", ":batch_id", "\\", "null", '"', "모델", "x" * 100_000, "")


def asked(talk: Rows, name: str, **about: Any) -> list[dict[str, Any]]:
    """The answer without the ids of runs, which differ from test to test."""
    found = answer(talk.connection, question(name), About(**about)).rows
    return [{name: value for name, value in row._mapping.items() if name != "run_id"} for row in found]


def call(rows: Rows, run_id: UUID, seq: int, tool: str, call_id: str, **arguments: Any) -> None:
    columns = {"source": "executor", "tool_name": tool, "tool_call_id": call_id, "tool_args": arguments}
    rows.event(run_id, seq, "tool_call", latency_ms=1000, **columns)


def error(rows: Rows, run_id: UUID, seq: int, call_id: str, said: str, **columns: Any) -> None:
    payload = {"class": "tool", "type": "ValueError", "message": said}
    rows.event(run_id, seq, "tool_error", tool_call_id=call_id, error=payload, content=said, **columns)


def request(rows: Rows, run_id: UUID, number: int, role: str, tokens: int | None, **columns: Any) -> None:
    values: dict[str, Any] = {"kind": "turn", "latency_ms": 100, "outcome": "ok"} | columns
    used = {"prompt_tokens": tokens, "completion_tokens": tokens}
    rows.connection.execute(
        insert(tables.model_calls).values(run_id=run_id, call_no=number, role=role, **used, **values)
    )


@pytest.fixture
def talk(rows: Rows) -> Rows:
    """Batch b1 under v1 and v2: t1 is right in its first attempt and wrong in its second, t2 crashed.

    Batch b9 of another suite has one run that nobody said anything in.
    """
    for team in ("v1", "v2"):
        rows.team(team)
        rows.batch("b1", team)
        for task_id in ("t1", "t2"):
            if team == "v1":
                rows.task(task_id)
            for attempt in (1, 2):
                rows.cell(task_id, attempt, team_id=team)
    rows.batch("b9", suite="other")
    rows.cell(batch_id="b9")
    rows.completed(batch_id="b9", success=False, started_at=NOON - timedelta(days=1))
    right = rows.completed("t1", 1, terminated_by="approve", turns=2, started_at=NOON)
    wrong = rows.completed(
        "t1",
        2,
        success=False,
        terminated_by="max_messages",
        turns=9,
        tool_calls=2,
        started_at=NOON + timedelta(hours=1),
    )
    rows.crashed("t2", 1, started_at=NOON)
    other = rows.completed("t1", 1, team_id="v2", success=False, format_valid=False, turns=1, started_at=NOON)
    _say_right(rows, right)
    _say_wrong(rows, wrong)
    rows.event(other, 0, "selector_decision", source="selector", reason_code="NEEDS_PLANNING", latency_ms=50)
    request(rows, other, 0, "planner", None, latency_ms=400, outcome="error", error_class="timeout")
    return rows


def _say_right(rows: Rows, run_id: UUID) -> None:
    rows.event(run_id, 0, source="user", content="How many?")
    rows.event(run_id, 1, "selector_decision", source="selector", reason_code="PARSE_FAILED", latency_ms=50)
    rows.event(run_id, 2, "selector_decision", source="selector", reason_code="FALLBACK", latency_ms=50)
    call(rows, run_id, 3, "python_calc", "c1", expression="6 * 7")
    rows.event(run_id, 4, "tool_result", source="executor", tool_call_id="c1", content="42\nexactly", latency_ms=90_000)
    rows.event(run_id, 5, source="critic", content="APPROVE", latency_ms=2000)
    for number, (role, tokens) in enumerate((("planner", 100), ("planner", 50), ("critic", 50))):
        request(rows, run_id, number, role, tokens, latency_ms=1000 * (number + 1))


def _say_wrong(rows: Rows, run_id: UUID) -> None:
    call(rows, run_id, 0, "python_calc", "c1", expression="1 / 0")
    error(rows, run_id, 1, "c1", "division by zero at 17\nTraceback", tool_name="python_calc", latency_ms=5)
    call(rows, run_id, 2, "python_calc", "c2", expression="2 / 0")
    # an outcome does not always name its tool
    error(rows, run_id, 3, "c2", "division by zero at 4")
    call(rows, run_id, 4, "read_attached_file", "c3", path="매출.xlsx")
    rows.event(run_id, 5, source="executor", content="I  am\nstuck.")


def test_there_are_ten_questions_and_each_is_asked_in_a_sentence() -> None:
    found = questions()
    assert tuple(one.name for one in found) == NAMES
    for one in found:
        assert one.asks.endswith("?"), one.name
        assert "?" not in one.asks[:-1], one.name
        assert len(one.asks) <= 100, one.name
        assert one.takes - {"tool"} == {"batch_id", "team_id", "suite", "rows"}, one.name


@pytest.mark.parametrize("name", NAMES)
def test_an_empty_database_answers_with_no_rows(rows: Rows, name: str) -> None:
    assert asked(rows, name) == []
    assert asked(rows, name, batch_id="b1", team_id="v1", suite="sample") == []


def test_tools_that_fail_are_counted_by_team(talk: Rows) -> None:
    assert asked(talk, "tool_errors") == [
        {"team": "v1", "tool": "python_calc", "calls": 3, "errors": 2, "error_share": 2 / 3, "runs_with_errors": 1},
        {
            "team": "v1",
            "tool": "read_attached_file",
            "calls": 1,
            "errors": 0,
            "error_share": 0.0,
            "runs_with_errors": 0,
        },
    ]


def test_alike_complaints_of_a_tool_are_counted_together(talk: Rows) -> None:
    alike = {"tool": "python_calc", "type": "ValueError", "said": "division by zero at …"}
    assert asked(talk, "error_texts") == [alike | {"times": 2, "runs": 1, "teams": 1}]


def test_the_calls_of_a_tool_stand_beside_what_came_of_them(talk: Rows) -> None:
    found = asked(talk, "tool_calls", tool="python_calc")
    assert [(row["cell"], row["seq"], row["came"], row["said"], row["seconds"]) for row in found] == [
        ("t1#2", 0, "error", "division by zero at 17", 0.005),
        ("t1#2", 2, "error", "division by zero at 4", None),
        ("t1#1", 3, "result", "42", 90.0),
    ]
    assert found[2]["arguments"] == '{"expression": "6 * 7"}'
    (unanswered,) = asked(talk, "tool_calls", tool="read_attached_file")
    assert (unanswered["came"], unanswered["said"], unanswered["arguments"]) == ("none", None, '{"path": "매출.xlsx"}')
    assert len(asked(talk, "tool_calls")) == 4


def test_the_longest_gap_is_shown_with_what_was_before_and_after_it(talk: Rows) -> None:
    (longest, second, *_) = asked(talk, "longest_gaps")
    where = {"batch": "b1", "team": "v1", "cell": "t1#1"}
    assert longest == where | {
        "before": "executor tool_call",
        "after": "executor tool_result",
        "seconds": 90.0,
        "seq": 4,
    }
    assert (second["after"], second["seconds"]) == ("critic agent_message", 2.0)


def test_the_slowest_requests_come_first_failed_ones_too(talk: Rows) -> None:
    found = asked(talk, "slowest_calls")
    assert [(row["role"], row["seconds"], row["outcome"]) for row in found] == [
        ("critic", 3.0, "ok"),
        ("planner", 2.0, "ok"),
        ("planner", 1.0, "ok"),
        ("planner", 0.4, "timeout"),
    ]
    assert (found[3]["team"], found[3]["tokens_in"], found[0]["tokens_out"]) == ("v2", None, 50)


def test_completed_runs_that_no_critic_spoke_in_are_listed_the_wrong_ones_first(talk: Rows) -> None:
    found = asked(talk, "without_critic")
    assert [(row["batch"], row["team"], row["cell"], row["verdict"]) for row in found] == [
        ("b1", "v2", "t1#1", "no valid answer"),
        ("b1", "v1", "t1#2", "wrong"),
        ("b9", "v1", "t1#1", "wrong"),
    ]
    assert found[1]["ended_by"] == "max_messages"


def test_tokens_are_summed_by_team_and_role_with_their_share(talk: Rows) -> None:
    found = asked(talk, "role_tokens")
    assert [tuple(row.values()) for row in found] == [
        ("v1", "planner", 2, 150, 150, 0.75, 300.0),
        ("v1", "critic", 1, 50, 50, 0.25, 100.0),
        ("v2", "planner", 1, None, None, None, 0.0),
    ]


def test_a_task_that_is_right_once_and_wrong_once_flips(talk: Rows) -> None:
    assert asked(talk, "flips") == [
        {"batch": "b1", "team": "v1", "task": "t1", "right_in": "1", "wrong_in": "2", "attempts": 2, "right_share": 0.5}
    ]


def test_a_run_that_ran_out_of_messages_is_shown_with_its_last_words(talk: Rows) -> None:
    (found,) = asked(talk, "last_words")
    assert (found["cell"], found["last_speaker"], found["said"]) == ("t1#2", "executor", "I am stuck.")
    assert (found["turns"], found["tool_calls"]) == (9, 2)


def test_choices_that_could_not_be_followed_are_counted_by_reason(talk: Rows) -> None:
    where = {"team": "v1", "times": 1, "runs": 1, "decision_share": 0.5}
    assert asked(talk, "fallbacks") == [where | {"reason": "FALLBACK"}, where | {"reason": "PARSE_FAILED"}]


@pytest.mark.parametrize(
    ("about", "teams"),
    [
        ({}, {"v1", "v2"}),
        ({"batch_id": "b1"}, {"v1", "v2"}),
        ({"batch_id": "b1", "team_id": "v2"}, {"v2"}),
        ({"team_id": "v1"}, {"v1"}),
        ({"suite": "sample"}, {"v1", "v2"}),
        ({"suite": "other"}, {"v1"}),
        ({"suite": "other", "batch_id": "b1"}, set()),
        ({"batch_id": "b9"}, {"v1"}),
    ],
)
def test_a_question_is_narrowed_down_by_batch_team_and_suite(
    talk: Rows, about: dict[str, str], teams: set[str]
) -> None:
    assert {row["team"] for row in asked(talk, "without_critic", **about)} == teams


@pytest.mark.parametrize("name", NAMES)
def test_every_question_is_narrowed_down(talk: Rows, name: str) -> None:
    assert asked(talk, name, team_id="v1", batch_id="b1", suite="sample") != []
    assert asked(talk, name, team_id="v3") == asked(talk, name, batch_id="b2") == asked(talk, name, suite="sampl") == []


@pytest.mark.parametrize("name", NAMES)
def test_what_is_asked_for_is_only_ever_a_value(talk: Rows, name: str) -> None:
    takes = question(name).takes - {"rows"}
    for value in HOSTILE:
        for parameter in takes:
            assert asked(talk, name, **{parameter: value}) == [], (parameter, value)
    assert asked(talk, name) != []


@pytest.mark.parametrize("name", NAMES)
def test_no_more_rows_are_shown_than_asked_for_and_they_are_the_first(talk: Rows, name: str) -> None:
    assert asked(talk, name, rows=1) == asked(talk, name, rows=MOST_ROWS)[:1]


@pytest.mark.parametrize("rows_asked", [0, -1, MOST_ROWS + 1])
def test_a_number_of_rows_that_cannot_be_shown_is_refused(rows: Rows, rows_asked: int) -> None:
    with pytest.raises(IdError, match="give 1 to 10000"):
        answer(rows.connection, question("flips"), About(rows=rows_asked))


def test_a_question_about_all_tools_takes_no_tool(rows: Rows) -> None:
    with pytest.raises(IdError, match="flips is about all tools"):
        answer(rows.connection, question("flips"), About(tool="python_calc"))


@pytest.mark.parametrize("name", ["nothing", "", "../queries/report_runs", "flips.sql", "flips\n"])
def test_a_question_that_there_is_not_is_refused_with_those_that_there_are(name: str) -> None:
    with pytest.raises(IdError, match="tool_calls, tool_errors") as refused:
        question(name)
    assert "\n" not in str(refused.value)


def test_a_hyphen_is_as_good_as_an_underscore() -> None:
    assert question("tool-errors") == question("tool_errors")


def test_a_file_that_does_not_ask_is_refused(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "questions").mkdir()
    (tmp_path / "questions" / "mute.sql").write_text("-- Runs.\nselect 1\n")
    monkeypatch.setattr(sqlfiles, "sql_folder", lambda: tmp_path)
    with pytest.raises(DatabaseError, match=r"mute\.sql: does not begin with its question"):
        questions()


@pytest.mark.parametrize("one", questions(), ids=lambda one: one.name)
def test_the_notes_of_a_question_name_no_parameter_that_psql_would_fill_in(one: Question) -> None:
    assert ":" not in one.asks + one.notes.replace("::", "")


def test_psql_takes_every_question_as_the_documentation_says(played: Database) -> None:
    program = postgres_binaries.folder(postgres_binaries.newest_version()) / "psql"
    for one in questions():
        variables = {"batch_id": "'b'", "team_id": "null", "suite": "null", "tool": "null", "rows": "2"}
        settings = [f"--set={name}={value}" for name, value in variables.items() if name in one.takes]
        done = subprocess.run(
            [
                program,
                played.dsn,
                "-q",
                "--csv",
                "--set=ON_ERROR_STOP=1",
                *settings,
                "-f",
                sqlfiles.sql_folder() / "questions" / f"{one.name}.sql",
            ],
            env=os.environ | {"PGOPTIONS": "-c search_path=eval_ph1"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        with played.engine.connect() as connection:
            found = answer(connection, one, About(batch_id="b", rows=2))
        assert done.stdout.splitlines()[0] == ",".join(found.columns), one.name
        assert (len(done.stdout.splitlines()) > 1) is bool(found.rows), one.name


@pytest.mark.skipif(not DOCUMENT.is_file(), reason="not run from a checkout")
def test_the_document_has_every_question_as_its_file_asks_it() -> None:
    told = DOCUMENT.read_text(encoding="utf-8")
    listed = re.findall(r"^\| `([a-z_]+)` \| (.+) \|$", told, re.MULTILINE)
    assert listed == [(one.name, one.asks) for one in questions()]
