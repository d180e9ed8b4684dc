"""Launches Dagster runs for the command line: the same assets as in the UI, in this process, on the same instance.

What to run is decided here; what a run does is in :mod:`eval_pipeline.execution`; printing is in
:mod:`eval_pipeline.console`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby

import dagster as dg
from sqlalchemy import Engine

from eval_pipeline.assets.accounting import accounting_asset
from eval_pipeline.assets.checks import suite_checks
from eval_pipeline.assets.common import without_beta_warnings
from eval_pipeline.assets.contamination import contamination_asset
from eval_pipeline.assets.dataset import cell_keys, dataset_asset
from eval_pipeline.assets.failures import failures_asset
from eval_pipeline.assets.lease import LAUNCHED_BY_TAG, LEASE, RunLease
from eval_pipeline.assets.listener import LISTENER, LaunchListener, NobodyListens
from eval_pipeline.assets.partitions import Family
from eval_pipeline.assets.pool import set_limit_once
from eval_pipeline.assets.ranges import contiguous, range_tags
from eval_pipeline.assets.reports import report_asset
from eval_pipeline.assets.runs import RETRY_CRASHED_TAG, asked_tag, runs_assets
from eval_pipeline.assets.summaries import summary_assets
from eval_pipeline.assets.teams import teams
from eval_pipeline.automation.reaper import Ours, reap_at_start
from eval_pipeline.db.engine import engine
from eval_pipeline.errors import EvalPipelineError
from eval_pipeline.execution.run_many import LaunchResult
from eval_pipeline.execution.store import worker_name
from eval_pipeline.execution.summaries import live_runs
from eval_pipeline.home import home
from eval_pipeline.ids import BatchTeam, TaskAttempt
from eval_pipeline.settings import Settings
from eval_pipeline.suites import LoadedSuite, Suite

_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


class LaunchError(EvalPipelineError):
    """Dagster refused or failed a launch for a reason of its own."""


def open_instance() -> dg.DagsterInstance:
    """The Dagster instance of this home; ``DAGSTER_HOME`` is set for this process if it was not."""
    os.environ.setdefault("DAGSTER_HOME", str(home()))
    instance = dg.DagsterInstance.get()
    set_limit_once(instance)
    return instance


def healed_instance(database: Engine, tell: Callable[[str], None]) -> dg.DagsterInstance:
    """The instance of this home, without what a process that was killed has left in it; ``tell`` hears of that."""
    instance = open_instance()
    reap_at_start(instance, database, _ours, tell)
    return instance


def _ours() -> Ours:
    # every suite's definitions are made at this import, which a command that has nothing to reap does without
    from eval_pipeline.definitions import defs  # noqa: PLC0415

    return Ours.of(defs.get_repository_def())


def load_suite(instance: dg.DagsterInstance, suite: Suite) -> None:
    """Materialize ``teams`` and ``<suite>/dataset``: rows, team hashes and task keys.

    Raises:
        LaunchError: the step failed; carries its one-line reason.
    """
    _succeed(_materialize(instance, [teams, dataset_asset(suite, Family(suite.name))]))


def register_batch(instance: dg.DagsterInstance, suite: Suite, batch_teams: Sequence[BatchTeam]) -> None:
    """Make ``batch@team`` keys known to Dagster, in this order, in one call."""
    name = Family(suite.name).batch_team_name
    known = set(instance.get_dynamic_partitions(name))
    new = [batch_team.key for batch_team in batch_teams if batch_team.key not in known]
    if new:
        instance.add_dynamic_partitions(name, new)


@dataclass(frozen=True, slots=True)
class Selection:
    """Which cells of a suite a launch asks for; ``None`` means all."""

    levels: tuple[int, ...] | None = None
    exclude_web: bool = False
    task_ids: tuple[str, ...] | None = None
    limit: int | None = None
    attempts: int | None = None

    def cells(self, loaded: LoadedSuite) -> list[TaskAttempt]:
        """The chosen cells in the suite's order.

        Raises:
            LaunchError: a task id that the suite does not have, or nothing is left.
        """
        unknown = set(self.task_ids or ()) - {task.task_id for task in loaded.tasks}
        if unknown:
            raise LaunchError(f"suite {loaded.suite.name} has no task {', '.join(sorted(unknown)[:5])}")
        if self.attempts is not None and self.attempts > loaded.suite.attempts:
            raise LaunchError(
                f"suite {loaded.suite.name} has {loaded.suite.attempts} attempts per task, not {self.attempts}; "
                "more attempts are another suite in suites.yaml"
            )
        tasks = [
            task
            for task in loaded.tasks
            if (self.levels is None or task.level in self.levels)
            and not (self.exclude_web and task.requires_web)
            and (self.task_ids is None or task.task_id in self.task_ids)
        ][: self.limit]
        if not tasks:
            raise LaunchError(
                f"no task of suite {loaded.suite.name} fits --level, --exclude-web, --task-ids and --limit"
            )
        attempts = self.attempts or loaded.suite.attempts
        return [TaskAttempt(task.task_id, attempt) for task in tasks for attempt in range(1, attempts + 1)]


class _Collector:
    """Hands everything on to the caller's listener and keeps the results of the steps."""

    def __init__(self, listener: LaunchListener) -> None:
        self._listener = listener
        self.results: list[LaunchResult] = []
        self.planned = listener.planned
        self.begun = listener.begun
        self.ended = listener.ended

    def finished(self, result: LaunchResult) -> None:
        self.results.append(result)
        self._listener.finished(result)


