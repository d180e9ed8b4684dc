"""A key and a password are found nowhere afterwards, whoever says them: the endpoint, a tool, the model, ourselves."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import pytest
from pydantic import SecretStr
from sqlalchemy import Engine, Select, column, select, table
from sqlalchemy import text as sql

from eval_pipeline.db.engine import engine
from eval_pipeline.execution import run_one
from eval_pipeline.settings import secrets
from eval_pipeline.teams.inputs import INPUTS
from eval_pipeline.tools.context import ToolContext
from eval_pipeline.tools.registry import TOOLS, BoundTool
from eval_pipeline_tests.agents.scenes import ANSWER, APPROVAL, GOOD, LONG, Played, Scene, choose, play
from eval_pipeline_tests.conftest import Database
from eval_pipeline_tests.stub_openai import Call, Reply, error, html, text, tool_calls

KEY = "yellowbird+key/4711==sings"
PASSWORD = "yellowbird pass\"word'0815&sings"
CANARIES = ("yellowbird", quote(KEY, safe=""), json.dumps(PASSWORD)[1:-1])
BOTH = f"{KEY} and {PASSWORD}"


@pytest.fixture
def guarded(database: Database) -> Iterator[Database]:
    """The database under settings whose DSN has the password; the key is in the launch's settings."""
    password = quote(PASSWORD, safe="")
    dsn = SecretStr(database.dsn.replace("postgres@", f"postgres:{password}@", 1))
    settings = database.settings.model_copy(update={"pg_dsn": dsn})
    assert PASSWORD in secrets(settings)
    pool = engine(settings)
    yield Database(dsn.get_secret_value(), settings, pool)
    pool.dispose()


async def test_a_key_and_a_password_are_found_nowhere(
    guarded: Database,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    recwarn: pytest.WarningsRecorder,
) -> None:
    monkeypatch.setitem(TOOLS, "python_calc", replace(TOOLS["python_calc"], bind=_leaky))
    caplog.set_level(logging.DEBUG)
    scenes = _scenes()

    for stream in (False, True):
        played = await play(
            guarded, scenes, key=f"leaks-{stream}@v1-baseline", llm_api_key=SecretStr(KEY), llm_stream=stream
        )
        _runs_went_as_planned(played, scenes)
        _found_in_none([repr(result) for result in played.results.values()])
        _found_in_none(played.complaints)

    rows = _all_texts(guarded.engine)
    assert any("***" in row for row in rows)
    _found_in_none(rows)
    _found_in_none([record.getMessage() + str(record.exc_text or "") for record in caplog.records])
    _found_in_none(caplog.text.splitlines())
    _found_in_none([*capfd.readouterr(), *(str(warning.message) for warning in recwarn)])


async def test_an_error_of_ours_that_quotes_a_secret_is_masked_in_log_and_row(
    guarded: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(question: str, attachment: object) -> str:
        raise LookupError(f"cannot log in with {BOTH}")

    monkeypatch.setattr(run_one, "INPUTS", dict.fromkeys(INPUTS, broken))
    caplog.set_level(logging.DEBUG)
    played = await play(guarded, [Scene("ours")], llm_api_key=SecretStr(KEY))

    run = played.runs["ours"]
    assert (run.status, run.error_class) == ("crashed", "unknown")
    assert run.error_message.startswith("LookupError: cannot log in with ***")
    assert "broken" in caplog.text, "the traceback is what an error of ours is mended by"
    _found_in_none([*_all_texts(guarded.engine), *caplog.text.splitlines(), repr(played.results["ours"])])


def _leaky(context: ToolContext) -> BoundTool:
    async def python_calc(expression: str) -> str:
        """Says the secrets, or fails with them."""
        if expression == "fail":
            raise RuntimeError(f"no access with {BOTH}")
        return f"{BOTH}, api_key={KEY!r}, DSN postgresql://me:{quote(PASSWORD, safe='')}@host/db"

    return python_calc


def _scenes() -> list[Scene]:
    said = ANSWER.text or ""
    return [
        Scene("echo-401", {"planner": [error(401, f"Incorrect API key provided: {KEY}")]}),
        Scene("echo-500", {"planner": [error(500, f"Authorization: Bearer {KEY}; {PASSWORD}")]}),
        Scene("echo-page", {"planner": [Reply(status=502, body=f"<html>\n{BOTH}</html>", content_type="text/html")]}),
        Scene("echo-200", {"planner": [replace(html(), body=f"<html>\n{BOTH}</html>")]}),
        Scene("echo-error", {"planner": [Reply(body=json.dumps({"error": {"message": BOTH, "code": KEY}}))]}),
        Scene(
            "echo-event",
            {"planner": [text("x", break_after=1, break_how="error_event", error_event={"message": BOTH})] * 2},
        ),
        Scene("tool", {"executor": [tool_calls([("python_calc", '{"expression": "say"}')])]}, LONG),
        Scene("tool-fails", {"executor": [tool_calls([("python_calc", '{"expression": "fail"}')])]}, LONG),
        Scene("answer", {"planner": [text(f"{BOTH}\nFINAL ANSWER: {KEY}")]}),
        Scene("names", {"planner": [text(said, model=f"model {KEY}", finish_reason=f"stop {KEY}")]}),
        Scene("reasons", {"critic": [text("Rejected", reasoning=BOTH), APPROVAL]}, ("planner", "critic") * 2),
        Scene("selects", {"selector": [choose(KEY), choose("planner", KEY), choose("critic", KEY)]}),
        Scene(
            "calls",
            {
                "executor": [
                    Reply(calls=[Call(KEY, "{}", KEY), Call("python_calc", json.dumps({KEY: PASSWORD}), "two")])
                ]
            },
            LONG,
        ),
        Scene("argues", {"executor": [tool_calls([("python_calc", f"not JSON {BOTH}")]), GOOD]}, LONG),
    ]


def _runs_went_as_planned(played: Played, scenes: list[Scene]) -> None:
    """Each secret really was said: a run that died before would prove nothing."""
    assert set(played.runs) == {scene.task_id for scene in scenes}
    for name, run in played.runs.items():
        if name.startswith("echo-") and run.status == "crashed":
            assert "***" in run.error_message or name == "echo-page"
        else:
            assert run.status == "completed"
            rows = (*played.events[name], *played.calls[name])
            assert "***" in repr(rows) or name in ("reasons", "echo-event")


def _all_texts(pool: Engine) -> list[str]:
    """Every value of every column that can hold a text, in every table of ours."""
    columns = sql(
        "select c.table_name, c.column_name from information_schema.columns c join information_schema.tables t"
        " using (table_schema, table_name) where t.table_type = 'BASE TABLE' and c.table_schema = current_schema()"
        " and c.data_type in ('text', 'jsonb', 'json', 'character varying', 'bytea')"
    )
    with pool.connect() as connection:
        names = connection.execute(columns).all()
        queries: list[Select[Any]] = [select(column(name)).select_from(table(of_table)) for of_table, name in names]
        values: list[object] = [value for query in queries for value in connection.execute(query).scalars()]
    return [str(value) for value in values if value is not None]


def _found_in_none(texts: list[str]) -> None:
    for one in texts:
        for canary in CANARIES:
            assert canary not in one, f"{canary!r} is in {one[:500]!r}"
