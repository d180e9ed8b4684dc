"""``dagster dev`` as a person starts it: on a home of its own, stopped by a signal, watched for what it leaves behind.

What is clicked in it belongs to the tests.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil
from sqlalchemy import NullPool, create_engine

from eval_pipeline.db import postmaster
from eval_pipeline.db.embedded import Server
from eval_pipeline.home import packaged
from eval_pipeline_tests.conftest import own_tables

_START_S = 120
_STOP_S = 60
_TAIL = 4000
# tests that run in the background ignore SIGINT, and a dagster that inherits that does not hear SIGTERM either
_WITH_SIGNALS = """
import os, signal, sys
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.SIG_DFL)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


def make_home(folder: Path) -> Path:
    """A home like the project's root: its instance, its workspace, its suites, and nothing that ran before."""
    folder.mkdir()
    for name in ("dagster.yaml", "workspace.yaml", "suites.yaml"):
        shutil.copy(packaged(name), folder / name)
    return folder


class DevServer:
    """A running ``dagster dev`` on ``home``, at a free port of this machine; ``variables`` are settings of ours."""

    def __init__(self, home: Path, variables: Mapping[str, str] | None = None) -> None:
        self.home = home
        self.port = _free_port()
        self._log = home / "dagster-dev.log"
        environment = {name: value for name, value in os.environ.items() if not name.startswith("EVAL_")}
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _WITH_SIGNALS, "-m", "dagster", "dev", "-h", "127.0.0.1", "-p", str(self.port)],
                cwd=home,
                env=environment | {"DAGSTER_HOME": str(home), **(variables or {})},
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        self._wait_until_it_answers()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def log(self) -> str:
        """The end of what it has printed."""
        return self._log.read_text(errors="replace")[-_TAIL:]

    def graphql(self, query: str, **variables: object) -> Any:
        """The ``data`` of an answer of Dagster's own interface."""
        body = json.dumps({"query": query, "variables": variables}).encode()
        request = urllib.request.Request(f"{self.url}/graphql", body, {"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["data"]

    def rows(self, query: str) -> list[dict[str, Any]]:
        """Rows of our own tables, over a connection that does not keep the embedded server up."""
        data_dir = self._data_dir()
        found = postmaster.read(data_dir)
        assert found is not None, "the embedded PostgreSQL does not run"
        url = Server(data_dir, found.socket_dir, found.port, found.pid).url("eval")
        with create_engine(own_tables(url), poolclass=NullPool).connect() as connection:
            return [dict(row) for row in connection.exec_driver_sql(query).mappings()]

    def alive(self) -> list[str]:
        """The command lines of everything that runs for this home, PostgreSQL included."""
        found = []
        for process in self.processes():
            with contextlib.suppress(psutil.Error):
                found.append(" ".join(process.cmdline()) or process.name())
        return found

    def stop(self) -> list[str]:
        """End it with SIGTERM; the command lines of what is still alive some seconds later."""
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(timeout=_STOP_S)
        deadline = time.monotonic() + _STOP_S
        while (left := self.alive()) and time.monotonic() < deadline:
            time.sleep(0.5)
        return left

    def kill(self) -> None:
        """End everything of this home at once, for a test that has failed."""
        for process in self.processes():
            with contextlib.suppress(psutil.Error):
                process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=_STOP_S)

    def _data_dir(self) -> Path:
        return self.home.resolve() / ".eval_pipeline" / "pg"

    def _wait_until_it_answers(self) -> None:
        deadline = time.monotonic() + _START_S
        while time.monotonic() < deadline:
            assert self._process.poll() is None, f"dagster dev ended by itself: {self.log()}"
            with contextlib.suppress(urllib.error.URLError, ConnectionError, TimeoutError):
                urllib.request.urlopen(f"{self.url}/server_info", timeout=5).close()
                return
            time.sleep(0.3)
        self.kill()
        raise AssertionError(f"dagster dev did not answer within {_START_S} s: {self.log()}")

    def processes(self) -> list[psutil.Process]:
        """Every process of this home: by its environment, or by its folder for PostgreSQL, which does not get ours."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.status() != psutil.STATUS_ZOMBIE and (
                    process.environ().get("DAGSTER_HOME") == str(self.home) or process.cwd() == str(self._data_dir())
                ):
                    found.append(process)
        return [process for process in found if process.pid != os.getpid()]


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])
