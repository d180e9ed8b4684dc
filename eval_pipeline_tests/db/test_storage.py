"""Dagster's instance as the shipped ``dagster.yaml`` makes it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest
from sqlalchemy import NullPool, create_engine, inspect, text

from eval_pipeline.db import embedded
from eval_pipeline.db.storage import HomeArtifactStorage, HomeComputeLogs, PooledPostgresStorage
from eval_pipeline.home import pg_data_dir
from eval_pipeline_tests.conftest import Database

PROJECT = Path(__file__).parents[2]


def materialize(instance: dg.DagsterInstance, number: int) -> None:
    instance.report_runless_asset_event(dg.AssetMaterialization("cell", metadata={"number": number}))


def test_an_event_is_written_and_read_back_by_another_instance(instance: dg.DagsterInstance) -> None:
    materialize(instance, 7)
    with dg.DagsterInstance.get() as another:
        found = another.get_latest_materialization_event(dg.AssetKey("cell"))
    assert found is not None
    assert found.asset_materialization is not None
    assert found.asset_materialization.metadata["number"].value == 7


def test_it_makes_its_tables_in_a_schema_of_their_own(empty_database: Database) -> None:
    dg.DagsterInstance.get().dispose()
    there = inspect(create_engine(empty_database.engine.url, poolclass=NullPool))
    assert {"runs", "event_logs", "alembic_version"} <= set(there.get_table_names(schema="dagster"))
    assert set(there.get_schema_names()) - {"information_schema", "dagster", "public"} == set()
    assert there.get_table_names(schema="public") == []


def sessions(database: Database) -> int:
    # a session is counted with what it has done when it ends or has been idle for a moment
    watcher = create_engine(database.engine.url, poolclass=NullPool)
    with watcher.connect() as connection:
        connection.execute(text("select pg_stat_force_next_flush()"))
        statement = text("select sessions from pg_stat_database where datname = current_database()")
        return int(connection.scalar(statement) or 0)


def test_writing_events_opens_no_further_connections(instance: dg.DagsterInstance, database: Database) -> None:
    materialize(instance, 0)
    before = sessions(database)
    for number in range(1, 101):
        materialize(instance, number)
    # the two that look are counted too
    assert sessions(database) - before <= 4


def test_its_files_are_below_the_homes_state_folder(instance: dg.DagsterInstance, clean_environment: Path) -> None:
    state = clean_environment / ".eval_pipeline" / "dagster"
    assert instance.storage_directory() == str(state / "storage")
    logs = instance.compute_log_manager
    assert isinstance(logs, HomeComputeLogs)
    with instance.compute_log_manager.capture_logs(["run", "compute_logs", "step"]):
        print("시작")
    assert (state / "storage" / "run" / "compute_logs" / "step.out").read_text() == "시작\n"
    assert sorted(path.name for path in clean_environment.iterdir()) == [
        ".eval_pipeline",
        "dagster.yaml",
        "workspace.yaml",
    ]


def test_a_pool_limit_can_be_set(instance: dg.DagsterInstance) -> None:
    instance.event_log_storage.set_concurrency_slots("llm", 2)
    assert instance.event_log_storage.get_concurrency_info("llm").slot_count == 2


def test_the_shipped_file_sets_what_is_promised(instance: dg.DagsterInstance) -> None:
    assert not instance.telemetry_enabled
    assert not instance.nux_enabled
    assert instance.run_monitoring_enabled
    assert not instance.run_retries_enabled
    concurrency = instance.get_concurrency_config()
    assert concurrency.run_queue_config is not None
    assert concurrency.run_queue_config.max_concurrent_runs == 4
    assert concurrency.pool_config.default_pool_limit is None


@pytest.mark.parametrize("class_", [PooledPostgresStorage, HomeArtifactStorage, HomeComputeLogs])
def test_the_classes_that_the_file_names_take_no_configuration(class_: type) -> None:
    assert class_.config_type() == {}  # type: ignore[attr-defined]


def test_four_processes_at_once_make_the_tables_of_the_embedded_server(
    folder: Path, clean_environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With nothing but a home folder: this is how ``dagster dev`` begins on a fresh machine."""
    (folder / "dagster.yaml").write_bytes((clean_environment / "dagster.yaml").read_bytes())
    monkeypatch.setenv("DAGSTER_HOME", str(folder))
    program = "import dagster as dg\nwith dg.DagsterInstance.get() as i: print(i.get_runs_count())\n"
    environment = os.environ | {"PYTHONPATH": str(PROJECT)}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    ended = [process.communicate(timeout=180) for process in started]
    assert [process.returncode for process in started] == [0] * 4, ended
    assert [out for out, _ in ended] == ["0\n"] * 4
    # the last of them took the server with it
    assert not embedded.stop(pg_data_dir())


def test_a_server_that_is_away_is_said_in_one_line(clean_environment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVAL_PG_DSN", "postgresql://me:p4ss@127.0.0.1:1/evals")
    with pytest.raises(Exception, match=r"PostgreSQL at 127\.0\.0\.1:1/evals cannot be used") as caught:
        dg.DagsterInstance.get()
    assert "p4ss" not in str(caught.value)
