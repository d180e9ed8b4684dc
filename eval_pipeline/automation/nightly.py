"""One schedule per suite that declares nightly batches: registers the batch's keys and launches every cell.

Idempotent: the same tick again finds the same keys and the same run keys. Summaries, and whatever else follows a batch,
follow by the sensors.
"""

# no postponed annotations here: Dagster reads the type of a schedule's context at import
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import dagster as dg

from eval_pipeline.assets.dataset import cell_keys, register_cells
from eval_pipeline.assets.partitions import Family
from eval_pipeline.assets.ranges import contiguous, range_tags
from eval_pipeline.automation.jobs import runs_job_name
from eval_pipeline.errors import EvalPipelineError
from eval_pipeline.ids import BatchTeam, TaskAttempt
from eval_pipeline.settings import load_settings
from eval_pipeline.suites import Nightly, Suite, load_tasks

PREFIX = "nightly-"


def batch_of(moment: datetime, nightly: Nightly) -> str:
    """The id of the batch that begins at ``moment``: its date in the schedule's own time zone."""
    night = f"{PREFIX}{moment.astimezone(ZoneInfo(nightly.time_zone)):%Y-%m-%d}"
    return f"{night}-{nightly.label}" if nightly.label else night


def nightly_schedule(suite: Suite, nightly: Nightly) -> dg.ScheduleDefinition:
    """The schedule of ``suite``. It runs as soon as the suite declares it."""
    family = Family(suite.name)

    @dg.schedule(
        name=f"{suite.name}_nightly",
        job_name=runs_job_name(suite.name),
        cron_schedule=nightly.cron,
        execution_timezone=nightly.time_zone,
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description=f"Batch {PREFIX}YYYY-MM-DD of suite {suite.name} under {', '.join(nightly.teams)}.",
    )
    def schedule(context: dg.ScheduleEvaluationContext) -> list[dg.RunRequest] | dg.SkipReason:
        moment = context.scheduled_execution_time or datetime.now(UTC)
        batch_teams = [BatchTeam(batch_of(moment, nightly), team_id) for team_id in nightly.teams]
        try:
            loaded = load_tasks(suite, load_settings())
        except EvalPipelineError as error:
            return dg.SkipReason(str(error))
        register_cells(context.instance, family, loaded)
        known = set(context.instance.get_dynamic_partitions(family.batch_team_name))
        new = [batch_team.key for batch_team in batch_teams if batch_team.key not in known]
        if new:
            context.instance.add_dynamic_partitions(family.batch_team_name, new)
        order = context.instance.get_dynamic_partitions(family.task_attempt_name)
        # a key that is no longer in the suite may have had to stay
        wanted = {TaskAttempt.parse(key) for key in cell_keys(loaded)}
        return [
            dg.RunRequest(run_key=str(first), tags=range_tags(first, last))
            for batch_team in batch_teams
            for cells in contiguous(order, wanted, ())
            for first, last in [[family.cell_key(batch_team.key, cell.key) for cell in (cells[0], cells[-1])]]
        ]

    return schedule
