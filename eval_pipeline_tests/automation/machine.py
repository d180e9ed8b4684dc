"""A whole installation that tests may kill: ``dagster dev``, commands, PostgreSQL, with an endpoint that survives.

What is killed when, and what has to be true afterwards, is for the tests.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from eval_pipeline.db import embedded, postmaster
from eval_pipeline_tests.browser.dev_server import DevServer, make_home
from eval_pipeline_tests.endpoint_suite import SUITE, TEAM, Endpoint, endpoint_with, task_ids
from eval_pipeline_tests.processes import eval_pipeline

PATIENCE_S = 180.0
_LOCATION = "eval_pipeline.definitions"
_REPOSITORY = {"repositoryName": "__repository__", "repositoryLocationName": _LOCATION}

_ADD = """
    mutation Add($key: String!, $name: String!, $repository: RepositorySelector!) {
        addDynamicPartition(partitionKey: $key, partitionsDefName: $name, repositorySelector: $repository) {
            __typename ... on PythonError { message }
        }
    }
"""
_BACKFILL = """
    mutation Launch($params: LaunchBackfillParams!) {
        launchPartitionBackfill(backfillParams: $params) {
            __typename ... on LaunchBackfillSuccess { backfillId } ... on PythonError { message }
        }
    }
"""
_AGAIN = """
    mutation Again($params: ReexecutionParams!) {
        reexecutePartitionBackfill(reexecutionParams: $params) {
            __typename ... on LaunchBackfillSuccess { backfillId } ... on PythonError { message }
        }
    }
"""
_RUN = """
    mutation Run($params: ExecutionParams!) {
        launchPipelineExecution(executionParams: $params) {
            __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message }
        }
    }
"""
_TERMINATE = """
    mutation Terminate($id: String!) {
        terminateRun(runId: $id, terminatePolicy: SAFE_TERMINATE) {
            __typename ... on TerminateRunFailure { message } ... on PythonError { message }
        }
    }
"""
_RUN_STATUS = """
    query Run($id: ID!) { runOrError(runId: $id) { ... on Run { status } } }
"""
_STATE = """
    query State($key: AssetKeyInput!) {
        assetNodeOrError(assetKey: $key) {
            ... on AssetNode { partitionStats { numMaterialized numFailed numMaterializing numPartitions } }
        }
        instance { concurrencyLimit(concurrencyKey: "llm") { slotCount activeRunIds } }
        runsOrError(filter: {statuses: [STARTED, STARTING, CANCELING, NOT_STARTED, QUEUED]}) {
            ... on Runs { results { runId status } }
        }
    }
"""
_BACKFILL_STATE = """
    query Backfill($id: String!) { partitionBackfillOrError(backfillId: $id) { ... on PartitionBackfill { status } } }
