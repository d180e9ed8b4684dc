"""Makes the family of assets of one suite. What each asset does is in its own module."""

from __future__ import annotations

import dagster as dg

from eval_pipeline.assets.accounting import accounting_asset
from eval_pipeline.assets.comparisons import comparisons_asset
from eval_pipeline.assets.contamination import contamination_asset
from eval_pipeline.assets.dataset import dataset_asset
from eval_pipeline.assets.failures import failures_asset
from eval_pipeline.assets.freezing import frozen_assets
from eval_pipeline.assets.partitions import Family
from eval_pipeline.assets.reports import report_asset
from eval_pipeline.assets.runs import runs_assets
from eval_pipeline.assets.scores import scores_asset
from eval_pipeline.assets.summaries import summary_assets
from eval_pipeline.suites import Suite


def suite_assets(suite: Suite, backfill_policy: dg.BackfillPolicy) -> list[dg.AssetsDefinition]:
    """Every asset of ``suite``, upstream first."""
    family = Family(suite.name)
    return [
        dataset_asset(suite, family),
        *frozen_assets(suite, family),
        runs_assets(suite, family, backfill_policy),
        *summary_assets(suite, family),
        failures_asset(suite, family),
        contamination_asset(suite, family),
        accounting_asset(suite, family),
        report_asset(suite, family),
        scores_asset(suite, family),
        comparisons_asset(suite, family),
    ]
