"""One cell: begin a try, stage the file, run the team, score the answer, commit. Whatever happens, the row says so."""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from uuid import UUID

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from eval_pipeline.agents.call_log import CallLog
from eval_pipeline.agents.models import Models
from eval_pipeline.agents.run import OfferedTool, RunOutcome, TeamRun
from eval_pipeline.benchmarks.base import Answer, Evidence, Score
from eval_pipeline.errors import ErrorClass, EvalPipelineError
from eval_pipeline.execution import store
from eval_pipeline.execution.cells import Cell, CellEnd, CellResult, RunSummary
from eval_pipeline.execution.circuit import OpenCircuit, count_end, endpoint_of, open_circuit, pause
from eval_pipeline.execution.evidence import evidence_of
from eval_pipeline.execution.group_commit import GroupCommit
from eval_pipeline.execution.launch import Launch
from eval_pipeline.execution.patience import committed, in_database
from eval_pipeline.execution.scores import store_score
from eval_pipeline.execution.summaries import first_try, live_run
from eval_pipeline.home import stage_dir
from eval_pipeline.ids import TaskAttempt
from eval_pipeline.run_ids import new_run_id
from eval_pipeline.settings import secrets
from eval_pipeline.teams.inputs import INPUTS
from eval_pipeline.tools.context import ToolContext
from eval_pipeline.tools.registry import TOOLS
from eval_pipeline.tools.sandbox import best_level
from eval_pipeline.tools.staging import stage, stage_materials
from eval_pipeline.tracing.logger import TraceLogger
from eval_pipeline.tracing.masking import Masker
from eval_pipeline.tracing.text import clean
from eval_pipeline.tracing.writer import TraceWriter

_log = logging.getLogger(__name__)
_INTERRUPTED = "the launch was interrupted"
_MESSAGE_LENGTH = 2000
_CLOSED_WITHIN_S = 10.0
"""How long a cancelled launch waits for a database that is away before it leaves a run to the next launch."""


_Beginning = store.Begun | store.NotBegun | OpenCircuit


@dataclass(frozen=True, slots=True)
class _Ended:
    """How the team's part of a run ended, before it is scored. Tokens are ``None`` where no call has told its usage."""

    outcome: RunOutcome
    calls: int = 0
    tokens_in: int | None = None
    tokens_out: int | None = None

    def known(self, tokens: int | None) -> int | None:
        """``tokens``, which are none at all if no call was made."""
        return tokens if tokens is not None or self.calls else 0


