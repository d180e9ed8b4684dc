"""The contract of a ``batch@team``: all that decides its results, fixed by its first launch.

Fields are flat texts to JSON values, so that a refusal can name each one. What only decides how fast a batch runs is
not here and may change at any time.
"""

from __future__ import annotations

import importlib.metadata
import platform
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from sqlalchemy import Connection, select, text
from sqlalchemy.dialects.postgresql import insert

from eval_pipeline.benchmarks.registry import benchmark
from eval_pipeline.db import tables
from eval_pipeline.errors import ContractMismatchError
from eval_pipeline.ids import BatchTeam, shown
from eval_pipeline.jsontypes import JsonObject, JsonValue
from eval_pipeline.sample_data.scripts import folder_hash
from eval_pipeline.settings import Settings
from eval_pipeline.suites import LoadedSuite
from eval_pipeline.teams.registry import register_teams, team
from eval_pipeline.teams.spec import TeamSpec, sha256_of
from eval_pipeline.tools.registry import TOOLS

_PACKAGES = (
    "eval-pipeline",
    "autogen-agentchat",
    "autogen-core",
    "autogen-ext",
    "openai",
    "dagster",
    "sqlalchemy",
)
_SETTINGS = (
    "llm_temperature",
    "llm_seed",
    "llm_max_tokens",
    "llm_family",
    "llm_vision",
    "llm_function_calling",
    "llm_json_output",
    "llm_structured_output",
    "llm_parallel_tool_calls",
    "llm_include_name",
    "max_messages",
    "run_timeout_s",
    "max_tokens_per_run",
    "max_cost_per_run",
    "tool_timeout_s",
)
_PACE = (
    "concurrency",
    "cells_per_dagster_run",
    "scripted_latency_s",
    "llm_stream",
    "llm_timeout_s",
    "llm_connect_timeout_s",
    "llm_retries",
    "llm_backoff_s",
    "llm_retry_budget_s",
    "price_input",
    "price_output",
    "sandbox_minimum",
)
_GIT_TIMEOUT_S = 5
_HASH_LENGTH = 64
_SHORT_HASH = 12


@dataclass(frozen=True, slots=True)
class Frozen:
    """A batch's contract, and whether this launch is the one that fixed it."""

    contract: JsonObject
    first: bool


def endpoint_host(settings: Settings) -> str | None:
    """Host and port of the endpoint, without scheme, path, user or key; ``None`` for the scripted model."""
    if settings.llm_provider == "scripted" or not settings.llm_base_url:
        return None
    parts = urlsplit(settings.llm_base_url)
    return f"{parts.hostname}:{parts.port}" if parts.port else parts.hostname


def model_name(settings: Settings) -> str:
    """The configured model, or ``scripted`` with a hash of the scripts that are not the shipped ones."""
    if settings.llm_provider != "scripted":
        return settings.llm_model or ""
    return "scripted" if settings.scripts_dir is None else f"scripted:{folder_hash(settings.scripts_dir)[:_SHORT_HASH]}"


def contract_of(loaded: LoadedSuite, spec: TeamSpec, settings: Settings) -> JsonObject:
    """The contract that a launch of ``spec`` over ``loaded`` under ``settings`` would have."""
    suite = loaded.suite
    kind = benchmark(suite.benchmark)
    fields: JsonObject = {
        "suite": suite.name,
        "suite.hash": loaded.content_hash,
        "suite.attempts": suite.attempts,
        "team": spec.team_id,
        "team.contract_hash": spec.contract_hash,
        "benchmark": kind.name,
        "benchmark.format_block": sha256_of(kind.format_block),
        "benchmark.tools": {key: TOOLS[key].source_hash for key in kind.tools},
        "scorer.version": kind.scorer_version,
        "provider": settings.llm_provider,
        "model": model_name(settings),
        "endpoint": endpoint_host(settings),
    }
    for name, value in sorted({**kind.thresholds, **suite.thresholds}.items()):
        fields[f"threshold.{name}"] = value
    for name in _SETTINGS:
        fields[name] = getattr(settings, name)
    return fields


