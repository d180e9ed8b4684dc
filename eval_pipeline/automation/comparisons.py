"""A sensor that compares each finished nightly batch with the night before, once."""

# no postponed annotations here: Dagster reads the type of a sensor's context at import
from collections.abc import Mapping
from itertools import pairwise

import dagster as dg
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition

from eval_pipeline.assets.common import database
from eval_pipeline.assets.comparisons import pair_key
from eval_pipeline.assets.partitions import Family
from eval_pipeline.automation.jobs import comparisons_job_name
from eval_pipeline.automation.nightly import PREFIX
from eval_pipeline.db.totals import batch_totals
from eval_pipeline.ids import BatchTeam
from eval_pipeline.settings import load_settings
from eval_pipeline.suites import Suite


def nights_to_compare(finished: Mapping[str, list[BatchTeam]], known: Mapping[str, set[str]]) -> list[tuple[str, str]]:
    """(suite, key) of every finished night and the one before it under the same team that is not compared yet."""
    found = []
    for suite, batch_teams in finished.items():
        for team in dict.fromkeys(one.team for one in batch_teams):
            nights = sorted(one for one in batch_teams if one.team == team)
            for before, after in pairwise(nights):
                key = pair_key(before, after)
                if key not in known.get(suite, set()):
                    found.append((suite, key))
    return found


def nightly_comparison_sensor(
    suites: Mapping[str, Suite], jobs: list[UnresolvedAssetJobDefinition]
) -> dg.SensorDefinition:
    """Registers the pair of two nights and requests its comparison."""

    @dg.sensor(
        name="compare_nights",
        jobs=jobs,
        minimum_interval_seconds=60,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Compares a nightly batch, once all its cells have ended, with the night before under its team.",
    )
    def compare_nights(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        with database(load_settings()).connect() as connection:
            totals = batch_totals(connection)
        finished: dict[str, list[BatchTeam]] = {}
        for one in totals:
            ended = one.planned == one.completed + one.crashed
            if one.suite in suites and one.batch_team.batch.startswith(PREFIX) and ended and one.completed:
                finished.setdefault(one.suite, []).append(one.batch_team)
        known = {
            suite: set(context.instance.get_dynamic_partitions(Family(suite).comparison_name)) for suite in finished
        }
        due = nights_to_compare(finished, known)
        return dg.SensorResult(
            run_requests=[
                dg.RunRequest(job_name=comparisons_job_name(suite), partition_key=key, run_key=key)
                for suite, key in due
            ],
            dynamic_partitions_requests=[Family(suite).comparison.build_add_request([key]) for suite, key in due],
        )

    return compare_nights