"""


class Machine:
    """One home with its processes. Everything in it may be killed but the endpoint."""

    def __init__(self, home: Path, endpoint: Endpoint, cells: int, settings: Mapping[str, str]) -> None:
        self.home = home
        self.endpoint = endpoint
        self.cells = cells
        self._settings = {**endpoint.environment, **settings}
        self._dev: DevServer | None = None

    # processes

    def start(self) -> None:
        """Start ``dagster dev`` and wait until the keys of the suite are there."""
        self._dev = DevServer(self.home, self._settings)
        wait_until(lambda: self.state()["cells"] is not None, "the pages show the suite")

    @property
    def dev(self) -> DevServer:
        assert self._dev is not None
        return self._dev

    def command(self, *arguments: str) -> subprocess.Popen[str]:
        """An ``eval-pipeline`` command on this home."""
        variables = {**self._settings, "DAGSTER_HOME": str(self.home)}
        return eval_pipeline(*arguments, environment=variables, cwd=self.home)

    def workers(self) -> list[psutil.Process]:
        """The processes that Dagster runs work in: spawned by the code server, one for each."""
        return [
            process
            for process in self.dev.processes()
            if _says(process, "multiprocessing.spawn") and any(_says(parent, "grpc") for parent in process.parents())
        ]

    def daemons(self) -> list[psutil.Process]:
        return [process for process in self.dev.processes() if _says(process, "dagster._daemon")]

    def kill_tree(self) -> None:
        """``kill -9`` of everything of this home but PostgreSQL."""
        for process in self.dev.processes():
            if not _is_postgres(process):
                with contextlib.suppress(psutil.Error):
                    process.kill()
        wait_until(lambda: all(map(_is_postgres, self.dev.processes())), "the tree is gone")

    def kill_postgres(self) -> None:
        found = postmaster.read(self.data_dir)
        assert found is not None
        os.kill(found.pid, signal.SIGKILL)

    def stop_postgres(self) -> None:
        embedded.stop(self.data_dir)

    def end(self) -> None:
        if self._dev is not None:
            self._dev.kill()
        embedded.stop(self.data_dir)

    @property
    def data_dir(self) -> Path:
        return self.home.resolve() / ".eval_pipeline" / "pg"

    # launches through the pages' own interface

    def add_batch(self, batch: str) -> None:
        name = f"{SUITE}__batch_team"
        self._ask(_ADD, key=f"{batch}@{TEAM}", name=name, repository=_REPOSITORY)
        # the keys of the suite's tasks are registered by a sensor
        wait_until(lambda: self.state()["cells"]["numPartitions"] >= self.cells, "the suite's keys are there")

    def backfill(self, batch: str) -> str:
        """Launch every cell of ``batch`` as the dialog does."""
        params = {
            "selector": None,
            "assetSelection": [{"path": [SUITE, "runs"]}, {"path": [SUITE, "events"]}],
            "partitionNames": [f"{batch}@{TEAM}|{name}#1" for name in task_ids(self.cells)],
            "fromFailure": False,
        }
        return str(self._ask(_BACKFILL, params=params)["backfillId"])

    def go_on_with(self, backfill_id: str) -> str:
        """*Re-execute from failure* on the page of a backfill."""
        return str(self._ask(_AGAIN, params={"parentRunId": backfill_id, "strategy": "FROM_FAILURE"})["backfillId"])

    def run_job(self, batch: str) -> str:
        """One Dagster run over every cell, through the queue."""
        keys = task_ids(self.cells)
        tags = {
            "dagster/asset_partition_range_start": f"{batch}@{TEAM}|{keys[0]}#1",
            "dagster/asset_partition_range_end": f"{batch}@{TEAM}|{keys[-1]}#1",
        }
        params = {
            "selector": {**_REPOSITORY, "pipelineName": f"{SUITE}_runs"},
            "runConfigData": {},
            "executionMetadata": {"tags": [{"key": key, "value": value} for key, value in tags.items()]},
        }
        return str(self._ask(_RUN, params=params)["run"]["runId"])

    def terminate(self, run_id: str) -> None:
        """*Terminate* on the page of a Dagster run."""
        self._ask(_TERMINATE, id=run_id)

    def _ask(self, query: str, **variables: Any) -> dict[str, Any]:
        (answer,) = self.dev.graphql(query, **variables).values()
        assert "Error" not in answer["__typename"], answer
        return dict(answer)

    # what there is

    def state(self) -> dict[str, Any]:
        """Cells of ``runs`` as Dagster counts them, who holds the pool's slots, and runs that have not ended."""
        data = self.dev.graphql(_STATE, key={"path": [SUITE, "runs"]})
        limit = data["instance"]["concurrencyLimit"]
        return {
            "cells": (data["assetNodeOrError"] or {}).get("partitionStats"),
            "slots": limit["activeRunIds"] if limit else [],
            "alive": [run["runId"] for run in data["runsOrError"]["results"]],
        }

    def backfill_status(self, backfill_id: str) -> str:
        return str(self.dev.graphql(_BACKFILL_STATE, id=backfill_id)["partitionBackfillOrError"]["status"])

    def run_status(self, run_id: str) -> str:
        return str(self.dev.graphql(_RUN_STATUS, id=run_id)["runOrError"]["status"])

    def statuses(self) -> Counter[str]:
        """Live tries by status; none while PostgreSQL is away."""
        with contextlib.suppress(Exception):
            rows = self.rows("select status, count(*) as count from runs where live group by 1")
            return Counter({row["status"]: row["count"] for row in rows})
        return Counter()

    def rows(self, query: str) -> list[dict[str, Any]]:
        return self.dev.rows(query)


@contextmanager
def machine(cells: int, *, delay_s: float, **settings: str) -> Iterator[Machine]:
    """A fresh machine; nothing of it is left afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="eval-pipeline-machine-")).resolve()
    folder.chmod(0o755)
    with endpoint_with(folder / "data", cells, delay_s=delay_s) as endpoint:
        found = Machine(make_home(folder / "home"), endpoint, cells, settings)
        try:
            yield found
        finally:
            found.end()
            shutil.rmtree(folder, ignore_errors=True)


def wait_until(holds: Callable[[], bool], what: str, seconds: float = PATIENCE_S) -> None:
    """Wait for something that takes its time; an error in between is one of a machine that is being hurt."""
    deadline = time.monotonic() + seconds
    last: Exception | None = None
    while True:
        try:
            if holds():
                return
            last = None
        except Exception as error:
            last = error
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {what} ({last})"
        time.sleep(0.3)


def _says(process: psutil.Process, word: str) -> bool:
    with contextlib.suppress(psutil.Error):
        return word in " ".join(process.cmdline())
    return False


def _is_postgres(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.Error):
        return process.name().startswith("postgres")
    return False