class CellRunner:
    """Runs the cells of one launch.

    ``active`` are the runs that are under way, for the heartbeat; ``circuit`` is why no further run starts, once that
    is so.
    """

    def __init__(self, launch: Launch, models: Models, on_begin: Callable[[TaskAttempt], None]) -> None:
        self._launch = launch
        self._models = models
        self._commits = GroupCommit(launch.engine)
        self._traces = TraceWriter(launch.engine)
        self._on_begin = on_begin
        self._masker = Masker(secrets(launch.settings))
        self._endpoint = endpoint_of(launch.settings)
        self.active: set[UUID] = set()
        self.circuit: OpenCircuit | None = None

    def close(self) -> None:
        """Let go of the threads, once no run is under way."""
        self._commits.close()

    async def run(self, cell: Cell) -> CellResult:
        """Run one cell to a committed end.

        A database that cannot be reached makes the result a crash of class database; nothing else is raised but
        cancellation, after the try has been closed as interrupted.
        """
        try:
            return await self._run(cell)
        except SQLAlchemyError as error:
            reason = self._masker.text(str(getattr(error, "orig", None) or error).split("\n", 1)[0])
            return CellResult(cell.task_attempt, CellEnd.CRASHED, message=f"database: {reason}")

    async def _run(self, cell: Cell) -> CellResult:
        await self._models.gate.may_begin()
        if self.circuit is not None:
            return self._not_started(cell, self.circuit)
        run_id = new_run_id()
        beginning = asyncio.ensure_future(
            committed(self._commits, lambda connection: self._begin(connection, cell, run_id))
        )
        try:
            begun = await asyncio.shield(beginning)
            if isinstance(begun, OpenCircuit):
                self.circuit = begun
                return self._not_started(cell, begun)
            if isinstance(begun, store.NotBegun):
                return await self._not_begun(cell, begun)
            self.active.add(run_id)
            self._on_begin(cell.task_attempt)
            summary = await self._one_try(cell, begun)
        except asyncio.CancelledError:
            await asyncio.shield(self._interrupted(beginning, run_id))
            raise
        finally:
            self.active.discard(run_id)
        end = CellEnd.COMPLETED if summary.status == "completed" else CellEnd.CRASHED
        message = f"{summary.error_class}: {summary.error_message}" if summary.error_class else ""
        return CellResult(cell.task_attempt, end, summary, retried=begun.try_no > 1, message=message)

    async def _interrupted(self, beginning: asyncio.Future[_Beginning], run_id: UUID) -> None:
        # a thread goes on whatever becomes of this task: a row that it makes must not stay running
        await asyncio.wait({beginning}, timeout=_CLOSED_WITHIN_S)
        beginning.cancel()
        await committed(
            self._commits,
            lambda connection: store.close_interrupted(connection, run_id, _INTERRUPTED),
            give_up_after_s=_CLOSED_WITHIN_S,
        )

    def _not_started(self, cell: Cell, circuit: OpenCircuit) -> CellResult:
        return CellResult(cell.task_attempt, CellEnd.NOT_STARTED, message=circuit.line())

    def _begin(self, connection: Connection, cell: Cell, run_id: UUID) -> _Beginning:
        launch = self._launch
        circuit = open_circuit(connection, self._endpoint)
        if circuit is not None:
            pause(connection, circuit, launch.batch_team)
            return circuit
        return store.begin_try(
            connection,
            cell,
            retry_crashed=launch.retry_crashed,
            dagster_run_id=launch.dagster_run_id,
            run_id=run_id,
        )

    async def _not_begun(self, cell: Cell, found: store.NotBegun) -> CellResult:
        summary = await committed(
            self._commits, lambda connection: live_run(connection, cell.batch_team, cell.task_attempt)
        )
        match found.status:
            case "completed":
                return CellResult(cell.task_attempt, CellEnd.SKIPPED, summary)
            case "crashed":
                return CellResult(cell.task_attempt, CellEnd.LEFT, summary, message="crashed before; not retried")
            case _:
                message = f"{found.worker or 'another worker'} is running it right now"
                return CellResult(cell.task_attempt, CellEnd.BUSY, message=message)

    async def _one_try(self, cell: Cell, begun: store.Begun) -> RunSummary:
        run_id = begun.run_id
        logger = TraceLogger(self._launch.engine, run_id, self._launch.clock, self._masker, writer=self._traces)
        why = _INTERRUPTED
        try:
            ended = await self._team(cell, logger)
            why = ended.outcome.error_message or ended.outcome.stop_reason or "the run has ended"
        finally:
            logger.close_open_calls(why)
            await logger.close()
        evidence: tuple[Evidence, ...] = ()
        if self._launch.benchmark.needs_evidence and ended.outcome.error_class is None:
            evidence = await in_database(lambda: self._evidence(run_id))
        figures, score = await asyncio.to_thread(self._verdict, cell, ended, logger, evidence)
        return await committed(self._commits, lambda connection: self._commit(connection, cell, begun, figures, score))

    async def _team(self, cell: Cell, logger: TraceLogger) -> _Ended:
        log: CallLog | None = None
        try:
            team, message = await self._made(cell, logger)
            log = team.log
            outcome = await team.run(message)
        except EvalPipelineError as error:
            outcome = RunOutcome(None, error_class=ErrorClass.TEAM, error_message=str(error))
        except Exception as error:  # an accident of one run must not end the other runs of the launch
            _log.error("run of %s ended in an error of ours: %s", cell.task_attempt.key, self._masked_traceback())
            text = f"{type(error).__name__}: {error}".split("\n", 1)[0]
            outcome = RunOutcome(None, error_class=ErrorClass.UNKNOWN, error_message=text)
        if log is None:
            return _Ended(outcome)
        return _Ended(outcome, log.calls, log.tokens_in, log.tokens_out)

    async def _made(self, cell: Cell, logger: TraceLogger) -> tuple[TeamRun, str]:
        """The team of one run and its run message, with the task's file staged."""
        launch, task, folder = self._launch, cell.task, stage_dir(self._launch.settings)
        staged = materials = None
        if task.attachment is not None:
            staged = await asyncio.to_thread(stage, task.task_id, task.attachment, folder)
        if task.materials:
            materials = await asyncio.to_thread(stage_materials, task, folder)
        context = ToolContext(
            attachment=staged,
            materials=materials,
            dsn_env=task.dsn_env,
            sandbox_minimum=launch.settings.sandbox_minimum,
        )
        tools = [
            OfferedTool(tool.name, tool.description, tool.bind(context))
            for tool in (TOOLS[key] for key in (*launch.spec.tools, *launch.benchmark.tools))
        ]
        # the format block belongs to the question: the line about the attachment stays the last one
        question = "\n\n".join(filter(None, (task.question, launch.benchmark.format_block)))
        message = INPUTS[launch.spec.input](question, staged)
        team = TeamRun(
            launch.spec,
            tools,
            self._models.for_run(launch.spec.team_id, cell.task.task_id),
            launch.limits(),
            clock=launch.clock,
            retry=launch.retry_policy(),
            on_item=logger.observe,
            on_call=logger.model_call,
            cost=launch.cost(),
        )
        return team, message

    def _masked_traceback(self) -> str:
        return self._masker.text(traceback.format_exc())

    def _verdict(
        self, cell: Cell, ended: _Ended, logger: TraceLogger, evidence: tuple[Evidence, ...]
    ) -> tuple[dict[str, object], Score | None]:
        """The columns of the run's row, and the score of a completed run."""
        outcome, totals = ended.outcome, logger.totals
        figures: dict[str, object] = {
            "final_answer": totals.final_answer,
            "turns": totals.turns,
            "tool_calls": totals.tool_calls,
            "tool_errors": totals.tool_errors,
            "selector_fallbacks": totals.selector_fallbacks,
            "tokens_in": ended.known(totals.tokens_in),
            "tokens_out": ended.known(totals.tokens_out),
            "latency_ms": totals.latency_ms,
            "events_dropped": logger.events_dropped,
            "text_repairs": totals.text_repairs,
            "all_tokens_in": ended.known(ended.tokens_in),
            "all_tokens_out": ended.known(ended.tokens_out),
            "model_calls": ended.calls,
            "cost": self._cost(ended),
            "abandoned": outcome.abandoned,
            "sandbox_level": best_level() if "python_exec" in self._launch.spec.tools else None,
        }
        if outcome.error_class is not None:
            return figures | self._crash(outcome.error_class, outcome.error_message or ""), None
        try:
            answer = Answer(totals.final_answer, totals.full_text or "", evidence)
            score = self._launch.benchmark.score(cell.task, answer, self._launch.loaded.suite.thresholds)
        except Exception as error:  # an accident of one score must not end the other runs of the launch
            _log.error("scoring %s failed: %s", cell.task_attempt.key, self._masked_traceback())
            return figures | self._crash(ErrorClass.UNKNOWN, f"scorer: {type(error).__name__}: {error}"), None
        verdict = {
            "status": "completed",
            "terminated_by": outcome.terminated_by,
            "success": score.success,
            "format_valid": score.format_valid,
            "score_reason": self._fit(score.reason),
            "scorer_version": self._launch.benchmark.scorer_version,
        }
        return figures | verdict, score

    def _cost(self, ended: _Ended) -> float | None:
        tokens_in, tokens_out = ended.known(ended.tokens_in), ended.known(ended.tokens_out)
        if tokens_in is None or tokens_out is None:
            return None
        return self._launch.cost()(tokens_in, tokens_out)

    def _crash(self, error_class: ErrorClass, message: str) -> dict[str, object]:
        return {
            "status": "crashed",
            "error_class": error_class.value,
            "error_message": self._fit(message),
        }

    def _fit(self, text: str) -> str:
        """A text of ours that may quote what an endpoint or a model said."""
        return self._masker.text(clean(text)[0])[:_MESSAGE_LENGTH]

    def _evidence(self, run_id: UUID) -> tuple[Evidence, ...]:
        with self._launch.engine.connect() as connection:
            return evidence_of(connection, run_id)

    def _commit(
        self,
        connection: Connection,
        cell: Cell,
        begun: store.Begun,
        figures: Mapping[str, object],
        score: Score | None,
    ) -> RunSummary:
        run_id = begun.run_id
        ours = store.finish(connection, run_id, figures)
        if ours:
            if score is not None:
                fit = replace(score, reason=self._fit(score.reason))
                store_score(connection, run_id, self._launch.benchmark, fit)
            failed = None if score is not None else str(figures["error_class"])
            message = str(figures.get("error_message") or "")
            count_end(connection, self._endpoint, self._launch.batch_team, run_id, failed, message)
        if ours and begun.try_no == 1:
            return first_try(cell, run_id, figures)
        return live_run(connection, cell.batch_team, cell.task_attempt)
