"""Flags stored runs and keeps the flags, under the rules' version. No verdict is changed and no model is called."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import Connection, column, delete, insert, select, table

from eval_pipeline.contamination.rules import DECIDED, VERSION, flags
from eval_pipeline.contamination.scene import World, scenes, world
from eval_pipeline.db import tables
from eval_pipeline.db.examinations import examined, unexamined
from eval_pipeline.errors import EvalPipelineError
from eval_pipeline.home import stage_dir
from eval_pipeline.ids import BatchTeam
from eval_pipeline.settings import Settings
from eval_pipeline.suites import data_dir, load_suites

EXAMINER = "contamination"
_AT_ONCE = 50


class ContaminationError(EvalPipelineError):
    """Flagged runs cannot be left out, since not every run has been looked at."""


@dataclass(frozen=True, slots=True)
class Places:
    """Where this installation keeps what no run should see: absolute paths."""

    stage_dir: str
    key_folders: tuple[str, ...]


def places(settings: Settings) -> Places:
    """The places under ``settings``: the data of every suite that has some; those of other machines are unknown."""
    folders = set()
    for suite in load_suites(settings).values():
        with contextlib.suppress(EvalPipelineError):
            folders.add(str(data_dir(suite, settings).absolute()))
    return Places(str(stage_dir(settings)), tuple(sorted(folders)))


def flag_batch(
    connection: Connection, batch_team: BatchTeam, known: Places, *, again: bool = False
) -> dict[str, Counter[str]]:
    """Flag every ended live try of ``batch_team`` that this version has not looked at; with ``again`` all of them.

    Returns how many runs each rule has flagged, now or before, by confidence.
    """
    run_ids = unexamined(connection, batch_team, EXAMINER, VERSION, again=again)
    if run_ids:
        surroundings = world(connection, _benchmark(connection, batch_team), known.stage_dir, known.key_folders)
        for begin in range(0, len(run_ids), _AT_ONCE):
            _flag(connection, surroundings, run_ids[begin : begin + _AT_ONCE])
        examined(connection, run_ids, EXAMINER, VERSION)
    return _counts(connection, batch_team)


def flagged_runs(connection: Connection, batch_team: BatchTeam) -> frozenset[UUID]:
    """The runs of ``batch_team`` that are left out on request: those with a flag that is decided.

    Raises:
        ContaminationError: a run has not been looked at by this version of the rules.
    """
    waiting = unexamined(connection, batch_team, EXAMINER, VERSION)
    if waiting:
        raise ContaminationError(
            f"{len(waiting)} runs of {batch_team.key} have not been looked at for contamination; "
            f"run eval-pipeline contamination --batch {batch_team.key} first"
        )
    view = table("v_contamination", *(column(name) for name in ("run_id", "batch_id", "team_id", "confidence")))
    query = select(view.c.run_id).where(
        view.c.batch_id == batch_team.batch, view.c.team_id == batch_team.team, view.c.confidence == DECIDED
    )
    return frozenset(connection.execute(query).scalars())


def _benchmark(connection: Connection, batch_team: BatchTeam) -> str:
    batches = tables.batches
    query = select(batches.c.benchmark).where(
        batches.c.batch_id == batch_team.batch, batches.c.team_id == batch_team.team
    )
    return str(connection.execute(query).scalar_one())


def _flag(connection: Connection, surroundings: World, run_ids: Sequence[UUID]) -> None:
    stored = tables.contamination_flags
    connection.execute(delete(stored).where(stored.c.run_id.in_(run_ids), stored.c.version == VERSION))
    rows = [
        {
            "run_id": scene.run_id,
            "rule": flag.rule,
            "version": VERSION,
            "confidence": flag.confidence,
            "seqs": list(flag.seqs),
            "detail": flag.detail[:500],
        }
        for scene in scenes(connection, surroundings, run_ids)
        for flag in flags(scene)
    ]
    if rows:
        connection.execute(insert(stored), rows)


def _counts(connection: Connection, batch_team: BatchTeam) -> dict[str, Counter[str]]:
    view = table("v_contamination", *(column(name) for name in ("batch_id", "team_id", "rule", "confidence")))
    query = select(view.c.confidence, view.c.rule).where(
        view.c.batch_id == batch_team.batch, view.c.team_id == batch_team.team
    )
    counts: dict[str, Counter[str]] = {}
    for confidence, rule in connection.execute(query):
        counts.setdefault(rule, Counter())[confidence] += 1
    return counts
