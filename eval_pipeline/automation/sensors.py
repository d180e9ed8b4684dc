"""Two sensors: one registers the keys of suites that can be loaded, one keeps the summaries up to date.

The summaries follow the database, not Dagster's events: a backfill skips what is downstream of a failed cell, and a
run-status sensor that requests runs handles one run a tick.
"""

# no postponed annotations here: Dagster reads the type of a step's context at import
from collections.abc import Mapping
from datetime import UTC, datetime

import dagster as dg
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition

from eval_pipeline.assets.common import database
from eval_pipeline.assets.dataset import register_cells
from eval_pipeline.assets.partitions import TEAMS_KEY, Family
from eval_pipeline.assets.pool import set_limit_once
from eval_pipeline.automation.jobs import summaries_job_name
from eval_pipeline.db.freshness import StaleBatch, stale_batches
from eval_pipeline.errors import EvalPipelineError
from eval_pipeline.settings import load_settings
from eval_pipeline.suites import Suite, load_tasks


def registration_sensor(suites: Mapping[str, Suite]) -> dg.SensorDefinition:
    """Registers the task keys of every suite that has none yet, so that a fresh machine can launch at once.

    The step that stores the tasks and shows what they are takes seconds to start, so it is requested besides.
    """

    @dg.sensor(
        name="register_suites",
        minimum_interval_seconds=60,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Loads the suites whose data are there and that have no keys yet; one without data is left alone.",
        asset_selection=dg.AssetSelection.assets(TEAMS_KEY, *(Family(name).key("dataset") for name in suites)),
    )
    def register_suites(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        settings = load_settings()
        set_limit_once(context.instance)
        registered: dict[str, str] = {}
        left = []
        for suite in suites.values():
            family = Family(suite.name)
            if context.instance.get_dynamic_partitions(family.task_attempt_name):
                continue
            try:
                loaded = load_tasks(suite, settings)
            except EvalPipelineError as error:
                left.append(f"{suite.name}: {error}")
                continue
            register_cells(context.instance, family, loaded)
            registered[suite.name] = loaded.content_hash
        if not registered:
            return dg.SensorResult(skip_reason=f"nothing new to register; left alone: {'; '.join(left) or 'none'}")
        request = dg.RunRequest(
            run_key=", ".join(f"{name} {content_hash}" for name, content_hash in registered.items()),
            asset_selection=[TEAMS_KEY, *(Family(name).key("dataset") for name in registered)],
        )
        return dg.SensorResult(run_requests=[request])

    return register_suites


def refresh_key(stale: StaleBatch, now: datetime) -> str:
    """What is requested once only. Under way, a batch has a key a minute; else one for what happened to it last.

    The hour makes a refresh that failed be requested again, though not every time the sensor looks.
    """
    if stale.under_way:
        return f"{stale.batch_team.key} {now:%Y-%m-%dT%H:%M}"
    return f"{stale.batch_team.key} {stale.ended} ended, change {stale.latest}, {now:%Y-%m-%dT%H}"


def summaries_sensor(suites: Mapping[str, Suite], jobs: list[UnresolvedAssetJobDefinition]) -> dg.SensorDefinition:
    """Requests one refresh per batch whose summaries have been overtaken."""

    @dg.sensor(
        name="refresh_summaries",
        jobs=jobs,
        minimum_interval_seconds=15,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=(
            "Refreshes the summaries of a batch after its runs ended, crashed or were cancelled, "
            "at most once a minute while it is under way."
        ),
    )
    def refresh_summaries(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        known = {suite: set(context.instance.get_dynamic_partitions(Family(suite).batch_team_name)) for suite in suites}
        requests = [
            dg.RunRequest(
                job_name=summaries_job_name(stale.suite),
                partition_key=stale.batch_team.key,
                run_key=refresh_key(stale, datetime.now(UTC)),
            )
            for stale in stale_batches(database(load_settings()))
            if stale.batch_team.key in known.get(stale.suite, set())
        ]
        if requests:
            return dg.SensorResult(run_requests=requests)
        return dg.SensorResult(skip_reason="every summary is up to date")

    return refresh_summaries
