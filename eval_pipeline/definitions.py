"""The one place that puts the Dagster side together. ``workspace.yaml`` names this module."""

from __future__ import annotations

import dagster as dg

from eval_pipeline.assets.checks import suite_checks
from eval_pipeline.assets.common import without_beta_warnings
from eval_pipeline.assets.comparisons import experiments_asset
from eval_pipeline.assets.family import suite_assets
from eval_pipeline.assets.lease import LEASE, RunLease
from eval_pipeline.assets.listener import LISTENER, LaunchListener, NobodyListens
from eval_pipeline.assets.teams import teams
from eval_pipeline.automation.comparisons import nightly_comparison_sensor
from eval_pipeline.automation.jobs import comparisons_job_name, runs_job_name, suite_jobs, summaries_job_name
from eval_pipeline.automation.nightly import nightly_schedule
from eval_pipeline.automation.reaper import reap_dead_runs
from eval_pipeline.automation.sensors import registration_sensor, summaries_sensor
from eval_pipeline.automation.upkeep import make_trace_months, resume_sensor, retention_sensor
from eval_pipeline.execution.collector import rarely_collecting
from eval_pipeline.settings import Settings, load_settings
from eval_pipeline.suites import load_suites


def backfill_policy(settings: Settings) -> dg.BackfillPolicy:
    """One Dagster run per batch, or one per ``EVAL_CELLS_PER_DAGSTER_RUN`` cells where many workers share a batch."""
    if settings.cells_per_dagster_run is None:
        return dg.BackfillPolicy.single_run()
    return dg.BackfillPolicy.multi_run(settings.cells_per_dagster_run)


def build_defs(
    settings: Settings, listener: LaunchListener | None = None, executor: dg.ExecutorDefinition = dg.in_process_executor
) -> dg.Definitions:
    """Everything that Dagster shows, for the suites that ``settings`` name. Tests and the command line call it too.

    One process per Dagster run is enough, unless somebody wants otherwise with ``executor``: the work waits for the
    model, and a second process costs seconds.
    """
    suites = load_suites(settings)
    assets: list[dg.AssetsDefinition] = [teams, experiments_asset]
    jobs = []
    checks: list[dg.AssetChecksDefinition] = []
    with without_beta_warnings():
        for suite in suites.values():
            assets += suite_assets(suite, backfill_policy(settings))
            jobs += suite_jobs(suite)
            checks += suite_checks(suite)
    running = [job for job in jobs if job.name in {runs_job_name(name) for name in suites}]
    comparing = [job for job in jobs if job.name in {comparisons_job_name(name) for name in suites}]
    refreshing = [job for job in jobs if job.name in {summaries_job_name(name) for name in suites}]
    return dg.Definitions(
        assets=assets,
        asset_checks=checks,
        jobs=jobs,
        schedules=[nightly_schedule(suite, suite.nightly) for suite in suites.values() if suite.nightly],
        sensors=[
            registration_sensor(suites),
            summaries_sensor(suites, refreshing),
            reap_dead_runs,
            resume_sensor(suites, running),
            retention_sensor(suites),
            make_trace_months,
            nightly_comparison_sensor(suites, comparing),
        ],
        resources={LISTENER: listener or NobodyListens(), LEASE: RunLease()},
        executor=executor,
    )


# what was imported and what is made here stays: looking through it again and again takes a fifth of the time
with rarely_collecting():
    defs = build_defs(load_settings())
