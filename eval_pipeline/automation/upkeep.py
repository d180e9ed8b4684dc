"""What keeps an installation in order: two sensors that are off until somebody wants them, and one that is on.

One resumes paused batches, one retires old partition keys, one makes the months that traces will lie in.
"""

# no postponed annotations here: Dagster reads the type of a sensor's context at import
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import dagster as dg
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition
from dagster._core.storage.dagster_run import NOT_FINISHED_STATUSES

from eval_pipeline.assets.common import database
from eval_pipeline.assets.dataset import backfill_under_way
from eval_pipeline.assets.partitions import Family
from eval_pipeline.assets.ranges import batch_teams_of, contiguous, range_tags
from eval_pipeline.assets.runs import asked_tag
from eval_pipeline.automation.jobs import runs_job_name
from eval_pipeline.automation.nightly import PREFIX
from eval_pipeline.db.event_partitions import analyze, make_ahead
from eval_pipeline.db.paused import paused_batches
from eval_pipeline.settings import load_settings
from eval_pipeline.suites import Suite


def resume_sensor(suites: Mapping[str, Suite], jobs: list[UnresolvedAssetJobDefinition]) -> dg.SensorDefinition:
    """Launches what is missing of paused batches once ``EVAL_RESUME_PAUSED_AFTER_S`` have passed."""

    @dg.sensor(
        name="resume_paused_batches",
        jobs=jobs,
        minimum_interval_seconds=60,
        default_status=dg.DefaultSensorStatus.STOPPED,
        description=(
            "Goes on with batches that stopped at a quota or a refused key, EVAL_RESUME_PAUSED_AFTER_S after that. "
            "Off until you switch it on: each try costs the calls that open the circuit again."
        ),
    )
    def resume_paused_batches(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        settings = load_settings()
        now = datetime.now(UTC)
        before = now - timedelta(seconds=settings.resume_paused_after_s)
        requests, left = [], []
        for paused in paused_batches(database(settings), before):
            family = Family(paused.suite)
            batch_teams = context.instance.get_dynamic_partitions(family.batch_team_name)
            if paused.suite not in suites or paused.batch_team.key not in batch_teams:
                left.append(paused.batch_team.key)
                continue
            known = context.instance.get_dynamic_partitions(family.task_attempt_name)
            for cells in contiguous(known, paused.missing, paused.done):
                first, last = (family.cell_key(paused.batch_team.key, cell.key) for cell in (cells[0], cells[-1]))
                requests.append(
                    dg.RunRequest(
                        job_name=runs_job_name(paused.suite),
                        run_key=f"{first} after {paused.since.isoformat()}",
                        tags={**range_tags(first, last), **asked_tag(now)},
                    )
                )
        if requests:
            return dg.SensorResult(run_requests=requests)
        return dg.SensorResult(skip_reason=f"no batch to resume; without a key here: {', '.join(left) or 'none'}")

    return resume_paused_batches


def retired(keys: list[str], keep: int) -> list[str]:
    """The nightly keys that are older than the newest ``keep`` nights; a person's batches are never among them."""
    nights = sorted({key.partition("@")[0] for key in keys if key.startswith(PREFIX)}, reverse=True)
    kept = set(nights[:keep])
    return [key for key in keys if key.startswith(PREFIX) and key.partition("@")[0] not in kept]


def retention_sensor(suites: Mapping[str, Suite]) -> dg.SensorDefinition:
    """Takes old nightly keys off Dagster's pages. The data stay, and so does every run of Dagster."""

    @dg.sensor(
        name="retire_nightly_keys",
        minimum_interval_seconds=3600,
        default_status=dg.DefaultSensorStatus.STOPPED,
        asset_selection=dg.AssetSelection.assets(*(Family(name).key("tasks") for name in suites)),
        description=(
            "Removes the partition keys of nightly batches but for the newest EVAL_KEEP_NIGHTLY nights. Results stay "
            "in the database; a key added again shows them again. Never while a backfill is under way."
        ),
    )
    def retire_nightly_keys(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        if backfill_under_way(context.instance):
            return dg.SkipReason("a backfill is under way; its keys must stay")
        keep = load_settings().keep_nightly
        under_way = context.instance.get_runs(dg.RunsFilter(statuses=NOT_FINISHED_STATUSES))
        gone, needed = [], []
        for suite in suites:
            name = Family(suite).batch_team_name
            known = list(context.instance.get_dynamic_partitions(name))
            # a night is no backfill, and a run whose key is deleted fails
            in_use: set[str] = set().union(*(batch_teams_of(run.tags, known) for run in under_way))
            for key in retired(known, keep):
                if key in in_use:
                    needed.append(key)
                    continue
                context.instance.delete_dynamic_partition(name, key)
                gone.append(key)
        return dg.SkipReason(f"retired: {', '.join(gone) or 'none'}; still in use: {', '.join(needed) or 'none'}")

    return retire_nightly_keys


@dg.sensor(
    name="make_trace_months",
    minimum_interval_seconds=86_400,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description=(
        "Once a day: makes the database's partitions for the coming months of traces, and lets PostgreSQL's planner "
        "know what all months together hold."
    ),
)
def make_trace_months(context: dg.SensorEvaluationContext) -> dg.SkipReason:
    found = database(load_settings())
    made = make_ahead(found)
    analyze(found)
    return dg.SkipReason(f"made: {', '.join(map(str, made)) or 'none, the coming months are there'}")
