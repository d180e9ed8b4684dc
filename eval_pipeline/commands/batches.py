"""``load`` and ``run``: registering keys and running batches, always through Dagster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from eval_pipeline import console
from eval_pipeline.assets.dataset import cell_keys
from eval_pipeline.commands.context import ready, suite_named
from eval_pipeline.execution.run_many import LaunchResult
from eval_pipeline.ids import BatchTeam, check_id
from eval_pipeline.jsontypes import JsonObject
from eval_pipeline.launcher import (
    LaunchError,
    Selection,
    healed_instance,
    load_suite,
    refresh_summaries,
    register_batch,
    run_batch,
)
from eval_pipeline.suites import load_tasks
from eval_pipeline.teams.registry import load_teams, team

_SHOWN = 10


@dataclass(frozen=True, slots=True)
class BatchRequest:
    """What ``run`` was asked for."""

    batch: str
    teams: tuple[str, ...]
    suite: str | None
    benchmark: str | None
    selection: Selection
    retry_crashed: bool


@dataclass(frozen=True, slots=True)
class LoadReport:
    """What ``load`` has made known to the database and to Dagster."""

    suite: str
    suite_hash: str
    tasks: int
    cells: int
    batch_team: tuple[str, ...]


def load_suite_keys(suite_name: str, batch: str | None, team_ids: Sequence[str]) -> LoadReport:
    """Load a suite and register its keys, and those of ``batch`` under ``team_ids``."""
    settings, database = ready()
    suite = suite_named(settings, suite_name)
    loaded = load_tasks(suite, settings)
    batch_teams = _batch_teams(batch, team_ids, settings.teams_dir) if batch is not None else []
    instance = healed_instance(database, console.note)
    load_suite(instance, suite)
    register_batch(instance, suite, batch_teams)
    keys = tuple(one.key for one in batch_teams)
    return LoadReport(suite.name, loaded.content_hash, len(loaded.tasks), len(cell_keys(loaded)), keys)


def _batch_teams(batch: str, team_ids: Sequence[str], teams_dir: Path | None) -> list[BatchTeam]:
    known = load_teams(teams_dir)
    check_id(batch, "batch id", "--batch")
    return [BatchTeam(batch, team(known, team_id).team_id) for team_id in dict.fromkeys(team_ids)]


def run_batches(request: BatchRequest, *, as_json: bool) -> int:
    """Run the batch for each team in turn; 1 if a cell that was asked for has no completed run."""
    results = launch(request, quiet=as_json)
    if as_json:
        console.print_json([_figures(result) for result in results])
    else:
        for result in results:
            console.say(result.line())
            if result.circuit is not None:
                console.note(result.circuit.line())
            for left in result.unfinished[:_SHOWN]:
                console.note(f"  {left.task_attempt.key}: {left.end}: {left.message}")
            if len(result.unfinished) > _SHOWN:
                console.note(f"  … and {len(result.unfinished) - _SHOWN} more")
    unfinished = sum(len(result.unfinished) for result in results)
    if unfinished and not as_json:
        console.note(
            f"{unfinished} cells have no completed run; the same command with --retry-crashed tries them again."
        )
    return 1 if unfinished else 0


def launch(request: BatchRequest, *, quiet: bool) -> list[LaunchResult]:
    """Run the batch for each team and refresh its summaries; what one team committed stays whatever the next does."""
    settings, database = ready()
    suite = suite_named(settings, request.suite, request.benchmark)
    loaded = load_tasks(suite, settings)
    cells = request.selection.cells(loaded)
    batch_teams = _batch_teams(request.batch, request.teams, settings.teams_dir)
    instance = healed_instance(database, console.note)
    load_suite(instance, suite)
    register_batch(instance, suite, batch_teams)
    watch = console.Watch(quiet=quiet)
    results = []
    asked_at = datetime.now(UTC)
    try:
        for batch_team in batch_teams:
            results.append(
                run_batch(
                    instance,
                    settings,
                    loaded,
                    batch_team,
                    cells,
                    retry_crashed=request.retry_crashed,
                    listener=watch,
                    asked_at=asked_at,
                )
            )
    except KeyboardInterrupt:
        watch.close()
        console.note(
            f"{request.batch} is interrupted: every completed run is kept, and what was under way is closed as "
            "interrupted. Go on with the same command and --retry-crashed."
        )
        raise
    finally:
        watch.close()
    try:
        refresh_summaries(instance, suite, batch_teams)
    except LaunchError as error:
        # the runs are stored: what follows them must not take away what is said of them
        console.note(f"what follows the runs is not complete: {error}")
    return results


def _figures(result: LaunchResult) -> JsonObject:
    return {
        "batch": result.batch_team.batch,
        "team": result.batch_team.team,
        "planned": len(result.results),
        "unfinished": len(result.unfinished),
        "line": result.line(),
        "runs": [
            {
                "cell": ended.task_attempt.key,
                "end": ended.end.value,
                "success": ended.run.success if ended.run else None,
                "run_id": str(ended.run.run_id) if ended.run else None,
                "message": ended.message,
            }
            for ended in result.results
        ],
    }