def run_batch(
    instance: dg.DagsterInstance,
    settings: Settings,
    loaded: LoadedSuite,
    batch_team: BatchTeam,
    cells: Sequence[TaskAttempt],
    *,
    retry_crashed: bool,
    listener: LaunchListener | None = None,
    asked_at: datetime | None = None,
) -> LaunchResult:
    """Materialize ``cells`` of ``batch_team``, in as few Dagster runs as the holes allow.

    ``asked_at`` is when somebody asked for it, where that is not now: a command for several teams is one launch.

    Raises:
        LaunchError: a step failed for another reason than crashed runs (contract, team, settings); its own line.
        KeyboardInterrupt: this process was told to end; what was under way is closed as interrupted.
    """
    family = Family(loaded.suite.name)
    with without_beta_warnings():
        assets = [runs_assets(loaded.suite, family, dg.BackfillPolicy.single_run())]
    collector = _Collector(listener or NobodyListens())
    when = asked_tag(asked_at or datetime.now(UTC))
    for chunk in _ranges(instance, settings, loaded, batch_team, cells):
        before = len(collector.results)
        first, last = (family.cell_key(batch_team.key, cell.key) for cell in (chunk[0], chunk[-1]))
        tags = {**range_tags(first, last), **when, RETRY_CRASHED_TAG: str(retry_crashed).lower()}
        outcome = _materialize(instance, assets, tags, collector)
        if len(collector.results) == before:
            _succeed(outcome)
    merged = LaunchResult(batch_team)
    asked = set(cells)
    for result in collector.results:
        merged.circuit = merged.circuit or result.circuit
        merged.results += [ended for ended in result.results if ended.task_attempt in asked]
    return merged


def _ranges(
    instance: dg.DagsterInstance,
    settings: Settings,
    loaded: LoadedSuite,
    batch_team: BatchTeam,
    cells: Sequence[TaskAttempt],
) -> Iterator[list[TaskAttempt]]:
    """The ranges of the grid that a launch of ``cells`` is cut into; see :func:`~eval_pipeline.assets.ranges`."""
    with engine(settings).connect() as connection:
        live = live_runs(connection, batch_team)
    in_suite = set(cell_keys(loaded))
    done = {cell for cell, run in live.items() if run.status == "completed" and cell.key in in_suite}
    known = instance.get_dynamic_partitions(Family(loaded.suite.name).task_attempt_name)
    return contiguous(known, set(cells), done)


def refresh_summaries(instance: dg.DagsterInstance, suite: Suite, batch_teams: Sequence[BatchTeam]) -> None:
    """Materialize summaries and reports of these registered batches, one Dagster run for neighbours among the keys.

    Raises:
        LaunchError: a step failed, such as a report that must not be published; the results are stored all the same.
    """
    family = Family(suite.name)
    with without_beta_warnings():
        assets = [
            *summary_assets(suite, family),
            failures_asset(suite, family),
            contamination_asset(suite, family),
            accounting_asset(suite, family),
            report_asset(suite, family),
        ]
        checks = suite_checks(suite)
    # asked for by name: the checks are of an asset that this run does not make
    selection = dg.AssetSelection.assets(*assets) | dg.AssetSelection.checks(*checks)
    wanted = {batch_team.key for batch_team in batch_teams}
    known = instance.get_dynamic_partitions(family.batch_team_name)
    for asked, group in groupby(known, key=wanted.__contains__):
        if asked:
            keys = list(group)
            tags = range_tags(keys[0], keys[-1])
            _succeed(_materialize(instance, [*assets, *checks], tags, selection=selection))


def _materialize(
    instance: dg.DagsterInstance,
    assets: Sequence[dg.AssetsDefinition | dg.AssetChecksDefinition],
    tags: Mapping[str, str] | None = None,
    listener: LaunchListener | None = None,
    selection: dg.AssetSelection | None = None,
) -> dg.ExecuteInProcessResult:
    outcome = dg.materialize(
        assets,
        instance=instance,
        resources={LISTENER: listener or NobodyListens(), LEASE: RunLease()},
        run_config=_QUIET,
        raise_on_error=False,
        selection=selection,
        tags={**(tags or {}), LAUNCHED_BY_TAG: worker_name()},
    )
    if any(_is_interrupt(event) for event in outcome.all_events):
        raise KeyboardInterrupt
    return outcome


def _is_interrupt(event: dg.DagsterEvent) -> bool:
    """Whether a step ended because this process was told to end, which Dagster keeps to itself."""
    error = event.step_failure_data.error if event.is_step_failure else None
    return error is not None and error.cls_name in ("DagsterExecutionInterruptedError", "KeyboardInterrupt")


def _succeed(outcome: dg.ExecuteInProcessResult) -> None:
    if outcome.success:
        return
    for event in outcome.all_events:
        if event.is_step_failure:
            data = event.step_failure_data
            failure = data.user_failure_data
            if failure is not None and failure.description:
                raise LaunchError(failure.description)
            error = data.error.cause or data.error if data.error else None
            if error is not None:
                raise LaunchError(error.message.strip().split("\n", 1)[0])
    raise LaunchError(f"Dagster run {outcome.run_id} failed; `dagster run list` or the UI shows why")
