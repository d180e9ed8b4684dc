"""Failures, contamination and accounting as the pages show them: renewed with the summaries, per ``batch@team``."""

from __future__ import annotations

from pathlib import Path

import dagster as dg

from eval_pipeline.assets.partitions import Family
from eval_pipeline.assets.ranges import range_tags
from eval_pipeline.automation.jobs import READ_FROM_TRACES, summaries_job_name
from eval_pipeline.definitions import build_defs
from eval_pipeline.ids import BatchTeam
from eval_pipeline.launcher import refresh_summaries
from eval_pipeline.settings import load_settings
from eval_pipeline.suites import load_suites
from eval_pipeline_tests.assets.grids import V4, Grid
from eval_pipeline_tests.conftest import Database

V3 = "first@v3-prompt-fix"
NEVER_RUN = "first@v5-multitool"
CELL = "sample-first-letters-word#1"


def test_they_are_renewed_with_the_summaries_and_show_each_batchs_own_figures(
    instance: dg.DagsterInstance, database: Database
) -> None:
    grid = Grid(instance, database, batch_teams=(V3, V4, NEVER_RUN))
    grid.launch(f"{V3}|{CELL}", f"{V4}|{CELL}")
    suite = load_suites(load_settings())["sample"]
    refresh_summaries(instance, suite, [BatchTeam.parse(V3), BatchTeam.parse(V4)])
    every = grid.defs.resolve_implicit_global_asset_job_def()
    alone = every.get_subset(asset_selection={grid.family.key(name) for name in READ_FROM_TRACES})
    assert alone.execute_in_process(instance=instance, tags=range_tags(NEVER_RUN, NEVER_RUN)).success
    for name in READ_FROM_TRACES:
        assert grid.materializations(name) == {V3: 1, V4: 1, NEVER_RUN: 1}

    failures = grid.metadata("failures", V3)
    assert failures["runs_without_success"] == 1
    assert "| disobey_task_specification | 1 |" in str(failures["filed_under"])
    assert [grid.metadata("failures", key)["runs_without_success"] for key in (V4, NEVER_RUN)] == [0, 0]

    for key in (V3, V4, NEVER_RUN):
        contamination = grid.metadata("contamination", key)
        assert (contamination["runs_decided"], contamination["rules"]) == (0, "contamination-1")

    shown = grid.metadata("accounting", V3)
    assert (shown["model_calls"], shown["failed_calls"]) == (4, 0)
    assert 0 < float(str(shown["selector_share_of_tokens"])) < 1
    assert "| planner | 1 |" in str(shown["roles"])
    assert "| user | planner |" in str(shown["handovers"])
    assert "| completed | approve | critic | 1 | 0 |" in str(shown["endings"])
    nothing = grid.metadata("accounting", NEVER_RUN)
    assert nothing["model_calls"] == 0
    assert "selector_share_of_tokens" not in nothing


def test_the_summaries_job_renews_them(clean_environment: Path) -> None:
    job = build_defs(load_settings()).resolve_job_def(summaries_job_name("sample"))
    wanted = {Family("sample").key(name) for name in READ_FROM_TRACES}
    assert wanted <= job.asset_layer.executable_asset_keys
