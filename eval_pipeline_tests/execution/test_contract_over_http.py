"""Whatever decides a result is held against the contract before the first request; whatever decides the pace is not."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import dagster as dg
import pytest
from sqlalchemy import func, select

from eval_pipeline.assets import runs as runs_module
from eval_pipeline.benchmarks.registry import benchmark
from eval_pipeline.db import tables
from eval_pipeline.execution.run_many import LaunchResult
from eval_pipeline.ids import BatchTeam, TaskAttempt
from eval_pipeline.launcher import LaunchError, load_suite, register_batch, run_batch
from eval_pipeline.settings import Settings, load_settings
from eval_pipeline.suites import load_suites, load_tasks
from eval_pipeline.teams.registry import load_teams
from eval_pipeline.teams.spec import TeamSpec
from eval_pipeline.tools.registry import TOOLS
from eval_pipeline_tests.conftest import Database
from eval_pipeline_tests.endpoint_suite import CALLS_OF_A_RUN, SUITE, TEAM, Endpoint, endpoint_with, task_ids

TASKS = 4
CONDITION = BatchTeam("b", TEAM)


@dataclass(frozen=True)
class Batch:
    """A batch that has begun with its first task, at an endpoint that counts."""

    instance: dg.DagsterInstance
    database: Database
    endpoint: Endpoint
    folder: Path

    def launch(self, task: int) -> LaunchResult:
        """Launch one more cell through Dagster, as a person would who comes back."""
        settings = load_settings()
        loaded = load_tasks(load_suites(settings)[SUITE], settings)
        cells = [TaskAttempt(task_ids(TASKS)[task], 1)]
        return run_batch(self.instance, settings, loaded, CONDITION, cells, retry_crashed=True)

    def edit_tasks(self, change: Callable[[list[dict[str, object]]], None]) -> None:
        path = self.folder / "tasks" / "metadata.jsonl"
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        change(lines)
        path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")


@pytest.fixture
def batch(
    instance: dg.DagsterInstance, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Batch]:
    with endpoint_with(tmp_path, TASKS) as endpoint:
        for name, value in endpoint.environment.items():
            monkeypatch.setenv(name, value)
        batch = Batch(instance, database, endpoint, tmp_path)
        (tmp_path / "tasks" / "note.txt").write_text("six times seven", encoding="utf-8")
        batch.edit_tasks(lambda lines: lines[0].update({"file_name": "note.txt"}))
        suite = load_suites(load_settings())[SUITE]
        load_suite(instance, suite)
        register_batch(instance, suite, [CONDITION])
        assert not batch.launch(0).unfinished
        assert len(endpoint.solver.asked) == CALLS_OF_A_RUN
        yield batch


Change = Callable[[Batch, pytest.MonkeyPatch], None]


def variable(name: str, value: str) -> Change:
    return lambda _batch, patch: patch.setenv(name, value)


def tasks(**fields: object) -> Change:
    return lambda batch, _patch: batch.edit_tasks(lambda lines: lines[-1].update(fields))


def attachment(batch: Batch, _patch: pytest.MonkeyPatch) -> None:
    path = batch.folder / "tasks" / "note.txt"
    path.write_bytes(path.read_bytes() + b".")


def team(change: Callable[[TeamSpec], TeamSpec]) -> Change:
    """As if the team's file, or the source that it names, had been edited."""

    def apply(_batch: Batch, patch: pytest.MonkeyPatch) -> None:
        def edited(folder: Path | None) -> dict[str, TeamSpec]:
            teams = dict(load_teams(folder))
            return {**teams, TEAM: change(teams[TEAM])}

        patch.setattr(runs_module, "load_teams", edited)

    return apply


def source_of(key: str) -> Change:
    return team(lambda spec: replace(spec, source_hashes={**spec.source_hashes, key: "0" * 64}))


def prompt_letter(role: str) -> Change:
    return team(lambda spec: replace(spec, prompts={**spec.prompts, role: spec.prompts[role].replace("e", "a", 1)}))


def of_benchmark(name: str, value: object) -> Change:
    return lambda _batch, patch: patch.setattr(benchmark("gaia"), name, value, raising=True)


def endpoint_host(batch: Batch, patch: pytest.MonkeyPatch) -> None:
    patch.setenv("EVAL_LLM_BASE_URL", batch.endpoint.stub.base_url.replace("127.0.0.1", "localhost"))


