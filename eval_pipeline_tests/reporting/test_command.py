"""``eval-pipeline report``: where the page is, what it is compared with, what is kept out of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from eval_pipeline.cli import app
from eval_pipeline.comparison.compare import ComparisonError
from eval_pipeline.errors import IdError
from eval_pipeline.ids import BatchTeam
from eval_pipeline_tests.conftest import Database
from eval_pipeline_tests.reporting.batches import BASE, CHANGED, Batches
from eval_pipeline_tests.reporting.pages import Page

OTHER = BatchTeam("b2", "v1")


@pytest.fixture(autouse=True)
def batches(database: Database) -> None:
    """A batch and its baseline, and a second one of the baseline's team over other tasks."""
    with database.engine.begin() as connection:
        rows = Batches(connection)
        rows.teams()
        for number in range(1, 4):
            rows.task(f"t{number}", gold="Lantern Pier")
        for batch_team in (BASE, CHANGED):
            rows.under(batch_team)
            for number in range(1, 4):
                right = batch_team == CHANGED or number == 1
                run_id = rows.ended(batch_team, f"t{number}", success=right, final_answer="Lantern Pier")
                rows.event(run_id, 0, "tool_call", source="executor", tool_name="a_tool", tool_call_id="c")
        rows.under(OTHER, suite_hash="z" * 64, contract={"suite.hash": "z" * 64})
        rows.ended(OTHER, "t1")


def asked(*words: str) -> Result:
    return CliRunner().invoke(app, ["report", "--batch", CHANGED.key, *words])


def test_it_says_where_the_page_is_and_how_the_batch_compares(clean_environment: Path) -> None:
    done = asked()
    assert done.exit_code == 0
    path = clean_environment / ".eval_pipeline" / "reports" / "b1@v2.html"
    page = Page(path.read_bytes())
    first, *rest = done.stdout.splitlines()
    assert first == str(path)
    assert "b1@v2" in " ".join(rest)
    assert "b1@v1" in " ".join(rest)
    # the summaries are renewed first: without that, no tool would be there
    assert "a_tool" in page.text


def test_it_takes_a_folder_and_a_baseline_and_answers_in_json(tmp_path: Path) -> None:
    done = asked("--output", str(tmp_path / "out"), "--against", BASE.key, "--json")
    told = json.loads(done.stdout)
    assert told["path"] == str(tmp_path / "out" / "b1@v2.html")
    assert told["size_bytes"] == Path(told["path"]).stat().st_size
    assert (told["batch"], told["baseline"], told["replaced"]) == ("b1@v2", "b1@v1", {})


def test_gold_answers_are_kept_out_on_request_and_that_is_said(tmp_path: Path) -> None:
    done = asked("--output", str(tmp_path), "--protect-golds")
    assert "Lantern Pier" not in (tmp_path / "b1@v2.html").read_text()
    assert "protected strings replaced, gold answer: 3" in done.stderr
    assert "replaced" not in done.stdout


@pytest.mark.parametrize(
    ("words", "error", "said"),
    [
        (["--against", "b2@v1"], ComparisonError, "ran over different tasks"),
        (["--against", "nope@v1"], IdError, "there is no batch 'nope@v1'"),
        (["--against", "nope"], IdError, "--against: 'nope' is not of the form batch@team"),
    ],
)
def test_a_mistake_is_one_line_and_writes_nothing(
    tmp_path: Path, words: list[str], error: type[Exception], said: str
) -> None:
    done = asked("--output", str(tmp_path), *words)
    assert isinstance(done.exception, error)
    assert said in str(done.exception)
    assert not list(tmp_path.glob("*.html"))
