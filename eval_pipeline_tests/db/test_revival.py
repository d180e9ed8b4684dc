"""PostgreSQL is killed under processes that go on: connections come back, leases too, and nobody is reaped for it."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.test_utils import create_run_for_test
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from eval_pipeline.assets.common import database as migrated
from eval_pipeline.automation import reaper
from eval_pipeline.automation.jobs import runs_job_name
from eval_pipeline.automation.reaper import Ours, reap
from eval_pipeline.db import embedded, postmaster
from eval_pipeline.db.engine import engine
from eval_pipeline.db.leases import LOOK_EVERY_S, is_free, lease
from eval_pipeline.definitions import build_defs
from eval_pipeline.home import packaged, pg_data_dir
from eval_pipeline.settings import load_settings
from eval_pipeline_tests.conftest import FOLDER


@pytest.fixture
def embedded_home(clean_environment: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home with an embedded server of its own, outside pytest's folder, which is closed to the server's user."""
    home = Path(tempfile.mkdtemp(dir=os.environ[FOLDER]))
    shutil.copy(packaged("dagster.yaml"), home)
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    monkeypatch.chdir(home)
    yield home
    embedded.stop(pg_data_dir())


def kill_server() -> None:
    pid = embedded.server(pg_data_dir()).pid
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


@pytest.mark.slow
def test_whoever_needs_a_killed_server_first_starts_it_again(embedded_home: Path) -> None:
    database = migrated(load_settings())
    with dg.DagsterInstance.get() as instance:
        instance.report_runless_asset_event(dg.AssetMaterialization("cell"))
        for restart in (kill_server, lambda: embedded.stop(pg_data_dir())):
            restart()
            with database.connect() as connection:
                assert connection.scalar(text("select count(*) from experiments")) == 5
            restart()
            # Dagster's pools hold connections that the restart has cut
            instance.report_runless_asset_event(dg.AssetMaterialization("cell"))
            instance.get_runs(limit=1)
            instance.all_instigator_state()
        assert instance.event_log_storage.get_asset_records([dg.AssetKey("cell")])

        # what the webserver asks of its pools must not take that away
        instance.optimize_for_webserver(statement_timeout=15_000, pool_recycle=3600, max_overflow=20)
        instance.get_runs(limit=1)
        kill_server()
        instance.get_runs(limit=1)


@pytest.mark.slow
def test_the_lease_of_a_living_run_outlives_the_server_and_the_run_is_not_reaped(embedded_home: Path) -> None:
    settings = load_settings()
    database = migrated(settings)
    defs = build_defs(settings)
    with dg.DagsterInstance.get() as instance:
        run = create_run_for_test(instance, job_name=runs_job_name("sample"), status=dg.DagsterRunStatus.STARTED)
        ours = Ours.of(defs.get_repository_def())
        with pytest.MonkeyPatch.context() as patch, lease(database, run.run_id):
            patch.setattr(reaper, "YOUNG_S", 0.0)
            assert reap(instance, database, ours, {}).suspects == {}
            kill_server()

            suspects: dict[str, float] = {}
            free_s = 0.0
            begun_s = time.monotonic()
            while time.monotonic() - begun_s < reaper.SURE_AFTER_S + 3:
                look = reap(instance, database, ours, suspects)
                suspects = look.suspects
                assert look.ended == []
                if suspects:
                    free_s = time.monotonic() - begun_s
                time.sleep(0.2)
            # taken again within two looks of its holder, with time to spare before it would count
            assert free_s <= 2 * LOOK_EVERY_S + 1
            assert suspects == {}
        with engine(settings).connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            assert is_free(connection, run.run_id)


def test_a_process_that_has_given_its_share_back_starts_no_server(embedded_home: Path) -> None:
    database, data_dir = migrated(load_settings()), pg_data_dir().resolve()
    found = postmaster.read(data_dir)
    assert found is not None
    # as at the end of a process, where threads may still be at work
    share = embedded._holds.pop(data_dir)
    os.kill(found.pid, signal.SIGKILL)
    os.waitpid(found.pid, 0)
    with pytest.raises(OperationalError):
        database.connect()
    embedded._holds[data_dir] = share
    with database.connect() as connection:
        assert connection.scalar(text("select 1")) == 1