RESULT: dict[str, tuple[Change, str]] = {
    "planner's prompt": (prompt_letter("planner"), "prompt"),
    "executor's prompt": (prompt_letter("executor"), "prompt"),
    "critic's prompt": (prompt_letter("critic"), "prompt"),
    "selector's prompt": (prompt_letter("selector"), "prompt"),
    "a tool's source": (source_of("python_calc"), "python_calc"),
    "input builder's source": (source_of("question_only"), "question_only"),
    "input builder": (team(lambda spec: replace(spec, input="attachment_path")), "input"),
    "tools": (team(lambda spec: replace(spec, tools=spec.tools[:1])), "tools"),
    "termination": (team(lambda spec: replace(spec, termination="other")), "termination"),
    "selector's attempts": (team(lambda spec: replace(spec, max_selector_attempts=7)), "selector"),
    "a gold answer": (tasks(**{"Final answer": "43"}), "suite.hash"),
    "a question": (tasks(Question="What is 6 * 8? [task last]"), "suite.hash"),
    "a level": (tasks(Level=2), "suite.hash"),
    "a byte of an attachment": (attachment, "suite.hash"),
    "model": (variable("EVAL_LLM_MODEL", "another-model"), "model"),
    "endpoint's host": (endpoint_host, "endpoint"),
    "temperature": (variable("EVAL_LLM_TEMPERATURE", "0.9"), "llm_temperature"),
    "seed": (variable("EVAL_LLM_SEED", "11"), "llm_seed"),
    "tokens of an answer": (variable("EVAL_LLM_MAX_TOKENS", "77"), "llm_max_tokens"),
    "model family": (variable("EVAL_LLM_FAMILY", "r1"), "llm_family"),
    "vision": (variable("EVAL_LLM_VISION", "true"), "llm_vision"),
    "function calling": (variable("EVAL_LLM_FUNCTION_CALLING", "false"), "llm_function_calling"),
    "JSON mode": (variable("EVAL_LLM_JSON_OUTPUT", "false"), "llm_json_output"),
    "JSON schemas": (variable("EVAL_LLM_STRUCTURED_OUTPUT", "true"), "llm_structured_output"),
    "parallel calls": (variable("EVAL_LLM_PARALLEL_TOOL_CALLS", "false"), "llm_parallel_tool_calls"),
    "names in messages": (variable("EVAL_LLM_INCLUDE_NAME", "false"), "llm_include_name"),
    "messages": (variable("EVAL_MAX_MESSAGES", "29"), "max_messages"),
    "a run's time": (variable("EVAL_RUN_TIMEOUT_S", "99"), "run_timeout_s"),
    "a run's tokens": (variable("EVAL_MAX_TOKENS_PER_RUN", "9999"), "max_tokens_per_run"),
    "a tool's time": (variable("EVAL_TOOL_TIMEOUT_S", "9"), "tool_timeout_s"),
    "scorer's version": (of_benchmark("scorer_version", "gaia-next"), "scorer.version"),
    "a threshold": (of_benchmark("thresholds", {"least": 0.5}), "threshold.least"),
    "answer format": (of_benchmark("format_block", "Answer in verse."), "benchmark.format_block"),
    "a benchmark's tools": (of_benchmark("tools", ("python_calc",)), "benchmark.tools"),
}


def test_what_decides_a_result_is_refused_by_name_before_the_first_request(batch: Batch) -> None:
    before = batch.endpoint.solver.asked.copy()
    unnamed, accepted = [], []
    for name, (change, field) in RESULT.items():
        saved = (
            (batch.folder / "tasks" / "metadata.jsonl").read_bytes(),
            (batch.folder / "tasks" / "note.txt").read_bytes(),
        )
        with pytest.MonkeyPatch.context() as patch:
            change(batch, patch)
            try:
                batch.launch(1)
            except LaunchError as refusal:
                said = str(refusal)
                assert "\n" not in said
                if field not in said:
                    unnamed.append((name, said))
            else:
                accepted.append(name)
        for file, content in zip(("metadata.jsonl", "note.txt"), saved, strict=True):
            (batch.folder / "tasks" / file).write_bytes(content)
    assert accepted == []
    assert unnamed == []
    assert batch.endpoint.solver.asked == before
    with batch.database.engine.connect() as connection:
        assert connection.execute(select(func.count()).select_from(tables.runs)).scalar_one() == 1
    # set back, it goes on
    assert not batch.launch(1).unfinished


def test_every_tool_has_a_hash_of_its_source() -> None:
    """What stands for an edited source above is what an edited source would change."""
    assert len({tool.source_hash for tool in TOOLS.values()}) == len(TOOLS)
    assert set(load_teams(None)[TEAM].source_hashes) == {*load_teams(None)[TEAM].tools, "question_only"}


PACE = {
    "EVAL_CONCURRENCY": "1",
    "EVAL_CELLS_PER_DAGSTER_RUN": "3",
    "EVAL_LLM_RETRIES": "0",
    "EVAL_LLM_BACKOFF_S": "9",
    "EVAL_LLM_RETRY_BUDGET_S": "1",
    "EVAL_LLM_TIMEOUT_S": "77",
    "EVAL_LLM_CONNECT_TIMEOUT_S": "3",
    "EVAL_LLM_STREAM": "true",
    "EVAL_LLM_API_KEY": "another-key",
    "EVAL_PRICE_INPUT": "1",
    "EVAL_PRICE_OUTPUT": "2",
    "EVAL_LOG_LEVEL": "ERROR",
    "EVAL_STAGE_DIR": "stage",
    "EVAL_REPORT_DIR": "reports",
    "EVAL_RESUME_PAUSED_AFTER_S": "1",
    "EVAL_KEEP_NIGHTLY": "2",
}


def field_of(variable: str) -> str:
    return variable.removeprefix("EVAL_").lower()


def test_what_decides_the_pace_may_change_from_launch_to_launch(
    batch: Batch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of it at once: if any were compared, this launch would be refused."""
    for name, value in PACE.items():
        monkeypatch.setenv(name, str(tmp_path / value) if name.endswith("_DIR") else value)
    settings = load_settings()
    fields = Settings.model_fields
    assert all(getattr(settings, field_of(name)) != fields[field_of(name)].default for name in PACE)
    assert not batch.launch(1).unfinished
    assert len(batch.endpoint.solver.asked) == 2 * CALLS_OF_A_RUN
