"""The fault matrix: each row ends as it says, through the product's own run path."""

from __future__ import annotations

import asyncio
import itertools
import os
import socket
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pytest
from sqlalchemy import Row

from eval_pipeline.db import embedded
from eval_pipeline.db.checks import run_checks
from eval_pipeline.db.engine import engine
from eval_pipeline.settings import load_settings
from eval_pipeline_tests.agents.fault_table import DOCUMENT, FAULTS, document
from eval_pipeline_tests.agents.faults import BUDGET_S, RETRIES, Fault
from eval_pipeline_tests.agents.scenes import Played, play, trace_line
from eval_pipeline_tests.conftest import FOLDER, Database, fresh_database

SETTINGS: dict[str, dict[str, object]] = {
    "usual": {"llm_retries": RETRIES, "llm_retry_budget_s": BUDGET_S},
    "r1": {"llm_family": "r1"},
    "impatient": {"llm_timeout_s": 1.0, "llm_retries": 1},
    "nobody listens": {"llm_retries": RETRIES},
}
_AT_MOST = 4
"""Runs of one launch that end in a quota or auth failure: one more in a row would keep the others from starting."""


@pytest.fixture(scope="module")
def matrix(
    postgres: embedded.Server, migrated_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Matrix]:
    with fresh_database(postgres, migrated_template) as url, pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("EVAL_") and name != FOLDER]:
            patch.delenv(name)
        patch.setenv("DAGSTER_HOME", str(tmp_path_factory.mktemp("home")))
        dsn = url.render_as_string(hide_password=False)
        patch.setenv("EVAL_PG_DSN", dsn)
        settings = load_settings()
        database = Database(dsn, settings, engine(settings))
        yield Matrix(database)
        assert all(check.count == 0 for check in run_checks(database.engine))
        database.engine.dispose()


class Matrix:
    """All rows; a launch of them is played when one of its rows is looked at."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._launches = {
            (fault.task_id, stream): number for number, (_, stream, faults) in enumerate(LAUNCHES) for fault in faults
        }
        self._played: dict[int, Played] = {}

    def played(self, fault: Fault, stream: bool) -> Played:
        """What became of the launch that a row is part of."""
        number = self._launches[fault.task_id, stream]
        if number not in self._played:
            self._played[number] = asyncio.run(self._play(number))
        return self._played[number]

    async def _play(self, number: int) -> Played:
        settings, stream, faults = LAUNCHES[number]
        changes = {**SETTINGS[settings], "llm_stream": stream}
        if settings == "nobody listens":
            changes["llm_base_url"] = f"http://127.0.0.1:{_closed_port()}/v1"
        scenes = [fault.scene for fault in faults]
        return await play(self._database, scenes, key=f"faults-{number}@v1-baseline", **changes)


def _launches() -> Iterator[tuple[str, bool, Sequence[Fault]]]:
    for settings, stream in itertools.product(SETTINGS, (False, True)):
        rows = [fault for fault in FAULTS if fault.settings == settings and stream in fault.modes]
        refusing = [fault for fault in rows if fault.refuses]
        others = [fault for fault in rows if not fault.refuses]
        # a refusal makes all runs of its launch go slower
        for slow in (False, True):
            if some := [fault for fault in others if ("rate_limit" in fault.calls) is slow]:
                yield settings, stream, some
        for start in range(0, len(refusing), _AT_MOST):
            yield settings, stream, refusing[start : start + _AT_MOST]


LAUNCHES = list(_launches())
"""Settings, whether streamed, and rows of each launch."""


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
    for _, stream, faults in LAUNCHES
    for fault in faults
]


@pytest.mark.parametrize(("fault", "stream"), CASES)
def test_a_fault_ends_as_the_matrix_says(fault: Fault, stream: bool, matrix: Matrix) -> None:
    played = matrix.played(fault, stream)
    run, calls = played.runs[fault.task_id], played.calls[fault.task_id]

    completed = run.status == "completed"
    assert (run.terminated_by if completed else run.error_class) == fault.end
    assert call_line([call for call in calls if call.role == fault.role]) == fault.calls
    assert all(
        _call(call) in ("ok 200 stop +usage", "ok 200 tool_calls +usage") for call in calls if call.role != fault.role
    )
    assert trace_line(played.events[fault.task_id]) == fault.trace
    if completed:
        assert (run.success, run.format_valid, run.error_message) == (True, True, None)
    else:
        assert run.error_message and "\n" not in run.error_message
        assert run.error_message in played.results[fault.task_id].message
    _figures_are_what_was_sent(fault, played)


def _figures_are_what_was_sent(fault: Fault, played: Played) -> None:
    run, calls, events = played.runs[fault.task_id], played.calls[fault.task_id], played.events[fault.task_id]
    of_calls = (_sum(call.prompt_tokens for call in calls), _sum(call.completion_tokens for call in calls))
    assert of_calls == (run.all_tokens_in, run.all_tokens_out)
    assert tuple(total or 0 for total in of_calls) == played.sent_usage(fault.task_id)
    visible = (_sum(row.tokens_in for row in events), _sum(row.tokens_out for row in events))
    assert visible == (run.tokens_in, run.tokens_out)
    assert run.model_calls == len(calls)
    if fault.settings != "nobody listens":
        assert run.model_calls == len(played.requests[fault.task_id])
    assert run.turns == sum(row.message_type == "agent_message" for row in events)
    assert run.tool_calls == sum(row.message_type == "tool_call" for row in events)
    assert run.tool_errors == sum(row.message_type == "tool_error" for row in events)
    assert run.selector_fallbacks == sum(row.reason_code == "FALLBACK" for row in events)
    assert [row.seq for row in events] == list(range(len(events)))
    assert run.events_dropped == 0
    assert not run.abandoned


def _sum(counts: Iterable[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


@pytest.mark.parametrize("number", range(len(LAUNCHES)))
def test_no_fault_leaves_a_task_or_an_untaken_exception_behind(number: int, matrix: Matrix) -> None:
    _, stream, faults = LAUNCHES[number]
    played = matrix.played(faults[0], stream)
    assert played.leftover_tasks == []
    assert played.complaints == []


@pytest.mark.parametrize(
    ("what", "least_s"),
    [
        ("429 with Retry-After in seconds, then an answer", 0.2),
        ("429 with Retry-After as a date, then an answer", 1.0),
        ("429 with retry-after-ms, then an answer", 0.2),
        ("503 with Retry-After, then an answer", 0.2),
    ],
)
def test_what_retry_after_asks_for_is_waited(what: str, least_s: float, matrix: Matrix) -> None:
    fault = next(fault for fault in FAULTS if fault.what == what)
    for stream in fault.modes:
        refused, answered = (
            call for call in matrix.played(fault, stream).calls[fault.task_id] if call.role == fault.role
        )
        assert (answered.started_at - refused.started_at).total_seconds() >= least_s
        assert answered.attempt == refused.attempt + 1


def test_the_document_has_the_rows_of_the_matrix() -> None:
    print(document())
    assert DOCUMENT.read_text(encoding="utf-8") == document()


def test_every_row_has_a_name_of_its_own() -> None:
    names = [(fault.what, mode) for fault in FAULTS for mode in fault.modes]
    assert len(names) == len(set(names))
