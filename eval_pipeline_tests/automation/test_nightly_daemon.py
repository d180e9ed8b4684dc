"""Two nights under the real daemon, whose clock is moved: two batches, their summaries, one comparison, each once."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import dagster as dg
import psutil
import pytest
from sqlalchemy import text

from eval_pipeline.assets.partitions import Family
from eval_pipeline.db.checks import run_checks
from eval_pipeline_tests.automation.machine import wait_until
from eval_pipeline_tests.conftest import Database
from eval_pipeline_tests.endpoint_suite import CALLS_OF_A_RUN, SUITE, TEAM, Endpoint, endpoint_with
from eval_pipeline_tests.processes import start

TASKS = 3
CLOCK = "EVAL_TEST_CLOCK"
NIGHTLY = f"    nightly: {{cron: '0 2 * * *', time_zone: Asia/Seoul, teams: [{TEAM}]}}"
EVE = datetime(2026, 12, 1, 1, 59, 40, tzinfo=ZoneInfo("Asia/Seoul"))
DAY_S = 86_400.0
# Dagster asks these two functions for the time, so that its own tests can move it
DAEMON = f"""
import os, sys, time
from datetime import datetime, timedelta, timezone
from pathlib import Path
import dagster._time as moved
from dagster._daemon.cli import main

def ahead_s():
    return float(Path(os.environ[{CLOCK!r}]).read_text())

moved._mockable_get_current_timestamp = lambda: time.time() + ahead_s()
moved._mockable_get_current_datetime = lambda: datetime.now(timezone.utc) + timedelta(seconds=ahead_s())
sys.argv = ["dagster-daemon", "run", "-w", "workspace.yaml"]
main()
"""

pytestmark = pytest.mark.slow


@pytest.fixture
def endpoint(database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    with endpoint_with(tmp_path, TASKS, more=NIGHTLY) as endpoint:
        for name, value in endpoint.environment.items():
            monkeypatch.setenv(name, value)
        yield endpoint


class Clock:
    """What the daemon adds to the time, in a file that it reads each time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.ahead_s = EVE.timestamp() - time.time()
        self.move(0)

    def move(self, seconds: float) -> None:
        self.ahead_s += seconds
        new = self._path.with_suffix(".new")
        new.write_text(str(self.ahead_s))
        new.replace(self._path)


def test_two_nights_of_the_daemon_are_two_batches_and_one_comparison(
    instance: dg.DagsterInstance,
    database: Database,
    endpoint: Endpoint,
    clean_environment: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(CLOCK, str(tmp_path / "clock"))
    clock = Clock(tmp_path / "clock")
    family = Family(SUITE)
    keys = [f"nightly-2026-12-01@{TEAM}", f"nightly-2026-12-02@{TEAM}"]

    def summarised() -> list[str]:
        with database.engine.connect() as connection:
            rows = connection.execute(text("select batch_id || '@' || team_id, completed from mv_batch_summary"))
            return sorted(key for key, completed in rows if completed == TASKS)

    def compared() -> list[str | None]:
        records = instance.fetch_materializations(family.key("comparisons"), limit=10).records
        return [record.partition_key for record in records]

    daemon = start("-c", DAEMON, cwd=clean_environment, heard=False)
    try:
        wait_until(lambda: summarised() == keys[:1], "the first night has its summary")
        clock.move(DAY_S)
        wait_until(lambda: summarised() == keys, "the second night has its summary")
        wait_until(lambda: compared() == [f"{keys[0]}>{keys[1]}"], "the two nights are compared")
        # some more ticks of everything
        clock.move(120)
        time.sleep(20)
    finally:
        for process in (*psutil.Process(daemon.pid).children(recursive=True), daemon):
            with contextlib.suppress(psutil.Error):
                process.kill()
        daemon.wait(timeout=60)

    assert instance.get_dynamic_partitions(family.batch_team_name) == keys
    assert compared() == [f"{keys[0]}>{keys[1]}"]
    assert len(endpoint.solver.asked) == 2 * TASKS * CALLS_OF_A_RUN
    launched = instance.get_runs(dg.RunsFilter(job_name=f"{SUITE}_runs"))
    assert [run.status for run in launched] == [dg.DagsterRunStatus.SUCCESS] * 2
    assert all(check.passed for check in run_checks(database.engine))
