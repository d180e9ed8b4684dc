"""What all runs of one launch share: settings, condition, limits. Made once, before any model client exists."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property

from sqlalchemy import Engine

from eval_pipeline.agents.retry import RetryPolicy
from eval_pipeline.agents.run import RunLimits
from eval_pipeline.benchmarks.base import Benchmark, Task
from eval_pipeline.benchmarks.registry import benchmark
from eval_pipeline.clock import Clock, SystemClock
from eval_pipeline.db.event_partitions import make_ahead
from eval_pipeline.errors import SuiteError
from eval_pipeline.execution.cells import Cell
from eval_pipeline.execution.contract import Frozen, freeze
from eval_pipeline.ids import BatchTeam, TaskAttempt, shown
from eval_pipeline.settings import Settings
from eval_pipeline.suites import LoadedSuite
from eval_pipeline.teams.registry import team
from eval_pipeline.teams.spec import TeamSpec
from eval_pipeline.tools.sandbox import require


@dataclass(frozen=True)
class Launch:
    """One launch of one ``batch@team``, its contract already held against the stored one.

    ``begun_at`` is when somebody asked for it, which may be long before a worker comes to it.
    """

    settings: Settings
    engine: Engine
    batch_team: BatchTeam
    loaded: LoadedSuite
    spec: TeamSpec
    benchmark: Benchmark
    frozen: Frozen
    retry_crashed: bool = True
    dagster_run_id: str | None = None
    begun_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    clock: Clock = field(default_factory=SystemClock)

    @cached_property
    def _tasks(self) -> dict[str, Task]:
        return {task.task_id: task for task in self.loaded.tasks}

    def limits(self) -> RunLimits:
        settings = self.settings
        return RunLimits(
            max_messages=settings.max_messages,
            timeout_s=settings.run_timeout_s,
            stall_s=settings.llm_timeout_s,
            max_tokens=settings.max_tokens_per_run,
            max_cost=settings.max_cost_per_run,
            tool_timeout_s=settings.tool_timeout_s,
        )

    def retry_policy(self) -> RetryPolicy:
        settings = self.settings
        return RetryPolicy(
            retries=settings.llm_retries, base_s=settings.llm_backoff_s, budget_s=settings.llm_retry_budget_s
        )

    def cost(self) -> Callable[[int, int], float | None]:
        """A function from (prompt tokens, completion tokens) to money; it gives ``None`` where prices are unset."""
        price_in, price_out = self.settings.price_input, self.settings.price_output

        def of_tokens(tokens_in: int, tokens_out: int) -> float | None:
            if price_in is None or price_out is None:
                return None
            return (tokens_in * price_in + tokens_out * price_out) / 1_000_000

        return of_tokens

    def cell(self, task_attempt: TaskAttempt) -> Cell:
        """The cell of this launch with that key.

        Raises:
            SuiteError: the suite has no such task, or fewer attempts.
        """
        suite = self.loaded.suite
        task = self._tasks.get(task_attempt.task_id)
        if task is None:
            raise SuiteError(
                f"suite {suite.name} has no task {shown(task_attempt.task_id)} any more; "
                "load the suite again, or start a new batch if its tasks have changed"
            )
        if task_attempt.attempt > suite.attempts:
            raise SuiteError(
                f"suite {suite.name} has {suite.attempts} attempts per task, not {task_attempt.attempt}; "
                "more attempts are another suite"
            )
        return Cell(self.batch_team, task, task_attempt.attempt)


def open_launch(
    settings: Settings,
    engine: Engine,
    batch_team: BatchTeam,
    loaded: LoadedSuite,
    teams: Mapping[str, TeamSpec],
    *,
    retry_crashed: bool = True,
    dagster_run_id: str | None = None,
    begun_at: datetime | None = None,
) -> Launch:
    """Hold the contract of ``batch_team`` against this launch and return what its runs share.

    Raises:
        SuiteError: a team for one-line answers on a benchmark scored on full text, or the reverse.
        TeamConfigMismatchError: see :func:`~eval_pipeline.execution.contract.freeze`.
        ContractMismatchError: see :func:`~eval_pipeline.execution.contract.freeze`.
        SettingsError: an endpoint is asked for that is not configured.
    """
    kind = benchmark(loaded.suite.benchmark)
    spec = team(teams, batch_team.team)
    if spec.answers != kind.answers:
        raise SuiteError(
            f"team {spec.team_id} answers with a {spec.answers}, but suite {loaded.suite.name} ({kind.name}) is scored "
            f"on a {kind.answers}; choose a team with 'answers: {kind.answers}'"
        )
    if settings.llm_provider == "openai":
        settings.require_endpoint()
    if "python_exec" in (*spec.tools, *kind.tools):
        require(settings.sandbox_minimum)
    with engine.begin() as connection:
        frozen = freeze(connection, batch_team, loaded, teams, settings)
    make_ahead(engine)
    begun_at = begun_at or datetime.now(UTC)
    return Launch(settings, engine, batch_team, loaded, spec, kind, frozen, retry_crashed, dagster_run_id, begun_at)
