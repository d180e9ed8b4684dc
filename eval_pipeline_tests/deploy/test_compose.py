"""deploy/compose.yaml: what it asks for is there, nothing is open or guessed, and its commands really come up."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml
from dagster._core.workspace.load_target import WorkspaceFileTarget
from sqlalchemy import make_url, text

from eval_pipeline.db import embedded, postgres_binaries
from eval_pipeline.db.storage import PooledPostgresStorage
from eval_pipeline.settings import Settings, env_name
from eval_pipeline_tests import processes
from eval_pipeline_tests.conftest import Database
from eval_pipeline_tests.deploy.chart import ROOT

DEPLOY = ROOT / "deploy"
TEXT = (DEPLOY / "compose.yaml").read_text(encoding="utf-8")
COMPOSE: dict[str, Any] = yaml.safe_load(TEXT)
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = ("init", "code-server", "webserver", "daemon")
ENDING = {"init", "grafana-role"}
"""Services that do one thing and end: what waits for them waits for that, so that they need no health check."""
_VARIABLE = re.compile(r"\$\{(\w+)(?:(:[-?])([^}]*))?\}")
PROGRAMS = f"{Path(sys.executable).parent}:{os.environ['PATH']}"


def with_defaults(written: str) -> str:
    return _VARIABLE.sub(lambda found: (found[3] if found[2] == ":-" else "x") or "", written)


def test_every_variable_is_in_the_example_and_those_without_a_default_stop_the_start() -> None:
    example = (DEPLOY / ".env.example").read_text(encoding="utf-8")
    needed = set(re.findall(r"^([A-Z_]+)=", example, re.MULTILINE))
    optional = dict(re.findall(r"^#([A-Z_]+)=(.*)$", example, re.MULTILINE))
    uses = [(name, how, default) for name, how, default in _VARIABLE.findall(TEXT)]
    assert {name for name, how, _ in uses if how == ":?"} == needed
    assert {name: default for name, how, default in uses if how == ":-"} == optional
    assert all(how for _, how, _ in uses)
    # a command of ours that is run in this folder reads its .env
    assert not any(name.startswith("EVAL_") for name, _, _ in uses)


def test_no_password_is_written_down() -> None:
    secret = re.compile(r"PASSWORD|SECRET|KEY|DSN|TOKEN")
    found = {
        name: str(value)
        for service in SERVICES.values()
        for name, value in service.get("environment", {}).items()
        if secret.search(name)
    }
    assert set(found) == {
        "POSTGRES_PASSWORD", "EVAL_PG_DSN", "PGPASSWORD", "GRAFANA_PG_PASSWORD", "GF_SECURITY_ADMIN_PASSWORD"
    }  # fmt: skip
    assert all(re.search(r"\$\{\w+:\?[^}]+\}", value) for value in found.values()), found


def test_every_service_tells_how_it_is_or_ends() -> None:
    for name, service in SERVICES.items():
        assert ("healthcheck" in service) != (name in ENDING), name
        assert service["restart"] == ("no" if name in ENDING else "unless-stopped"), name


def test_what_a_service_waits_for_can_come_true() -> None:
    for name, service in SERVICES.items():
        for other, how in service.get("depends_on", {}).items():
            expected = "service_completed_successfully" if other in ENDING else "service_healthy"
            assert how["condition"] == expected, f"{name} waits for {other}"
    waits = {name: set(service.get("depends_on", {})) for name, service in SERVICES.items()}
    assert set().union(*waits.values()) <= set(SERVICES)
    begun: set[str] = set()
    while ready := {name for name, others in waits.items() if name not in begun and others <= begun}:
        begun |= ready
    assert begun == set(SERVICES), "services wait for each other"


def test_images_have_a_version_and_ours_is_built_from_the_checkout() -> None:
    for name, service in SERVICES.items():
        _, _, tag = with_defaults(service["image"]).rpartition(":")
        assert re.match(r"\d", tag), name
        if name in OURS:
            context = (DEPLOY / service["build"]["context"]).resolve()
            assert context == ROOT
            assert (context / service["build"]["dockerfile"]).is_file()


def test_what_is_mounted_from_the_checkout_is_there_and_read_only() -> None:
    volumes = set(COMPOSE["volumes"])
    for name, service in SERVICES.items():
        for mount in service.get("volumes", []):
            # a default may have a colon of its own in it, a place has none
            source, target, *mode = with_defaults(mount).split(":")
            assert target.startswith("/"), name
            if source.startswith("."):
                assert mode == ["ro"], mount
                assert (DEPLOY / source).exists() or "${" in mount, mount
            else:
                assert source in volumes, mount


def test_ports_are_open_to_this_machine_alone_unless_somebody_says_otherwise() -> None:
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert set(published) == {"webserver", "grafana"}
    assert all(with_defaults(port).startswith("127.0.0.1:") for ports in published.values() for port in ports)


def test_settings_in_it_are_settings() -> None:
    known = {env_name(field) for field in Settings.model_fields}
    named = {name for service in SERVICES.values() for name in service.get("environment", {})}
    assert {name for name in named if name.startswith("EVAL_")} <= known


def test_grafana_gets_what_its_provisioning_names() -> None:
    files = (DEPLOY / "grafana" / "provisioning").rglob("*.yaml")
    named = {name for file in files for name in re.findall(r"\$(GRAFANA_\w+)", file.read_text(encoding="utf-8"))}
    environment = SERVICES["grafana"]["environment"]
    assert named
    assert named <= set(environment)
    assert f"./grafana/dashboards:{environment['GRAFANA_DASHBOARDS']}:ro" in SERVICES["grafana"]["volumes"]


def test_the_workspace_leads_to_the_code_server() -> None:
    (origin,) = WorkspaceFileTarget([str(DEPLOY / "compose" / "workspace.yaml")]).create_origins()
    command = SERVICES[origin.host]["command"]  # type: ignore[attr-defined]
    assert str(origin.port) == command[command.index("-p") + 1]  # type: ignore[attr-defined]


@pytest.fixture
def home(empty_database: Database) -> Path:
    """The home folder of the image."""
    found = Path(os.environ["DAGSTER_HOME"])
    for name in ("dagster.yaml", "workspace.yaml"):
        shutil.copy(DEPLOY / "compose" / name, found / name)
    return found


def test_dagster_takes_the_instance_and_keeps_everything_in_the_volume(home: Path) -> None:
    with dg.DagsterInstance.get() as instance:
        assert isinstance(instance.get_ref().storage, PooledPostgresStorage)
        assert type(instance.run_coordinator).__name__ == "QueuedRunCoordinator"
        assert instance.get_concurrency_config().run_queue_config.max_concurrent_runs == 8  # type: ignore[union-attr]
        assert instance.run_monitoring_enabled
        assert not instance.telemetry_enabled
        kept = home / ".eval_pipeline"
        assert kept in Path(instance.root_directory).parents
        assert kept in Path(instance.storage_directory()).parents


@contextmanager
def running(service: str, ports: dict[str, str]) -> Iterator[None]:
    """The service's own command as a process, until its own health check is content; ``ports`` are replaced."""

    def here(words: list[str]) -> list[str]:
        return [re.sub("|".join(ports), lambda found: ports[found[0]], word) for word in words]

    environment = {"PATH": PROGRAMS}
    command = here([str(word) for word in SERVICES[service]["command"]])
    program = shutil.which(command[0], path=PROGRAMS)
    assert program is not None
    process = processes.start("-c", _EXEC, program, *command[1:], environment=environment, heard=False)
    how, *check = SERVICES[service]["healthcheck"]["test"]
    assert how == "CMD"
    try:
        deadline = time.monotonic() + 120
        while True:
            looked = subprocess.run(
                here(check), env={**os.environ, **environment}, capture_output=True, text=True, check=False
            )
            if looked.returncode == 0:
                break
            assert process.poll() is None, f"{service} has ended"
            assert time.monotonic() < deadline, f"{service} is not healthy: {looked.stdout}{looked.stderr}"
            time.sleep(0.5)
        yield
    finally:
        process.terminate()
        process.wait(60)


