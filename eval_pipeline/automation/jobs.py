"""The named jobs of a suite, for ``dagster job execute`` in CI and for the sensors."""

from __future__ import annotations

import dagster as dg

# what define_asset_job returns has no public name
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition

from eval_pipeline.assets.partitions import Family
from eval_pipeline.db.views import SUMMARY_VIEWS
from eval_pipeline.suites import Suite

READ_FROM_TRACES = ("failures", "contamination", "accounting")
"""The assets of a ``batch@team`` that are renewed with its summaries."""


def runs_job_name(suite: str) -> str:
    return f"{suite}_runs"


def summaries_job_name(suite: str) -> str:
    return f"{suite}_summaries"


def comparisons_job_name(suite: str) -> str:
    return f"{suite}_comparisons"


def suite_jobs(suite: Suite) -> list[UnresolvedAssetJobDefinition]:
    """``<suite>_runs`` for a range of cells, ``<suite>_summaries`` for the views of a ``batch@team``."""
    family = Family(suite.name)
    runs = dg.AssetSelection.assets(family.key("runs"), family.key("events")).without_checks()
    views = dg.AssetSelection.assets(*(family.key(view) for view in SUMMARY_VIEWS))
    read_from_traces = dg.AssetSelection.assets(*(family.key(name) for name in READ_FROM_TRACES))
    report = dg.AssetSelection.assets(family.key("report"))
    summaries = views | read_from_traces | report | dg.AssetSelection.checks_for_assets(family.key("runs"))
    return [
        dg.define_asset_job(
            runs_job_name(suite.name),
            selection=runs,
            description=f"Cells of suite {suite.name}: give a partition, or the two range tags.",
        ),
        dg.define_asset_job(
            summaries_job_name(suite.name),
            selection=summaries,
            description=f"Summaries, checks, what traces tell, and the report of one batch@team of suite {suite.name}.",
        ),
        dg.define_asset_job(
            comparisons_job_name(suite.name),
            selection=dg.AssetSelection.assets(family.key("comparisons")),
            description=f"One comparison of two conditions of suite {suite.name}.",
        ),
    ]
