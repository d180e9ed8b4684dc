"""Materials of reports for tests that need no database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from eval_pipeline.db.accounting import Accounting
from eval_pipeline.ids import BatchTeam
from eval_pipeline.reporting.material import Examined, Figures, Material, Run
from eval_pipeline.reporting.reading import NOTHING_PLANNED
from eval_pipeline_tests.db.builders import NOON
from eval_pipeline_tests.reporting.test_transcripts import a_try


def figures_of(runs: Sequence[Run], level: int | None = None) -> Figures:
    """The figures that the view would have for these runs, as far as pages need them."""
    return replace(
        NOTHING_PLANNED,
        level=level,
        planned=len(runs),
        runs=len(runs),
        tries=sum(len(run.tries) for run in runs),
        completed=sum(run.completed for run in runs),
        crashed=sum(run.verdict == "crashed" for run in runs),
        running=sum(run.verdict == "running" for run in runs),
        successes=sum(bool(run.success) for run in runs),
    )


def material_of(*runs: Run, **changes: Any) -> Material:
    """A material of these runs with as little else as it takes."""
    levels = sorted({run.level for run in runs})
    plain = Material(
        batch_team=BatchTeam("b1", "v2"),
        suite="sample",
        benchmark="gaia",
        suite_hash="a" * 64,
        contract_hash="b" * 64,
        prompt_bundle_hash="c" * 64,
        parent="v1",
        layer="prompt",
        change="The planner is told more.",
        model="model-one",
        scripted=False,
        read_at=NOON + timedelta(hours=1),
        created_at=NOON,
        figures=figures_of(runs),
        levels=tuple(figures_of([run for run in runs if run.level == level], level) for level in levels),
        passk=(),
        tools=(),
        accounting=Accounting((), (), ()),
        examined=Examined(0, 0, 0),
        contract=(),
        circumstances=(),
        runs=runs,
        no_contrast="There is no baseline.",
    )
    return replace(plain, **changes)


def with_try(run: Run, number: int = 1, **changes: Any) -> Run:
    """``run`` with a try of its own."""
    return replace(run, run_id=UUID(int=number), tries=(replace(a_try(), run_id=UUID(int=number), **changes),))
