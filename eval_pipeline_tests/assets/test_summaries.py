"""The summaries of a batch as the pages show them: the figures are the database's."""

from __future__ import annotations

import dagster as dg
import pytest

from eval_pipeline.db.totals import batch_totals
from eval_pipeline_tests.assets.grids import V4, Grid, block_staging
from eval_pipeline_tests.conftest import Database

V3 = "first@v3-prompt-fix"


def test_a_batch_shows_its_figures_over_completed_and_over_planned_runs(
    instance: dg.DagsterInstance, database: Database
) -> None:
    grid = Grid(instance, database)
    block_staging("sample-cafe-food-total")
    grid.launch_tasks(19)
    assert grid.materialize("mv_batch_summary", V4, V4).success
    shown = grid.metadata("mv_batch_summary", V4)
    with database.engine.connect() as connection:
        (total,) = batch_totals(connection, "first")
    assert (shown["planned"], shown["completed"], shown["crashed"]) == (19, 18, 1)
    assert total.pass_at_1_completed is not None
    assert shown["pass_at_1_completed"] == pytest.approx(total.pass_at_1_completed, abs=5e-5)
    assert shown["pass_at_1_planned"] == pytest.approx(total.pass_at_1_planned, abs=5e-5)
    table = str(shown["figures"]).splitlines()
    assert "| pass_at_1_completed |" in table[0]
    # one row per level
    assert len(table) == 2 + 3


def test_every_view_shows_the_rows_of_its_own_batch_only(instance: dg.DagsterInstance, database: Database) -> None:
    grid = Grid(instance, database, batch_teams=(V3, V4))
    grid.launch(f"{V3}|{grid.task_keys[0]}", f"{V4}|{grid.task_keys[0]}")
    for name in ("mv_batch_summary", "mv_passk", "mv_tool_summary"):
        assert grid.materialize(name, V3, V4).success
        assert grid.materializations(name) == {V3: 1, V4: 1}
        for batch_team in (V3, V4):
            other = V4 if batch_team == V3 else V3
            figures = str(grid.metadata(name, batch_team)["figures"])
            assert f"| {batch_team.partition('@')[2]} |" in figures
            assert f"| {other.partition('@')[2]} |" not in figures


def test_a_batch_that_has_not_run_yet_has_no_rows_and_no_error(
    instance: dg.DagsterInstance, database: Database
) -> None:
    grid = Grid(instance, database)
    assert grid.materialize("mv_batch_summary", V4, V4).success
    shown = grid.metadata("mv_batch_summary", V4)
    assert shown["figures"] == "no rows yet"
    assert "pass_at_1_planned" not in shown
