"""The fault matrix: each row of ``faults.py`` ends as it says, through the product's own run path."""

from __future__ import annotations

import asyncio
import itertools
import os
import socket
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from sqlalchemy import Row

from eval_pipeline.db import embedded
from eval_pipeline.db.engine import engine
from eval_pipeline.db.checks import run_checks
from eval_pipeline.settings import load_settings
from eval_pipeline_tests.agents.faults import BUDGET_S, DOCUMENT, FAULTS, RETRIES, Fault, document
from eval_pipeline_tests.agents.scenes import Played, play
from eval_pipeline_tests.conftest import Database, fresh_database
from eval_pipeline_tests.stub_openai import Request

SETTINGS: dict[str, dict[str, object]] = {
    "usual": {"llm_retries": RETRIES, "llm_retry_budget_s": BUDGET_S},
    "r1": {"llm_family": "r1"},
    "impatient": {"llm_timeout_s": 1.0, "llm_retries": 1},
    "nobody listens": {"llm_retries": RETRIES},
}
_AT_MOST = 4
"""Runs of one launch that end in a quota or auth failure: one more in a row would keep the others from starting."""


@pytest.fixture(scope="module")
def matrix(postgres: embedded.Server, migrated_template: str) -> Iterator[dict[tuple[str, bool], Played]]:
    """All rows, played: by task id and whether streamed."""
    with fresh_database(postgres, migrated_template) as url, pytest.MonkeyPatch.context() as patch:
        dsn = url.render_as_string(hide_password=False)
        patch.setenv("EVAL_PG_DSN", dsn)
        settings = load_settings()
        database = Database(dsn, settings, engine(settings))
        yield asyncio.run(_matrix(database))
        database.engine.dispose()


async def _matrix(database: Database) -> dict[tuple[str, bool], Played]:
    cases: dict[tuple[str, bool], Played] = {}
    for number, (settings, stream, faults) in enumerate(_launches()):
        changes = {**SETTINGS[settings], "llm_stream": stream}
        if settings == "nobody listens":
            changes["llm_base_url"] = f"http://127.0.0.1:{_closed_port()}/v1"
        scenes = [fault.scene for fault in faults]
        played = await play(database, scenes, key=f"faults-{number}@v1-baseline", **changes)
        cases |= {(fault.task_id, stream): played for fault in faults}
    assert all(check.count == 0 for check in run_checks(database.engine))
    return cases


def _launches() -> Iterator[tuple[str, bool, Sequence[Fault]]]:
    for settings, stream in itertools.product(SETTINGS, (False, True)):
        rows = [fault for fault in FAULTS if fault.settings == settings and stream in fault.modes]
        refusing = [fault for fault in rows if fault.refuses]
        if others := [fault for fault in rows if not fault.refuses]:
            yield settings, stream, others
        for start in range(0, len(refusing), _AT_MOST):
            yield settings, stream, refusing[start : start + _AT_MOST]


def _closed_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def call_line(calls: Sequence[Row[Any]]) -> str:
    """Model calls in short: outcome, HTTP status, finish reason, error class and what is known of the usage."""
    groups = itertools.groupby(map(_call, calls))
    counted = [(words, len(list(same))) for words, same in groups]
    return "; ".join(f"{count}× {words}" if count > 1 else words for words, count in counted)


def _call(row: Row[Any]) -> str:
    known = (row.prompt_tokens is not None, row.completion_tokens is not None)
    usage = {(True, True): "+usage", (True, False): "+prompt", (False, True): "+completion"}.get(known, "")
    words = (row.outcome, row.http_status or "–", row.finish_reason, row.error_class, usage)
    return " ".join(str(word) for word in words if word)


CASES = [
    pytest.param(fault, stream, id=f"{fault.what} ({'streamed' if stream else 'whole'})")
    for fault in FAULTS
    for stream in fault.modes
]
