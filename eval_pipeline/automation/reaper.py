"""Ends what the dead have left behind: Dagster runs that nobody works at, their pool slots, their running tries.

A killed ``dagster dev`` leaves runs started for ever, cells materializing and slots taken; Dagster's own monitoring
does not see it with the default launcher. The lease of a run tells whether its process lives.
"""

# no postponed annotations here: Dagster reads the type of a sensor's context at import
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import dagster as dg
from sqlalchemy import Connection, Engine, select

from eval_pipeline.assets.common import database
from eval_pipeline.assets.lease import LAUNCHED_BY_TAG
from eval_pipeline.assets.pool import free_slots_of_the_ended
from eval_pipeline.db import tables
from eval_pipeline.db.leases import LOOK_EVERY_S, is_free
from eval_pipeline.execution.store import HEARTBEAT_DEAD_AFTER_S, close_interrupted
from eval_pipeline.settings import load_settings

YOUNG_S = 20.0
"""A run that began later than this may not have taken its lease yet. Seconds."""
STARTING_S = 90.0
"""The same for a run whose process is only starting."""
NEVER_STARTED_S = 1800.0
"""The same for one that was made and not handed on: its planned cells are written first, one by one."""
IN_A_POD_S = 1800.0
"""The same for one that starts in a container of its own, which may wait for a node and for its image.

Dagster's run monitoring gives such runs up at its own ``start_timeout_seconds``; this is for where it is off.
"""
IMAGE_TAG = "dagster/image"
"""On Dagster runs whose launcher starts a container for each; it is there before the container is asked for."""
SURE_AFTER_S = 3 * LOOK_EVERY_S
"""A lease must be found free twice, this far apart: a restarted server drops the leases of the living, too."""

_GONE = "the process of this run is gone; what it had completed is kept, launch the rest again"
_TRY_GONE = "its worker process is gone"
_STATUS = dg.DagsterRunStatus
_ALIVE = [_STATUS.NOT_STARTED, _STATUS.STARTING, _STATUS.STARTED, _STATUS.CANCELING]


@dataclass(frozen=True)
class Ours:
    """The Dagster runs that hold a lease. Those of other code on the same instance hold none and are left alone."""

    assets: frozenset[dg.AssetKey]
    jobs: frozenset[str]

    @classmethod
    def of(cls, repository: dg.RepositoryDefinition) -> "Ours":
        keys = repository.asset_graph.get_all_asset_keys()
        # what is launched from an asset's page goes through an unnamed job that other code has under the same name
        jobs = {name for name in repository.job_names if not name.startswith("__")}
        return cls(frozenset(keys), frozenset(jobs))

    def __contains__(self, run: dg.DagsterRun) -> bool:
        selected = set(run.asset_selection or ()) | {check.asset_key for check in run.asset_check_selection or ()}
        return run.job_name in self.jobs or LAUNCHED_BY_TAG in run.tags or (bool(selected) and selected <= self.assets)


@dataclass
class Look:
    """What one look has found. ``suspects`` are for the next one: run ids with the time when their lease was free."""

    ended: list[str] = field(default_factory=list)
    suspects: dict[str, float] = field(default_factory=dict)
    soon_known: bool = False
    """Whether some suspect's end is a matter of seconds, and not of a process that may still be starting."""


def reap(instance: dg.DagsterInstance, engine: Engine, ours: Ours, suspects: Mapping[str, float]) -> Look:
    """One look at every run that Dagster takes for alive, and at every try that is marked running."""
    look = Look()
    now = time.time()
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        working = _working(connection)
        alive = {
            record.dagster_run.run_id: record
            for record in instance.get_run_records(dg.RunsFilter(statuses=_ALIVE))
            if record.dagster_run in ours or record.dagster_run.run_id in working
        }
        for run_id in sorted({*alive, *working}):
            if not is_free(connection, run_id):
                continue
            record = alive.get(run_id)
            # a try is begun when the lease has been taken
            young = record is not None and run_id not in working and _is_young(record, now)
            first_seen = suspects.get(run_id, now)
            if young or now - first_seen < SURE_AFTER_S:
                look.suspects[run_id] = first_seen
                look.soon_known |= record is None or record.dagster_run.status in (_STATUS.STARTED, _STATUS.CANCELING)
                continue
            _end(instance, run_id)
            _close_tries(connection, run_id)
            look.ended.append(run_id)
        _close_tries_without_a_run(connection)
    # a launch that gets its slot before these tries are closed would find their cells busy
    free_slots_of_the_ended(instance, but_of=look.suspects)
    return look


