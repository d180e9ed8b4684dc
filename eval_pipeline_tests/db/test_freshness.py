"""Which batches wait for their summary to be renewed."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import text, update

from eval_pipeline.db import tables
from eval_pipeline.db.freshness import stale_batches
from eval_pipeline.db.views import refresh_all
from eval_pipeline.ids import BatchTeam
from eval_pipeline_tests.conftest import Database
from eval_pipeline_tests.db.builders import NOON, Rows


def test_a_batch_is_stale_from_the_end_of_a_try_to_the_next_refresh(database: Database) -> None:
    with database.engine.begin() as connection:
        run_id = Rows(connection).one_run()
    assert stale_batches(database.engine) == []
    refresh_all(database.engine)
    with database.engine.begin() as connection:
        # its worker's clock is behind: the run seems to have ended before the refresh
        ended = {"status": "crashed", "error_class": "team", "finished_at": NOON - timedelta(days=1)}
        connection.execute(update(tables.runs).where(tables.runs.c.run_id == run_id).values(ended))
    (stale,) = stale_batches(database.engine)
    assert (stale.suite, stale.batch_team) == ("sample", BatchTeam("b1", "v1"))
    assert stale.newest == NOON - timedelta(days=1)
    refresh_all(database.engine)
    assert stale_batches(database.engine) == []


def test_a_second_try_that_crashes_makes_its_batch_stale_again(database: Database) -> None:
    with database.engine.begin() as connection:
        rows = Rows(connection)
        rows.team()
        rows.task()
        rows.batch()
        rows.cell()
        rows.crashed(live=False)
        rows.crashed(try_no=2)
    refresh_all(database.engine)
    with database.engine.begin() as connection:
        connection.execute(text("update runs set live = false where try_no = 2"))
        Rows(connection).crashed(try_no=3)
    assert [stale.batch_team.key for stale in stale_batches(database.engine)] == ["b1@v1"]


def test_the_longest_waiting_batch_comes_first(database: Database) -> None:
    with database.engine.begin() as connection:
        rows = Rows(connection)
        rows.team()
        rows.task()
        for number, batch_id in enumerate(("late", "early")):
            rows.batch(batch_id)
            rows.cell(batch_id=batch_id)
            rows.crashed(batch_id=batch_id, finished_at=NOON - timedelta(hours=number))
    assert [stale.batch_team.batch for stale in stale_batches(database.engine)] == ["early", "late"]
