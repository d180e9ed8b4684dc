"""Scores stored answers again with the present scorers. No model is called, and no old score is lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import Connection, Engine, RowMapping, select, update
from sqlalchemy.dialects.postgresql import insert

from eval_pipeline.benchmarks.base import Answer, Benchmark, Score, Task
from eval_pipeline.benchmarks.registry import benchmark
from eval_pipeline.db import tables
from eval_pipeline.db.archived import refuse_archived
from eval_pipeline.execution.evidence import evidence_of
from eval_pipeline.execution.scores import store_figures, store_score
from eval_pipeline.ids import BatchTeam
from eval_pipeline.suites import LoadedSuite
from eval_pipeline.tracing.text import clean

_PLANNER = "planner"
_REASON_LENGTH = 2000


@dataclass(frozen=True, slots=True)
class Rescored:
    """What a rescoring did. ``left_out`` are runs whose task is no longer in the suite with the same content."""

    version: str
    scored: int
    gained: tuple[UUID, ...]
    lost: tuple[UUID, ...]
    left_out: int


def rescore(engine: Engine, batch_team: BatchTeam, loaded: LoadedSuite, *, verdicts: bool = True) -> Rescored:
    """Score every completed live run of ``batch_team`` again, each in a transaction of its own.

    With ``verdicts`` the present verdict becomes the run's; else only metrics and grounding are computed anew.

    Raises:
        TraceArchivedError: traces that a scorer may need are in files only; nothing has been scored.
    """
    kind = benchmark(loaded.suite.benchmark)
    tasks = {(task.task_id, task.content_hash): task for task in loaded.tasks}
    runs = tables.runs
    query = select(runs).where(
        runs.c.batch_id == batch_team.batch,
        runs.c.team_id == batch_team.team,
        runs.c.live,
        runs.c.status == "completed",
    )
    with engine.connect() as connection:
        refuse_archived(connection, batch_team)
        found = connection.execute(query.order_by(runs.c.task_id, runs.c.attempt)).mappings().all()
    scored = left_out = 0
    gained: list[UUID] = []
    lost: list[UUID] = []
    for run in found:
        task = tasks.get((run["task_id"], run["task_hash"]))
        if task is None:
            left_out += 1
            continue
        with engine.begin() as connection:
            score = _scored(connection, run, task, kind, loaded.suite.thresholds)
            if verdicts:
                _store_verdict(connection, run, kind, score)
            else:
                store_figures(connection, run["run_id"], kind, score)
        scored += 1
        if score.success != run["success"]:
            (gained if score.success else lost).append(run["run_id"])
    return Rescored(kind.scorer_version, scored, tuple(gained), tuple(lost), left_out)


def _scored(
    connection: Connection, run: RowMapping, task: Task, kind: Benchmark, thresholds: Mapping[str, float]
) -> Score:
    evidence = evidence_of(connection, run["run_id"]) if kind.needs_evidence else ()
    answer = Answer(run["final_answer"], _full_text(connection, run["run_id"]), evidence)
    return kind.score(task, answer, thresholds)


def _full_text(connection: Connection, run_id: UUID) -> str:
    """The planner's last message uncut, as it was scored; a tool's output that it passed on is none of its messages."""
    events, texts = tables.events, tables.texts
    row = connection.execute(
        select(events.c.content, texts.c.body)
        .outerjoin(texts, texts.c.sha256 == events.c.content_sha256)
        .where(events.c.run_id == run_id, events.c.message_type == "agent_message", events.c.source == _PLANNER)
        .order_by(events.c.seq.desc())
        .limit(1)
    ).one_or_none()
    if row is None:
        return ""
    return str(row.body if row.body is not None else row.content or "")


def _store_verdict(connection: Connection, run: RowMapping, kind: Benchmark, score: Score) -> None:
    before = {
        "run_id": run["run_id"],
        "scorer_version": run["scorer_version"],
        "success": run["success"],
        "format_valid": run["format_valid"],
        "reason": run["score_reason"] or "",
    }
    connection.execute(insert(tables.scores).values(before).on_conflict_do_nothing())
    store_score(connection, run["run_id"], kind, score)
    connection.execute(
        update(tables.runs)
        .where(tables.runs.c.run_id == run["run_id"])
        .values(
            success=score.success,
            format_valid=score.format_valid,
            score_reason=clean(score.reason)[0][:_REASON_LENGTH],
            scorer_version=kind.scorer_version,
        )
    )
