"""The report of a batch in Dagster: it follows the batch, shows its figures, and its failure takes nothing with it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import dagster as dg
import pytest

from eval_pipeline.assets.partitions import Family
from eval_pipeline.assets.ranges import range_tags
from eval_pipeline.automation.jobs import summaries_job_name
from eval_pipeline.commands.batches import BatchRequest, run_batches
from eval_pipeline.definitions import build_defs
from eval_pipeline.launcher import Selection
from eval_pipeline.reporting.leak_guard import LeakGuard
from eval_pipeline.settings import load_settings
from eval_pipeline_tests.assets.grids import V4, Grid, failure
from eval_pipeline_tests.conftest import Database

V3 = "first@v3-prompt-fix"
GOLD_TASK = "sample-launch-venue-notes"
"""Its gold answer is long enough to be protected: Lantern Pier."""


def pages(home: Path) -> list[str]:
    folder = home / ".eval_pipeline" / "reports"
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


def refreshed(grid: Grid, batch_teams: Sequence[str]) -> dg.ExecuteInProcessResult:
    """The job that a sensor starts when a batch has newer runs."""
    job = grid.defs.resolve_job_def(summaries_job_name("sample"))
    quiet = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
    tags = range_tags(batch_teams[0], batch_teams[-1])
    return job.execute_in_process(instance=grid.instance, tags=tags, run_config=quiet, raise_on_error=False)


def protecting(home: Path, grid: Grid) -> None:
    """Let the suite ask for its gold answers to be kept out."""
    text = "suites: {sample: {benchmark: gaia, title: Sample, data: package, protect: [golds]}}"
    (home / "suites.yaml").write_text(text, encoding="utf-8")
    grid.defs = build_defs(load_settings())


def test_it_stands_behind_the_summaries_and_what_was_seen_in_the_traces(clean_environment: Path) -> None:
    graph = build_defs(load_settings()).resolve_asset_graph()
    parents = {key.path[-1] for key in graph.get(Family("sample").key("report")).parent_keys}
    assert parents == {"mv_batch_summary", "mv_passk", "mv_tool_summary", "failures", "contamination"}


def test_the_refresh_of_a_batch_makes_its_report_with_figures_to_plot(
    instance: dg.DagsterInstance, database: Database, clean_environment: Path
) -> None:
    grid = Grid(instance, database)
    grid.launch_tasks(3)
    assert refreshed(grid, [V4]).success
    assert pages(clean_environment) == [f"{V4}.html"]
    shown = grid.metadata("report", V4)
    path = clean_environment / ".eval_pipeline" / "reports" / f"{V4}.html"
    assert shown["page"] == str(path)
    assert shown["size_bytes"] == path.stat().st_size
    assert (shown["planned"], shown["completed"], shown["crashed"]) == (3, 3, 0)
    assert isinstance(shown["pass_at_1_completed"], float)
    assert shown["pass_at_1_low"] <= shown["pass_at_1_completed"] <= shown["pass_at_1_high"]  # type: ignore[operator]
    assert "**SCRIPTED MODEL" in str(shown["summary"])
    # what the rules saw is in it, since it is made after them
    assert "No rule has looked at these traces yet" not in path.read_text()


def test_a_leak_fails_the_report_alone_and_in_one_line(
    instance: dg.DagsterInstance, database: Database, clean_environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grid = Grid(instance, database, batch_teams=("first@v5-multitool",))
    batch_team = "first@v5-multitool"
    cell = f"{batch_team}|{GOLD_TASK}#1"
    grid.launch(cell, cell)
    before = grid.counts()
    protecting(clean_environment, grid)
    monkeypatch.setattr(LeakGuard, "replace", lambda self, value: value)
    result = refreshed(grid, [batch_team])
    assert failure(result) == (
        f"report {batch_team}.html is not published, since it still holds protected strings (gold answer: 1); "
        "every result is kept, see eval-pipeline status and trace"
    )
    assert grid.counts() == before
    assert pages(clean_environment) == []
    # the summaries and checks of the same Dagster run are there
    assert grid.materializations("mv_batch_summary") == {batch_team: 1}
    assert grid.materializations("report") == {}
    monkeypatch.undo()
    monkeypatch.setenv("EVAL_PG_DSN", database.dsn)
    monkeypatch.setenv("DAGSTER_HOME", str(clean_environment))
    assert refreshed(grid, [batch_team]).success
    assert "Lantern Pier" not in (clean_environment / ".eval_pipeline" / "reports" / f"{batch_team}.html").read_text()


def test_one_report_that_cannot_be_made_leaves_the_others_of_its_run(
    instance: dg.DagsterInstance, database: Database, clean_environment: Path
) -> None:
    grid = Grid(instance, database, batch_teams=(V3, V4))
    grid.launch_tasks(1, V4)
    # V3 was registered and never ran
    result = refreshed(grid, [V3, V4])
    assert "there is no batch 'first@v3-prompt-fix'" in failure(result)
    assert pages(clean_environment) == [f"{V4}.html"]


def test_a_command_that_ran_a_batch_says_what_it_ran_even_if_the_report_is_refused(
    instance: dg.DagsterInstance,
    database: Database,
    clean_environment: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (clean_environment / "suites.yaml").write_text(
        "suites: {sample: {benchmark: gaia, title: Sample, data: package, protect: [golds]}}", encoding="utf-8"
    )
    monkeypatch.setattr(LeakGuard, "replace", lambda self, value: value)
    selection = Selection(task_ids=(GOLD_TASK,))
    request = BatchRequest("second", ("v5-multitool",), "sample", None, selection, retry_crashed=False)
    assert run_batches(request, as_json=False) == 0
    out, err = capsys.readouterr()
    assert "planned=1 started=1 completed=1 crashed=0" in out
    assert "what follows the runs is not complete: report second@v5-multitool.html is not published" in err
