"""Which batch a batch is compared with when nobody names one."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from eval_pipeline.comparison.baseline import default_baseline
from eval_pipeline.ids import BatchTeam
from eval_pipeline_tests.conftest import Database
from eval_pipeline_tests.db.builders import NOON, Rows

OURS = BatchTeam("night-2", "v2")


@pytest.fixture
def rows(database: Database) -> Iterator[Rows]:
    with database.engine.connect() as connection:
        made = Rows(connection)
        made.team("v1")
        made.team("v2", parent_id="v1")
        made.task()
        yield made


def batch(rows: Rows, batch_id: str, team: str = "v1", day: int = 1, *, completed: bool = True, **fields: Any) -> None:
    """A batch of one task; ``fields`` are of its contract."""
    contract = {"suite.hash": "s", "seed": 1, "team": team, "team.contract_hash": f"hash of {team}", **fields}
    rows.batch(batch_id, team, contract=contract, created_at=NOON + timedelta(days=day))
    rows.cell(batch_id=batch_id, team_id=team)
    if completed:
        rows.completed(batch_id=batch_id, team_id=team)
    else:
        rows.crashed(batch_id=batch_id, team_id=team)


def test_it_is_the_parent_teams_latest_batch_whatever_its_id(rows: Rows) -> None:
    batch(rows, "z-old", day=1)
    batch(rows, "a-new", day=3)
    batch(rows, OURS.batch, "v2", day=2)
    assert default_baseline(rows.connection, OURS) == BatchTeam("a-new", "v1")


def test_a_contract_that_differs_in_more_than_the_team_is_passed_over(rows: Rows) -> None:
    batch(rows, "fits", day=1)
    batch(rows, "other-seed", day=2, seed=2)
    batch(rows, "other-tasks", day=3, **{"suite.hash": "t"})
    batch(rows, "one-field-more", day=4, llm_max_tokens=100)
    batch(rows, OURS.batch, "v2", day=5)
    assert default_baseline(rows.connection, OURS) == BatchTeam("fits", "v1")


def test_a_batch_without_a_completed_run_cannot_be_compared_with(rows: Rows) -> None:
    batch(rows, "crashed", day=2, completed=False)
    batch(rows, "done", day=1)
    batch(rows, OURS.batch, "v2", day=3)
    assert default_baseline(rows.connection, OURS) == BatchTeam("done", "v1")


def test_a_team_without_a_parent_and_one_whose_parent_never_ran_have_none(rows: Rows) -> None:
    batch(rows, OURS.batch, "v2")
    assert default_baseline(rows.connection, OURS) is None
    batch(rows, "b", "v1")
    assert default_baseline(rows.connection, BatchTeam("b", "v1")) is None


def test_a_batch_of_another_team_or_of_its_own_is_no_baseline(rows: Rows) -> None:
    rows.team("v9")
    batch(rows, "b", "v9")
    batch(rows, "earlier", "v2")
    batch(rows, OURS.batch, "v2", day=2)
    assert default_baseline(rows.connection, OURS) is None


def test_a_batch_that_is_not_there_has_none(rows: Rows) -> None:
    assert default_baseline(rows.connection, OURS) is None
