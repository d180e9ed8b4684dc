"""A batch goes on under the conditions it began with, or it is refused with every difference by name."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from sqlalchemy import func, select

from eval_pipeline.db import tables
from eval_pipeline.errors import ContractMismatchError, IdError, SettingsError, SuiteError
from eval_pipeline.execution.contract import differences
from eval_pipeline.ids import TaskAttempt
from eval_pipeline.suites import data_dir, load_suites
from eval_pipeline_tests.conftest import Database
from eval_pipeline_tests.execution.launching import TILES, opened, run


@pytest.mark.parametrize(
    ("variable", "value", "field"),
    [
        ("EVAL_LLM_TEMPERATURE", "0.7", "llm_temperature"),
        ("EVAL_LLM_SEED", "7", "llm_seed"),
        ("EVAL_LLM_MAX_TOKENS", "100", "llm_max_tokens"),
        ("EVAL_LLM_FAMILY", "r1", "llm_family"),
        ("EVAL_LLM_INCLUDE_NAME", "false", "llm_include_name"),
        ("EVAL_MAX_MESSAGES", "12", "max_messages"),
        ("EVAL_RUN_TIMEOUT_S", "60", "run_timeout_s"),
        ("EVAL_MAX_TOKENS_PER_RUN", "5000", "max_tokens_per_run"),
        ("EVAL_TOOL_TIMEOUT_S", "5", "tool_timeout_s"),
    ],
)
def test_a_result_affecting_setting_that_changed_is_refused_by_name(
    database: Database, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, field: str
) -> None:
    opened(database, "first@v5-multitool")
    monkeypatch.setenv(variable, value)
    with pytest.raises(ContractMismatchError, match=field) as refusal:
        opened(database, "first@v5-multitool")
    assert "\n" not in str(refusal.value)
    assert value.rstrip("0").rstrip(".") in str(refusal.value) or value.title() in str(refusal.value)
    opened(database, "second@v5-multitool")


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("EVAL_CONCURRENCY", "1"),
        ("EVAL_LLM_RETRIES", "9"),
        ("EVAL_LLM_TIMEOUT_S", "33"),
        ("EVAL_LLM_BACKOFF_S", "2"),
        ("EVAL_LLM_STREAM", "true"),
        ("EVAL_LOG_LEVEL", "ERROR"),
        ("EVAL_CELLS_PER_DAGSTER_RUN", "10"),
    ],
)
def test_a_setting_of_speed_may_change_at_any_time(
    database: Database, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    opened(database, "first@v5-multitool")
    monkeypatch.setenv(variable, value)
    assert not opened(database, "first@v5-multitool").frozen.first


def test_another_model_or_endpoint_is_refused_and_no_key_is_in_the_contract(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVAL_LLM_PROVIDER", "openai")
    monkeypatch.setenv("EVAL_LLM_MODEL", "glm-4.6")
    monkeypatch.setenv("EVAL_LLM_BASE_URL", "http://localhost:8000/v1")
    monkeypatch.setenv("EVAL_LLM_API_KEY", "canary-key-4711")
    launch = opened(database, "first@v5-multitool")
    assert "canary" not in json.dumps(launch.frozen.contract)
    assert launch.frozen.contract["endpoint"] == "localhost:8000"

    monkeypatch.setenv("EVAL_LLM_MODEL", "glm-5")
    monkeypatch.setenv("EVAL_LLM_BASE_URL", "http://elsewhere:9000/v1")
    with pytest.raises(ContractMismatchError) as refusal:
        opened(database, "first@v5-multitool")
    assert "model: then glm-4.6, now glm-5" in str(refusal.value)
    assert "endpoint: then localhost:8000, now elsewhere:9000" in str(refusal.value)


def test_an_endpoint_that_is_not_configured_is_one_line_before_anything(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVAL_LLM_PROVIDER", "openai")
    with pytest.raises(SettingsError, match="EVAL_LLM_MODEL"):
        opened(database, "first@v5-multitool")
    with database.engine.connect() as connection:
        assert connection.execute(select(func.count()).select_from(tables.batches)).scalar_one() == 0


@pytest.fixture
def own_suite(database: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A copy of the sample data that a test may edit, declared as suite ``own``; returns its folder."""
    settings = database.settings
    folder = tmp_path / "own"
    shutil.copytree(data_dir(load_suites(settings)["sample"], settings), folder)
    suites = tmp_path / "suites.yaml"
    suites.write_text(f"suites:\n  own:\n    benchmark: gaia\n    title: Own.\n    data: {folder}\n", encoding="utf-8")
    monkeypatch.setenv("EVAL_SUITES_FILE", str(suites))
    return folder


