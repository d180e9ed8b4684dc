"""``failures``: why the runs of a batch failed, by mode, with the events that show it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Engine, Row, column, select, table

from eval_pipeline import console
from eval_pipeline.commands.context import ready
from eval_pipeline.comparison.outcomes import outcomes
from eval_pipeline.failures.judge import Judged, judge_batch
from eval_pipeline.failures.rules import VERSION
from eval_pipeline.failures.store import classify_batch
from eval_pipeline.ids import BatchTeam
from eval_pipeline.settings import Settings, secrets
from eval_pipeline.tracing.masking import Masker

_COLUMNS = (
    "task_id", "attempt", "run_id", "success", "error_class", "mode", "found_by", "confidence", "seqs", "detail",
    "version",
)  # fmt: skip
_SHOWN_EVENTS = 8


@dataclass(frozen=True, slots=True)
class JudgeRequest:
    """Within which bounds a model is asked beside the rules."""

    most_runs: int
    most_tokens: int


def show_failures(
    batch_team: BatchTeam, mode: str | None, judge: JudgeRequest | None, *, again: bool, as_json: bool
) -> None:
    """Compute what is missing (or, with ``again``, everything) and print it; with ``judge`` ask the model too.

    Raises:
        IdError: there is no such batch.
        SettingsError: a judge is asked for and the endpoint is not fully configured.
    """
    settings, database = ready()
    with database.begin() as connection:
        known = outcomes(connection, batch_team)
        classify_batch(connection, batch_team, again=again)
    judged = _judged(settings, database, batch_team, judge, again=again) if judge else None
    rows = _latest(database, batch_team, mode)
    modes = {name: {by: _count(rows, name, by) for by in ("rules", "judge")} for name in _by_frequency(rows)}
    if as_json:
        console.print_json(
            {
                "batch": batch_team.key,
                "version": VERSION,
                "modes": {name: found["rules"] for name, found in modes.items() if found["rules"]},
                "judge": _judge_json(judged),
                "signals": [dict(zip(_COLUMNS, row, strict=True)) for row in rows],
            }
        )
        return
    scripted = " (scripted model)" if known.scripted else ""
    with_judge = any(found["judge"] for found in modes.values())
    console.table(
        f"Signals in {batch_team.key}{scripted}",
        ("mode", "runs", "judge") if with_judge else ("mode", "runs"),
        [(name, str(found["rules"]), *([str(found["judge"])] if with_judge else [])) for name, found in modes.items()],
    )
    for row in rows:
        if not row.success:
            events = ", ".join(map(str, row.seqs[:_SHOWN_EVENTS]))
            by = row.confidence if row.found_by == "rules" else "judge"
            console.say(f"{row.mode} ({by})  {row.task_id}#{row.attempt}: {row.detail} [events {events}]")
    if judged is not None:
        console.say(_judge_line(judged))


def _latest(database: Engine, batch_team: BatchTeam, mode: str | None) -> Sequence[Row[tuple[object, ...]]]:
    """The signals of the versions that looked last, the rules' and the judge's."""
    view = table("v_failure_signals", *(column(name) for name in (*_COLUMNS, "batch_id", "team_id", "latest")))
    query = (
        select(*(view.c[name] for name in _COLUMNS))
        .where(view.c.batch_id == batch_team.batch, view.c.team_id == batch_team.team, view.c.latest)
        .order_by(view.c.mode, view.c.task_id, view.c.attempt, view.c.found_by.desc())
    )
    if mode is not None:
        query = query.where(view.c.mode == mode)
    with database.connect() as connection:
        return connection.execute(query).all()


def _count(rows: Sequence[Row[tuple[object, ...]]], mode: str, found_by: str) -> int:
    return sum(row.mode == mode and row.found_by == found_by for row in rows)


def _by_frequency(rows: Sequence[Row[tuple[object, ...]]]) -> list[str]:
    names = {str(row.mode) for row in rows}
    return sorted(names, key=lambda name: (-_count(rows, name, "rules"), -_count(rows, name, "judge"), name))


def _judged(
    settings: Settings, database: Engine, batch_team: BatchTeam, request: JudgeRequest, *, again: bool
) -> Judged | None:
    if settings.llm_provider == "scripted":
        console.note(
            "there is no judge: EVAL_LLM_PROVIDER is scripted. "
            "Set EVAL_LLM_PROVIDER=openai, EVAL_LLM_BASE_URL and EVAL_LLM_MODEL."
        )
        return None
    return asyncio.run(_ask(settings, database, batch_team, request, again=again))


async def _ask(
    settings: Settings, database: Engine, batch_team: BatchTeam, request: JudgeRequest, *, again: bool
) -> Judged:
    # the package that knows AutoGen takes seconds to import, and only a judge needs it
    from eval_pipeline.agents.judge import EndpointJudge  # noqa: PLC0415

    judge = EndpointJudge(settings)
    try:
        return await judge_batch(
            database,
            batch_team,
            judge,
            Masker(secrets(settings)),
            most_runs=request.most_runs,
            most_tokens=request.most_tokens,
            again=again,
        )
    finally:
        await judge.aclose()


def _judge_line(judged: Judged) -> str:
    """What became of asking, in one line."""
    said = f"judge {judged.version}: {judged.asked} runs asked about, {judged.tokens:,} tokens"
    if judged.unreadable:
        said += f", {judged.unreadable} answers could not be read"
    if judged.stopped:
        said += f"; stopped: {judged.stopped}"
    return f"{said}; {judged.left} runs are left, the same command goes on" if judged.left else said


def _judge_json(judged: Judged | None) -> dict[str, object] | None:
    if judged is None:
        return None
    return {
        "version": judged.version,
        "asked": judged.asked,
        "unreadable": judged.unreadable,
        "left": judged.left,
        "tokens": judged.tokens,
        "stopped": judged.stopped,
        "modes": dict(judged.modes.most_common()),
    }
