"""Nightly batches: one a night and team, whatever is asked twice, with summaries and a comparison that follow."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pytest
from sqlalchemy import select

from eval_pipeline.assets.partitions import Family
from eval_pipeline.automation.nightly import batch_of
from eval_pipeline.db import tables
from eval_pipeline.db.checks import run_checks
from eval_pipeline.db.totals import batch_totals
from eval_pipeline.errors import SuiteError
from eval_pipeline.settings import load_settings
from eval_pipeline.suites import Nightly, load_suites
from eval_pipeline_tests.automation.daemon import Daemon
from eval_pipeline_tests.conftest import Database
from eval_pipeline_tests.endpoint_suite import CALLS_OF_A_RUN, SUITE, TEAM, Endpoint, endpoint_with

TASKS = 3
NIGHT = f"{SUITE}_nightly"
NIGHTLY = f"    nightly: {{cron: '0 2 * * *', time_zone: Asia/Seoul, teams: [{TEAM}]}}"
# two in the morning in Seoul is the evening before in UTC
FIRST = datetime(2026, 11, 30, 17, tzinfo=UTC)
SECOND = datetime(2026, 12, 1, 17, tzinfo=UTC)


@pytest.fixture
def endpoint(database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    with endpoint_with(tmp_path, TASKS, more=NIGHTLY) as endpoint:
        for name, value in endpoint.environment.items():
            monkeypatch.setenv(name, value)
        yield endpoint


def test_two_nights_are_two_batches_with_summaries_and_one_comparison_whatever_is_repeated(
    instance: dg.DagsterInstance, database: Database, endpoint: Endpoint
) -> None:
    daemon = Daemon(instance)
    family = Family(SUITE)
    for moment in (FIRST, FIRST, SECOND, SECOND, FIRST):
        daemon.tick(NIGHT, moment)
        daemon.look("refresh_summaries")
        daemon.look("compare_nights")

    keys = [f"nightly-2026-12-01@{TEAM}", f"nightly-2026-12-02@{TEAM}"]
    assert instance.get_dynamic_partitions(family.batch_team_name) == keys
    with database.engine.connect() as connection:
        totals = {one.batch_team.key: one for one in batch_totals(connection)}
        summarised = connection.exec_driver_sql("select batch_id, completed from mv_batch_summary order by 1").all()
    assert list(totals) == keys
    assert all((one.planned, one.completed, one.crashed) == (TASKS, TASKS, 0) for one in totals.values())
    assert summarised == [("nightly-2026-12-01", TASKS), ("nightly-2026-12-02", TASKS)]
    assert len(endpoint.solver.asked) == 2 * TASKS * CALLS_OF_A_RUN
    assert instance.get_dynamic_partitions(family.comparison_name) == [f"{keys[0]}>{keys[1]}"]
    compared = instance.fetch_materializations(family.key("comparisons"), limit=10).records
    assert [record.partition_key for record in compared] == [f"{keys[0]}>{keys[1]}"]
    assert all(check.passed for check in run_checks(database.engine))


def test_the_same_night_on_another_machine_costs_nothing(
    instance: dg.DagsterInstance, database: Database, endpoint: Endpoint
) -> None:
    """A daemon that has forgotten what it requested: cells that are done are skipped."""
    Daemon(instance).tick(NIGHT, FIRST)
    asked = len(endpoint.solver.asked)
    again = Daemon(instance).tick(NIGHT, FIRST)
    assert not isinstance(again, dg.SkipReason)
    assert len(again) == 1
    assert len(endpoint.solver.asked) == asked
    with database.engine.connect() as connection:
        assert len(connection.execute(select(tables.runs.c.run_id)).all()) == TASKS


def test_a_key_that_had_to_stay_is_not_launched(
    instance: dg.DagsterInstance, database: Database, endpoint: Endpoint
) -> None:
    """It stands between the suite's own, so one range cannot hold them all."""
    names = Family(SUITE)
    instance.add_dynamic_partitions(names.task_attempt_name, ["task-000#1", "task-gone#1", "task-001#1"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("eval_pipeline.assets.dataset.backfill_under_way", lambda _instance: True)
        requests = Daemon(instance).tick(NIGHT, FIRST)
    assert not isinstance(requests, dg.SkipReason)
    assert len(requests) == 2
    assert len({request.run_key for request in requests}) == 2
    with database.engine.connect() as connection:
        done = connection.execute(select(tables.runs.c.task_id).where(tables.runs.c.status == "completed")).scalars()
        assert sorted(done) == ["task-000", "task-001", "task-002"]


def test_a_suite_that_cannot_be_loaded_says_so_and_requests_nothing(
    instance: dg.DagsterInstance, database: Database, endpoint: Endpoint, tmp_path: Path
) -> None:
    daemon = Daemon(instance)
    (tmp_path / "tasks" / "metadata.jsonl").write_text("no JSON", encoding="utf-8")
    found = daemon.tick(NIGHT, FIRST)
    assert isinstance(found, dg.SkipReason)
    assert "metadata.jsonl" in str(found.skip_message)
    assert instance.get_dynamic_partitions(Family(SUITE).batch_team_name) == []


@pytest.mark.parametrize(
    ("moment", "zone", "label", "batch"),
    [
        (datetime(2026, 11, 30, 17, tzinfo=UTC), "Asia/Seoul", None, "nightly-2026-12-01"),
        (datetime(2026, 11, 30, 17, tzinfo=UTC), "UTC", None, "nightly-2026-11-30"),
        (datetime(2026, 3, 29, 1, 30, tzinfo=UTC), "Europe/Berlin", "small", "nightly-2026-03-29-small"),
    ],
)
def test_a_batch_is_named_by_the_date_of_its_own_time_zone(
    moment: datetime, zone: str, label: str | None, batch: str
) -> None:
    assert batch_of(moment, Nightly("0 2 * * *", zone, (TEAM,), label)) == batch


def _declared(folder: Path, first: str, second: str) -> None:
    folder.joinpath("suites.yaml").write_text(
        f"""
suites:
  one: {{benchmark: gaia, title: One, nightly: {{cron: "0 2 * * *", teams: [{TEAM}]{first}}}}}
  two: {{benchmark: gaia, title: Two, nightly: {{cron: "0 3 * * *", teams: [{TEAM}]{second}}}}}
""",
        encoding="utf-8",
    )


def test_two_suites_cannot_have_nightly_batches_of_one_name(clean_environment: Path) -> None:
    _declared(clean_environment, "", "")
    with pytest.raises(SuiteError, match=r"'two': nightly: .*label") as refusal:
        load_suites(load_settings())
    assert "\n" not in str(refusal.value)
    _declared(clean_environment, "", ", label: two")
    two = load_suites(load_settings())["two"].nightly
    assert two is not None
    assert two.label == "two"
    _declared(clean_environment, ", label: a|b", "")
    with pytest.raises(SuiteError, match="label"):
        load_suites(load_settings())