def _working(connection: Connection) -> set[str]:
    """The Dagster runs that a try is marked running for."""
    runs = tables.runs
    found = select(runs.c.dagster_run_id).where(runs.c.status == "running", runs.c.dagster_run_id.is_not(None))
    return {str(run_id) for run_id in connection.execute(found.distinct()).scalars()}


def _is_young(record: dg.RunRecord, now: float) -> bool:
    changed = record.update_timestamp.timestamp()
    match record.dagster_run.status:
        case _STATUS.NOT_STARTED:
            return now - changed < NEVER_STARTED_S
        case _STATUS.STARTING:
            return now - changed < (IN_A_POD_S if IMAGE_TAG in record.dagster_run.tags else STARTING_S)
        case _:
            return now - (record.start_time or changed) < YOUNG_S


def _end(instance: dg.DagsterInstance, run_id: str) -> None:
    # it may have come to its own end since it was read
    run = instance.get_run_by_id(run_id)
    if run is not None and not run.is_finished:
        if run.status is _STATUS.CANCELING:
            instance.report_run_canceled(run, message=_GONE)
        else:
            instance.report_run_failed(run, message=_GONE)
    instance.event_log_storage.free_concurrency_slots_for_run(run_id)


def _close_tries(connection: Connection, dagster_run_id: str) -> None:
    runs = tables.runs
    left = select(runs.c.run_id).where(runs.c.dagster_run_id == dagster_run_id, runs.c.status == "running")
    for run_id in connection.execute(left).scalars().all():
        close_interrupted(connection, run_id, _TRY_GONE)


def _close_tries_without_a_run(connection: Connection) -> None:
    """Tries that were launched without Dagster have no lease; their heartbeat is all there is."""
    runs = tables.runs
    dead = datetime.now(UTC) - timedelta(seconds=HEARTBEAT_DEAD_AFTER_S)
    left = select(runs.c.run_id).where(
        runs.c.dagster_run_id.is_(None), runs.c.status == "running", runs.c.heartbeat_at < dead
    )
    for run_id in connection.execute(left).scalars().all():
        close_interrupted(connection, run_id, _TRY_GONE)


def reap_at_start(
    instance: dg.DagsterInstance, engine: Engine, ours: Callable[[], Ours], tell: Callable[[str], None]
) -> list[str]:
    """Look until nothing is suspect, for a command that begins: it must not wait for a daemon that may not run.

    Nothing is waited for unless a process has died, or has only just begun. ``ours`` is asked only where some run is
    alive, since it loads every definition.
    """
    if not _anything_alive(instance, engine):
        return []
    known = ours()
    look = reap(instance, engine, known, {})
    ended = look.ended
    if look.soon_known:
        tell("a process of an earlier run seems to be gone; making sure of it, which takes up to half a minute")
    while look.soon_known:
        time.sleep(LOOK_EVERY_S)
        look = reap(instance, engine, known, look.suspects)
        ended += look.ended
    if ended:
        tell(f"closed what a process that is gone had left: {len(ended)} Dagster runs and their tries")
    return ended


def _anything_alive(instance: dg.DagsterInstance, engine: Engine) -> bool:
    if instance.get_run_records(dg.RunsFilter(statuses=_ALIVE), limit=1):
        return True
    with engine.connect() as connection:
        running = select(tables.runs.c.run_id).where(tables.runs.c.status == "running").limit(1)
        return connection.execute(running).first() is not None


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
    repository = context.repository_def
    if repository is None:
        return dg.SkipReason("nothing to go by: this sensor is not part of a code location")
    look = reap(context.instance, database(load_settings()), Ours.of(repository), suspects)
    context.update_cursor(json.dumps(look.suspects))
    return dg.SkipReason(f"ended: {', '.join(look.ended) or 'none'}; suspected: {', '.join(look.suspects) or 'none'}")
