"""Ends what the dead have left behind: Dagster runs that nobody works at, their pool slots, their running tries.

A killed ``dagster dev`` leaves runs started for ever, cells materializing and slots taken; Dagster's own monitoring
does not see it with the default launcher. The lease of a run tells whether its process lives.
"""

# no postponed annotations here: Dagster reads the type of a sensor's context at import
import json
import time
from collections.abc import Mapping

import dagster as dg
from sqlalchemy import Connection, Engine, select

from eval_pipeline.assets.common import database
from eval_pipeline.db import tables
from eval_pipeline.db.leases import LOOK_EVERY_S, is_free
from eval_pipeline.execution.store import close_interrupted
from eval_pipeline.settings import load_settings

YOUNG_S = 20.0
"""A run that began later than this may not have taken its lease yet. Seconds."""
STARTING_S = 90.0
"""The same for a run whose process is only starting."""
SURE_AFTER_S = 3 * LOOK_EVERY_S
"""A lease must be found free twice, this far apart: a restarted server drops the leases of the living, too."""

_GONE = "the process of this run is gone; what it had completed is kept, launch the rest again"


def reap(
    instance: dg.DagsterInstance, engine: Engine, suspects: Mapping[str, float]
) -> tuple[list[str], dict[str, float]]:
    """One look at every run that Dagster takes for alive.

    ``suspects`` maps run ids whose lease was free before to the time of that look. Returns the runs that were ended
    now, and the suspects for the next look.
    """
    ended: list[str] = []
    still: dict[str, float] = {}
    now = time.time()
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        for record in instance.get_run_records(dg.RunsFilter(statuses=_ALIVE)):
            run = record.dagster_run
            starting = run.status is dg.DagsterRunStatus.STARTING
            begun = record.start_time or record.create_timestamp.timestamp()
            if now - begun < (STARTING_S if starting else YOUNG_S) or not is_free(connection, run.run_id):
                continue
            first_seen = suspects.get(run.run_id, now)
            if now - first_seen < SURE_AFTER_S:
                still[run.run_id] = first_seen
                continue
            _end(instance, run)
            _close_tries(connection, run.run_id)
            ended.append(run.run_id)
    return ended, still


_ALIVE = [dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING]


def _end(instance: dg.DagsterInstance, run: dg.DagsterRun) -> None:
    if run.status is dg.DagsterRunStatus.CANCELING:
        instance.report_run_canceled(run, message=_GONE)
    else:
        instance.report_run_failed(run, message=_GONE)
    instance.event_log_storage.free_concurrency_slots_for_run(run.run_id)


def _close_tries(connection: Connection, dagster_run_id: str) -> None:
    runs = tables.runs
    left = connection.execute(
        select(runs.c.run_id).where(runs.c.dagster_run_id == dagster_run_id, runs.c.status == "running")
    ).scalars()
    for run_id in list(left):
        close_interrupted(connection, run_id, "its worker process is gone")


def reap_at_start(instance: dg.DagsterInstance, engine: Engine) -> list[str]:
    """Two looks in a row, for a command that begins: it must not wait for a daemon that may not run."""
    ended, suspects = reap(instance, engine, {})
    if suspects:
        time.sleep(SURE_AFTER_S)
        more, _ = reap(instance, engine, suspects)
        ended += more
    return ended


@dg.sensor(
    name="reap_dead_runs",
    minimum_interval_seconds=5,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description=(
        "Ends Dagster runs whose process is gone, frees their pool slots and closes their tries, "
        "so that a killed machine heals without hands."
    ),
)
def reap_dead_runs(context: dg.SensorEvaluationContext) -> dg.SkipReason:
    suspects = json.loads(context.cursor) if context.cursor else {}
    ended, still = reap(context.instance, database(load_settings()), suspects)
    context.update_cursor(json.dumps(still))
    return dg.SkipReason(f"ended: {', '.join(ended) or 'none'}; suspected: {', '.join(still) or 'none'}")
