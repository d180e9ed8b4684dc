"""Labels of a model beside those of the rules: which runs are asked about, within which bounds, and keeping the labels.

A judge is not validated, so its labels are signals; they never change what a run is filed under. How the endpoint is
asked belongs to :mod:`eval_pipeline.agents.judge`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Protocol
from uuid import UUID

from sqlalchemy import Connection, Engine, delete, insert, select

from eval_pipeline.benchmarks.json_answer import NotJsonError
from eval_pipeline.db import tables
from eval_pipeline.db.examinations import examined, unexamined
from eval_pipeline.errors import JudgeError
from eval_pipeline.failures.judge_prompt import INSTRUCTIONS, labels, transcript, version
from eval_pipeline.failures.rules import Signal
from eval_pipeline.failures.trace import Trace, traces
from eval_pipeline.ids import BatchTeam
from eval_pipeline.tracing.masking import Masker
from eval_pipeline.tracing.text import clean

BY_JUDGE = "judge"


class Judge(Protocol):
    """A model that can be asked about one run."""

    model: str

    async def ask(self, instructions: str, text: str) -> tuple[str, int | None]:
        """The answer, and the tokens that it took in both directions (``None``: the endpoint does not say).

        Raises:
            JudgeError: no answer came.
        """
        ...


@dataclass(slots=True)
class Judged:
    """What became of asking. ``left`` runs are still to be asked about, ``stopped`` says in one line why."""

    version: str
    asked: int = 0
    unreadable: int = 0
    left: int = 0
    tokens: int = 0
    stopped: str | None = None
    modes: Counter[str] = field(default_factory=Counter)


async def judge_batch(
    engine: Engine,
    batch_team: BatchTeam,
    judge: Judge,
    masker: Masker,
    *,
    most_runs: int,
    most_tokens: int,
    again: bool = False,
) -> Judged:
    """Ask ``judge`` about the wrong runs of ``batch_team`` that this version has not labelled, one after another.

    Every answer is kept at once. Asking ends after ``most_runs`` runs, when ``most_tokens`` are spent, or at the first
    answer that does not come. An answer that cannot be read leaves its run to be asked about again. Where the endpoint
    does not say what an answer took, two characters are counted as a token.
    """
    done = Judged(version(judge.model))
    with engine.begin() as connection:
        run_ids = _wrong(connection, batch_team, done.version, again=again)
    for run_id in run_ids[:most_runs]:
        if done.tokens >= most_tokens:
            done.stopped = f"{done.tokens:,} tokens are spent, {most_tokens:,} were allowed"
            break
        with engine.connect() as connection:
            trace = next(iter(traces(connection, [run_id])))
        text = transcript(trace)
        try:
            answer, tokens = await judge.ask(INSTRUCTIONS, text)
        except JudgeError as error:
            done.stopped = str(error)
            break
        done.asked += 1
        done.tokens += (len(INSTRUCTIONS) + len(text) + len(answer)) // 2 if tokens is None else tokens
        try:
            found = labels(answer, trace)
        except NotJsonError:
            done.unreadable += 1
            continue
        with engine.begin() as connection:
            _keep(connection, trace, [_masked(one, masker) for one in found], done.version)
        done.modes.update(one.mode for one in found)
    done.left = len(run_ids) - done.asked + done.unreadable
    return done


def _wrong(connection: Connection, batch_team: BatchTeam, judge_version: str, *, again: bool) -> list[UUID]:
    runs = tables.runs
    waiting = unexamined(connection, batch_team, BY_JUDGE, judge_version, again=again)
    wrong = set(
        connection.execute(select(runs.c.run_id).where(runs.c.run_id.in_(waiting), runs.c.success.is_(False))).scalars()
    )
    return [run_id for run_id in waiting if run_id in wrong]


def _masked(label: Signal, masker: Masker) -> Signal:
    return replace(label, detail=masker.text(clean(label.detail)[0])[:500])


def _keep(connection: Connection, trace: Trace, found: list[Signal], judge_version: str) -> None:
    stored = tables.failure_signals
    connection.execute(
        delete(stored).where(
            stored.c.run_id == trace.run_id, stored.c.found_by == BY_JUDGE, stored.c.version == judge_version
        )
    )
    rows = [
        {
            "run_id": trace.run_id,
            "mode": one.mode,
            "found_by": BY_JUDGE,
            "version": judge_version,
            "confidence": one.confidence,
            "seqs": list(one.seqs),
            "detail": one.detail,
        }
        for one in found
    ]
    if rows:
        connection.execute(insert(stored), rows)
    examined(connection, [trace.run_id], BY_JUDGE, judge_version)