_EXEC = "import os, sys; os.execv(sys.argv[1], sys.argv[1:])"


def free_port() -> str:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return str(found.getsockname()[1])


@pytest.mark.slow
def test_the_commands_of_the_services_come_up_healthy_in_their_order(home: Path, empty_database: Database) -> None:
    shell, option, line = SERVICES["init"]["command"]
    ended = subprocess.run(
        [shell, option, line], env={**os.environ, "PATH": PROGRAMS}, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    with empty_database.engine.connect() as connection:
        tables = "select schemaname, count(*) from pg_tables where schemaname !~ '^pg_|^info' group by 1"
        assert dict(connection.execute(text(tables)).tuples().all()).keys() == {"eval_ph1", "dagster"}

    ports = {"4000": free_port(), "3000": free_port()}
    workspace = (home / "workspace.yaml").read_text(encoding="utf-8")
    (home / "workspace.yaml").write_text(
        workspace.replace("code-server\n", "127.0.0.1\n").replace("4000", ports["4000"]), encoding="utf-8"
    )
    with running("code-server", ports), running("webserver", ports), running("daemon", ports):
        pass


def test_the_reader_of_grafana_is_made_with_its_password_and_again_with_another(
    database: Database, postgres: embedded.Server
) -> None:
    url = make_url(database.dsn)
    programs = postgres_binaries.folder(postgres_binaries.newest_version())
    environment = {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "PGHOST": str(url.query["host"]),
        "PGPORT": str(url.query["port"]),
        "PGUSER": str(url.username),
        "PGDATABASE": str(url.database),
        "PGCLIENTENCODING": "UTF8",
    }
    command = ["sh", str(DEPLOY / "compose" / "grafana_role.sh"), str(DEPLOY / "grafana" / "reader_role.sql")]
    stored = text("select rolpassword from pg_authid where rolname = 'grafana_reader'")
    seen = set()
    # in one test: the role belongs to the whole server, and two that change it at once get in each other's way
    for password in ("letters1", 'it\'s "quoted"; drop role x --', "암호"):
        ended = subprocess.run(
            command, env={**environment, "GRAFANA_PG_PASSWORD": password}, capture_output=True, text=True, check=False
        )
        assert ended.returncode == 0, ended.stderr
        assert password not in ended.stdout + ended.stderr
        with database.engine.connect() as connection:
            seen.add(connection.execute(stored).scalar_one())
    assert len(seen) == 3
    assert all(verifier.startswith("SCRAM-SHA-256$") for verifier in seen)
