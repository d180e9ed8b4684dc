"""What benchmarks plant is what the product could have left behind."""

from __future__ import annotations

from sqlalchemy import text

from eval_pipeline.db.checks import run_checks
from eval_pipeline.db.totals import batch_totals
from eval_pipeline_tests.bench.filling import EVENTS, TEAMS, batch_teams, plant, plant_history
from eval_pipeline_tests.conftest import Database

PER_BATCH = text("""
select
    count(distinct run.run_id) as tries,
    count(*) filter (where event.message_type = 'tool_error') as errors,
    max(event.seq) + 1 as longest,
    count(distinct event.content) as contents,
    count(event.content_sha256) as cut
from runs as run
join events as event using (run_id)
where run.batch_id = :batch and run.team_id = :team
""")


def test_a_planted_batch_passes_every_check_and_has_what_real_ones_have(database: Database) -> None:
    first, *others = batch_teams("h", 3)
    plant(database.engine, [first, *others], tasks=50, attempts=2)
    assert [(result.check.name, result.count) for result in run_checks(database.engine) if result.count] == []
    with database.engine.connect() as connection:
        totals = {one.batch_team: one for one in batch_totals(connection)}
        found = connection.execute(PER_BATCH, {"batch": first.batch, "team": first.team}).one()
        outside = connection.scalar(text("select count(*) from only events_rest"))
    assert set(totals) == {first, *others}
    assert totals[first].planned == totals[first].runs == 100
    assert 0 < totals[first].crashed < 10
    assert 30 < totals[first].successes < 90
    assert found.tries > 100
    assert found.longest == EVENTS
    assert min(found.errors, found.cut) > 10
    assert found.contents > 200
    assert outside == 0


def test_a_history_grows_by_what_is_missing_of_it(database: Database) -> None:
    there = plant_history(database.engine, 4_000)
    assert plant_history(database.engine, 3_000, there=there) == there == 1
    assert plant_history(database.engine, 8_000, there=there) == 2
    with database.engine.connect() as connection:
        events = connection.scalar(text("select count(*) from events"))
        assert [one.batch_team.team for one in batch_totals(connection)] == list(TEAMS[:2])
    assert events is not None
    assert 7_000 < events < 9_000
