"""Scoring again: the present scorer's verdict becomes the run's, the old one stays, and no model is called."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from sqlalchemy import func, select

from eval_pipeline.benchmarks import registry
from eval_pipeline.benchmarks.base import DEFAULTS, Answer, Score, Task
from eval_pipeline.benchmarks.gaia import Gaia
from eval_pipeline.db import tables
from eval_pipeline.db.checks import run_checks
from eval_pipeline.execution.rescoring import rescore
from eval_pipeline_tests.conftest import Database
from eval_pipeline_tests.execution.launching import CAFE, TILES, opened, run, tries


class Stricter(Gaia):
    """A later scorer, which takes nothing for right but whole numbers."""

    scorer_version = "gaia-2"

    def score(self, task: Task, answer: Answer, thresholds: Mapping[str, float] = DEFAULTS) -> Score:
        whole = (answer.final or "").isdigit()
        return Score(whole, answer.final is not None, {"length": float(len(answer.full_text))}, "whole numbers only")


@pytest.fixture
async def scored(database: Database):  # type: ignore[no-untyped-def]
    launch = opened(database, "first@v5-multitool")
    await run(launch, [CAFE, TILES])
    return launch


async def test_the_same_scorer_says_the_same(database: Database, scored) -> None:  # type: ignore[no-untyped-def]
    before = [(row.success, row.score_reason) for cell in (CAFE, TILES) for row in tries(database, cell)]
    done = rescore(database.engine, scored.batch_team, scored.loaded)
    assert (done.scored, done.gained, done.lost, done.left_out) == (2, (), (), 0)
    assert [(row.success, row.score_reason) for cell in (CAFE, TILES) for row in tries(database, cell)] == before


async def test_a_later_scorer_changes_the_verdict_and_keeps_the_old_one(
    database: Database,
    scored,  # type: ignore[no-untyped-def]
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with database.engine.connect() as connection:
        calls = connection.execute(select(func.count()).select_from(tables.model_calls)).scalar_one()
    monkeypatch.setitem(registry.BENCHMARKS, "gaia", Stricter())
    done = rescore(database.engine, scored.batch_team, scored.loaded)

    (cafe,), (tiles,) = tries(database, CAFE), tries(database, TILES)
    assert done.lost == (cafe.run_id,)
    assert (cafe.success, cafe.scorer_version, cafe.score_reason) == (False, "gaia-2", "whole numbers only")
    assert tiles.success
    with database.engine.connect() as connection:
        kept = connection.execute(
            select(tables.scores.c.scorer_version, tables.scores.c.success)
            .where(tables.scores.c.run_id == cafe.run_id)
            .order_by(tables.scores.c.scorer_version)
        ).all()
        metrics = set(
            connection.execute(
                select(tables.run_metrics.c.name, tables.run_metrics.c.scorer_version).where(
                    tables.run_metrics.c.run_id == cafe.run_id
                )
            ).all()
        )
        after = connection.execute(select(func.count()).select_from(tables.model_calls)).scalar_one()
    assert [tuple(row) for row in kept] == [("gaia-1", True), ("gaia-2", False)]
    assert {("official_success", "gaia-1"), ("length", "gaia-2")} <= {tuple(row) for row in metrics}
    assert after == calls
    assert all(check.count == 0 for check in run_checks(database.engine))


async def test_grounding_leaves_every_verdict_alone(
    database: Database,
    scored,  # type: ignore[no-untyped-def]
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(registry.BENCHMARKS, "gaia", Stricter())
    rescore(database.engine, scored.batch_team, scored.loaded, verdicts=False)
    (cafe,) = tries(database, CAFE)
    assert (cafe.success, cafe.scorer_version) == (True, "gaia-1")