def circumstances(settings: Settings) -> JsonObject:
    """What is recorded of the first launch for information only: code version, packages, host, settings of pace."""
    packages: dict[str, JsonValue] = {}
    for name in _PACKAGES:
        try:
            packages[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            packages[name] = None
    return {
        "git_commit": _git_commit(),
        "packages": packages,
        "python": platform.python_version(),
        "host": platform.node(),
        "system": platform.platform(),
        "settings": {name: getattr(settings, name) for name in _PACE},
    }


def _git_commit() -> str | None:
    folder = Path(__file__).resolve().parent
    try:
        done = subprocess.run(
            ["git", "rev-parse", "HEAD"],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=_GIT_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None


def differences(then: Mapping[str, JsonValue], now: Mapping[str, JsonValue]) -> list[str]:
    """One text per field that differs; a field that is absent on either side is a difference."""
    return [
        f"{name}: then {_shown(then, name)}, now {_shown(now, name)}"
        for name in sorted({*then, *now})
        if name not in then or name not in now or then[name] != now[name]
    ]


def _shown(fields: Mapping[str, JsonValue], name: str) -> str:
    if name not in fields:
        return "(absent)"
    value = fields[name]
    if isinstance(value, str) and len(value) == _HASH_LENGTH:
        return value[:12]
    return shown(value if isinstance(value, str) else repr(value)).strip("'")


def freeze(
    connection: Connection,
    batch_team: BatchTeam,
    loaded: LoadedSuite,
    teams: Mapping[str, TeamSpec],
    settings: Settings,
) -> Frozen:
    """Fix the contract of ``batch_team``, or hold this launch against the one that was fixed before.

    Tasks and team are stored along. Two launches at once agree through a lock in the database.

    Raises:
        TeamConfigMismatchError: the team's text differs from what is stored under its id.
        ContractMismatchError: the batch began under other conditions; names every difference.
    """
    spec = team(teams, batch_team.team)
    register_teams(connection, teams, [spec.team_id])
    contract = contract_of(loaded, spec, settings)
    connection.execute(text("select pg_advisory_xact_lock(hashtext(:key))"), {"key": f"contract {batch_team.key}"})
    stored = connection.execute(
        select(tables.batches.c.contract).where(
            tables.batches.c.batch_id == batch_team.batch, tables.batches.c.team_id == batch_team.team
        )
    ).scalar_one_or_none()
    if stored is not None:
        found = differences(stored, contract)
        if found:
            raise ContractMismatchError(
                f"batch {batch_team.key} began under other conditions ({'; '.join(found)}); "
                "set them back to go on with it, or start a new batch id"
            )
        return Frozen(contract, first=False)
    store_tasks(connection, loaded)
    connection.execute(
        insert(tables.batches).values(
            batch_id=batch_team.batch,
            team_id=batch_team.team,
            suite=loaded.suite.name,
            benchmark=loaded.suite.benchmark,
            suite_hash=loaded.content_hash,
            contract=contract,
            contract_hash=sha256_of(contract),
            info=circumstances(settings),
            provider=settings.llm_provider,
            model=model_name(settings),
            scripted=settings.llm_provider == "scripted",
        )
    )
    return Frozen(contract, first=True)


def store_tasks(connection: Connection, loaded: LoadedSuite) -> None:
    """Store every task of a suite under its content hash; what is there already stays as it is."""
    rows = [
        {
            "task_id": task.task_id,
            "content_hash": task.content_hash,
            "benchmark": task.benchmark,
            "level": task.level,
            "question": task.question,
            "gold": task.gold,
            "file_name": task.attachment.file_name if task.attachment else None,
            "file_sha256": task.attachment.sha256 if task.attachment else None,
            "file_size": task.attachment.size if task.attachment else None,
            "requires_web": task.requires_web,
            "extra": task.extra,
        }
        for task in loaded.tasks
    ]
    if rows:
        connection.execute(insert(tables.tasks).on_conflict_do_nothing(), rows)
