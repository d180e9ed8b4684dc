"""``status``, ``trace`` and ``check``: what is in the database, for people. Nothing here changes a row."""

from __future__ import annotations

from dataclasses import asdict
from uuid import UUID

from sqlalchemy import Connection, select

from eval_pipeline import console
from eval_pipeline.assets.mirror import mirror_check
from eval_pipeline.commands.context import ready
from eval_pipeline.db import tables
from eval_pipeline.db.archived import archived_trace
from eval_pipeline.db.checks import run_checks
from eval_pipeline.db.totals import Totals, batch_totals
from eval_pipeline.errors import IdError
from eval_pipeline.execution.circuit import paused_by
from eval_pipeline.ids import BatchTeam, TaskAttempt, check_id, shown
from eval_pipeline.launcher import open_instance
from eval_pipeline.tracing.transcript import render_text, transcript_rows

TOTALS_HEADER = ("batch@team", "planned", "done", "crashed", "pass@1", "of planned", "no answer", "tokens", "p50")


def totals_rows(totals: list[Totals]) -> list[tuple[str, ...]]:
    """The figures of each ``batch@team`` as table rows under :data:`TOTALS_HEADER`."""
    return [
        (
            one.batch_team.key,
            str(one.planned),
            str(one.completed),
            str(one.crashed),
            console.percent(one.pass_at_1_completed),
            console.percent(one.pass_at_1_planned),
            console.percent(one.format_invalid_rate),
            console.count(one.all_tokens),
            console.seconds(one.p50_latency_ms),
        )
        for one in totals
    ]


def show_status(batch: str | None, *, as_json: bool) -> None:
    """Print the totals of one batch, one ``batch@team``, or the latest batches."""
    _, database = ready()
    wanted = None
    team = None
    if batch is not None:
        condition = BatchTeam.parse(batch, "batch") if "@" in batch else None
        wanted = condition.batch if condition else check_id(batch, "batch id", "batch")
        team = condition.team if condition else None
    with database.connect() as connection:
        totals = [one for one in batch_totals(connection, wanted) if team is None or one.batch_team.team == team]
        pauses = {one.batch_team: paused_by(connection, one.batch_team) for one in totals}
    if batch is not None and not totals:
        raise IdError(f"there is no batch {shown(batch)}; eval-pipeline status lists those there are")
    if as_json:
        console.print_json([one.as_json() for one in totals])
        return
    if not totals:
        console.out.print("no batch yet; eval-pipeline demo makes one")
        return
    note = " (scripted model)" if all(one.scripted for one in totals) else ""
    console.table(f"Batches{note}", TOTALS_HEADER, totals_rows(totals))
    for one in totals:
        if one.crashed or one.running or one.planned > one.completed:
            left = one.planned - one.completed
            console.say(
                f"{one.batch_team.key}: {left} of {one.planned} cells have no completed run; "
                "run it again with --retry-crashed"
            )
        pause = pauses[one.batch_team]
        if pause is not None:
            console.say(f"{one.batch_team.key}: paused since {pause.opened_at:%Y-%m-%d %H:%M} UTC: {pause.line()}")


def show_trace(run: str, *, full: bool, as_json: bool) -> None:
    """Print one run's transcript."""
    _, database = ready()
    with database.connect() as connection:
        run_id = _run_id(connection, run)
        columns = connection.execute(select(tables.runs).where(tables.runs.c.run_id == run_id)).mappings().one()
        run_row = {str(name): value for name, value in columns.items()}
        rows = transcript_rows(connection, run_id, full_texts=full)
        archived = archived_trace(connection, run_id)
    if as_json:
        events = [{name: value for name, value in asdict(row).items() if name != "texts"} for row in rows]
        away = None if archived is None else {"month": archived.month, "folder": archived.folder}
        console.print_json({"run": run_row, "events": events, "archived": away})
    else:
        console.say(render_text(run_row, rows))
        if archived is not None:
            console.say(archived.line())


def _run_id(connection: Connection, run: str) -> UUID:
    runs = tables.runs
    if "|" in run:
        batch_team_key, _, task_attempt_key = run.partition("|")
        batch_team = BatchTeam.parse(batch_team_key, "run")
        cell = TaskAttempt.parse(task_attempt_key, "run")
        found = connection.execute(
            select(runs.c.run_id).where(
                runs.c.batch_id == batch_team.batch,
                runs.c.team_id == batch_team.team,
                runs.c.task_id == cell.task_id,
                runs.c.attempt == cell.attempt,
                runs.c.live,
            )
        ).scalar_one_or_none()
    else:
        try:
            wanted = UUID(run)
        except ValueError:
            raise IdError(
                f"{shown(run)} is neither a run id nor a cell such as first@v5-multitool|sample-cafe#1"
            ) from None
        found = connection.execute(select(runs.c.run_id).where(runs.c.run_id == wanted)).scalar_one_or_none()
    if not isinstance(found, UUID):
        raise IdError(f"there is no run {shown(run)}")
    return found


def show_checks(*, as_json: bool) -> int:
    """Run every consistency query, and hold Dagster's cells against the database; 1 if something was found."""
    _, database = ready()
    results = [*run_checks(database), mirror_check(open_instance(), database)]
    if as_json:
        console.print_json(
            [{"check": r.check.name, "count": r.count, "rows": [dict(row) for row in r.rows]} for r in results]
        )
    else:
        rows = [
            (
                result.check.name,
                str(result.count) if result.count else "ok",
                result.check.meaning if result.count else "",
            )
            for result in results
        ]
        console.table("Consistency", ("check", "found", "what it means"), rows, left=3)
        for result in results:
            for row in result.rows:
                console.say(f"  {result.check.name}: {row}")
            if result.count:
                console.say(f"  what to do: {result.check.remedy}")
    return 1 if any(result.count for result in results) else 0