def _edit_gold(folder: Path) -> None:
    path = folder / "metadata.jsonl"
    path.write_text(path.read_text(encoding="utf-8").replace('"89706.00"', '"89706.01"'), encoding="utf-8")


def _edit_question(folder: Path) -> None:
    path = folder / "metadata.jsonl"
    path.write_text(path.read_text(encoding="utf-8").replace("café", "cafe"), encoding="utf-8")


def _edit_attachment(folder: Path) -> None:
    path = folder / "library_loans.csv"
    path.write_bytes(path.read_bytes() + b"\n")


def _drop_a_task(folder: Path) -> None:
    path = folder / "metadata.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[:-1]), encoding="utf-8")


@pytest.mark.parametrize("edit", [_edit_gold, _edit_question, _edit_attachment, _drop_a_task])
def test_an_edited_task_is_refused_for_a_batch_that_began_before(database: Database, own_suite: Path, edit) -> None:  # type: ignore[no-untyped-def]
    before = opened(database, "first@v5-multitool", suite="own")
    edit(own_suite)
    with pytest.raises(ContractMismatchError, match=r"suite\.hash"):
        opened(database, "first@v5-multitool", suite="own")
    after = opened(database, "second@v5-multitool", suite="own")
    assert after.loaded.content_hash != before.loaded.content_hash


async def test_old_runs_keep_the_task_that_they_answered(database: Database, own_suite: Path) -> None:
    await run(opened(database, "first@v5-multitool", suite="own"), [TaskAttempt("sample-cafe-food-total", 1)])
    _edit_gold(own_suite)
    await run(opened(database, "second@v5-multitool", suite="own"), [TaskAttempt("sample-cafe-food-total", 1)])
    with database.engine.connect() as connection:
        rows = connection.execute(
            select(tables.runs.c.batch_id, tables.runs.c.success, tables.tasks.c.gold)
            .join(
                tables.tasks,
                (tables.tasks.c.task_id == tables.runs.c.task_id)
                & (tables.tasks.c.content_hash == tables.runs.c.task_hash),
            )
            .order_by(tables.runs.c.batch_id)
        ).all()
    assert [tuple(row) for row in rows] == [("first", True, "89706.00"), ("second", False, "89706.01")]


def test_a_text_team_is_refused_on_a_suite_of_line_answers(database: Database) -> None:
    with pytest.raises(SuiteError, match="t1-text"):
        opened(database, "first@t1-text")


def test_an_unknown_team_is_one_line_that_names_those_there_are(database: Database) -> None:
    with pytest.raises(IdError, match="v5-multitool") as refusal:
        opened(database, "first@v7-imagined")
    assert "\n" not in str(refusal.value)


async def test_a_cell_that_the_suite_does_not_have_is_refused_before_any_run(database: Database) -> None:
    launch = opened(database, "first@v5-multitool")
    for cell, problem in ((TaskAttempt("nowhere", 1), "no task"), (TaskAttempt(TILES.task_id, 2), "attempts")):
        with pytest.raises(SuiteError, match=problem):
            await run(launch, [TILES, cell])
    with database.engine.connect() as connection:
        assert connection.execute(select(func.count()).select_from(tables.runs)).scalar_one() == 0


def test_a_field_that_is_absent_on_either_side_is_a_difference() -> None:
    assert differences({"a": 1, "b": 2}, {"b": 2, "c": None}) == [
        "a: then 1, now (absent)",
        "c: then (absent), now None",
    ]
    assert differences({"a": [1]}, {"a": [1]}) == []


def test_the_contract_records_the_circumstances_without_comparing_them(database: Database) -> None:
    opened(database, "first@v5-multitool")
    with database.engine.connect() as connection:
        batch = connection.execute(select(tables.batches)).one()
    assert batch.scripted and batch.model == "scripted"
    assert {"git_commit", "packages", "python", "host", "system"} <= set(batch.info)
    assert batch.info["settings"]["concurrency"] == 4
    assert batch.info["packages"]["autogen-core"] == "0.7.5"
    assert "host" not in batch.contract
