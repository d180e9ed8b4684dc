"""A launch that is told to end: by Ctrl-C, by SIGTERM, by Dagster's page. It cleans up and can be gone on with."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from sqlalchemy import func, select

from eval_pipeline.db import tables
from eval_pipeline.db.checks import run_checks
from eval_pipeline.execution.interrupts import run_interruptibly
from eval_pipeline_tests.conftest import Database
from eval_pipeline_tests.endpoint_suite import Endpoint, endpoint_with, run_arguments
from eval_pipeline_tests.processes import eval_pipeline

CELLS = 10


@pytest.fixture
def usual_handlers() -> Iterator[None]:
    """What a process in the foreground has, whatever started the tests."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def signal_soon(number: int) -> None:
    threading.Timer(0.2, os.kill, (os.getpid(), number)).start()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_cancels_the_work_and_is_raised_when_that_has_cleaned_up(usual_handlers: None, number: int) -> None:
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    cleaned: list[str] = []

    async def work() -> None:
        swallowing = asyncio.create_task(asyncio.sleep(30))
        try:
            await swallowing
        finally:
            await asyncio.sleep(0.2)
            cleaned.append("up")

    signal_soon(number)
    with pytest.raises(KeyboardInterrupt):
        run_interruptibly(work())
    assert cleaned == ["up"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_signal_does_not_wait_for_the_cleaning_up(usual_handlers: None) -> None:
    async def work() -> None:
        try:
            await asyncio.sleep(30)
        finally:
            signal_soon(signal.SIGINT)
            await asyncio.sleep(30)

    begun_s = time.monotonic()
    signal_soon(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        run_interruptibly(work())
    assert time.monotonic() - begun_s < 15


def test_an_ignored_signal_stays_ignored_and_results_and_errors_are_handed_on(usual_handlers: None) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    async def work(result: int) -> int:
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(0.05)
        if not result:
            raise ZeroDivisionError
        return result

    assert run_interruptibly(work(7)) == 7
    with pytest.raises(ZeroDivisionError):
        run_interruptibly(work(0))


def test_a_cancellation_of_its_own_is_not_taken_for_a_signal(usual_handlers: None) -> None:
    async def work() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(1)

    with pytest.raises(asyncio.CancelledError):
        run_interruptibly(work())


def test_outside_the_main_thread_it_only_runs(usual_handlers: None) -> None:
    found: list[int] = []

    async def work() -> int:
        return 3

    thread = threading.Thread(target=lambda: found.append(run_interruptibly(work())))
    thread.start()
    thread.join(10)
    assert found == [3]


class Command:
    """``eval-pipeline run`` over the endpoint's suite, as a process in the foreground."""

    def __init__(self, endpoint: Endpoint, *more: str) -> None:
        environment = {**endpoint.environment, "EVAL_CONCURRENCY": "3"}
        self.process = eval_pipeline(*run_arguments("b", *more), environment=environment)

    def wait_until_completed(self, database: Database, runs: int) -> None:
        deadline = time.monotonic() + 60
        while (now := statuses(database))["completed"] < runs or not now["running"]:
            assert self.process.poll() is None, self.process.communicate()
            assert time.monotonic() < deadline, f"{now} of {runs} runs"
            time.sleep(0.05)

    def ended(self) -> tuple[int, str, str]:
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out, err


def statuses(database: Database) -> Counter[str]:
    runs = tables.runs
    with database.engine.connect() as connection:
        return Counter(dict(connection.execute(select(runs.c.status, func.count()).group_by(runs.c.status)).all()))


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_leaves_a_batch_that_can_be_gone_on_with_and_says_how(
    instance: dg.DagsterInstance, database: Database, tmp_path: Path, number: int
) -> None:
    with endpoint_with(tmp_path, CELLS, delay_s=0.15) as endpoint:
        command = Command(endpoint)
        command.wait_until_completed(database, 2)
        command.process.send_signal(number)
        code, _, err = command.ended()

        assert code == 130, err
        assert "Traceback" not in err
        assert "--retry-crashed" in err
        left = statuses(database)
        assert left["running"] == 0
        assert left["completed"] >= 2
        assert left["crashed"] >= 1
        with database.engine.connect() as connection:
            classes = select(tables.runs.c.error_class).where(tables.runs.c.status == "crashed")
            assert set(connection.execute(classes).scalars()) == {"interrupted"}
        assert all(check.passed for check in run_checks(database.engine))
        ended = {dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED}
        assert {run.status for run in instance.get_runs()} <= ended

        code, out, err = Command(endpoint).ended()
        assert code == 0, err
        assert f"skipped={left['completed']} retried={left['crashed']}" in out
        assert statuses(database) == {"completed": CELLS, "crashed": left["crashed"]}
