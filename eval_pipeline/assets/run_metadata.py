"""What the UI shows of one cell: verdict, answer, figures, and the way to its transcript."""

from __future__ import annotations

import dagster as dg

from eval_pipeline.execution.cells import RunSummary
from eval_pipeline.execution.contract import model_name
from eval_pipeline.home import report_dir
from eval_pipeline.ids import BatchTeam, TaskAttempt
from eval_pipeline.reporting.publish import file_name
from eval_pipeline.settings import Settings

RunMetadata = dict[str, dg.MetadataValue | int | float | str]

_ANSWER = 300


def verdict(run: RunSummary) -> str:
    """The verdict in words: right, wrong, wrong (no answer line), or crashed with its class."""
    if run.status != "completed":
        return f"{run.status} ({run.error_class})" if run.error_class else run.status
    if run.success:
        return "right"
    return "wrong" if run.format_valid else "wrong (no valid answer)"


def shown_model(settings: Settings) -> str:
    """The model's name; a scripted one is called so wherever its figures are shown."""
    return "scripted model, no real one" if settings.llm_provider == "scripted" else model_name(settings)


def place_in_report(settings: Settings, batch_team: BatchTeam, cell: TaskAttempt) -> dg.MetadataValue:
    """Where the run's transcript stands in the report of its batch, which follows the batch by itself."""
    page = report_dir(settings) / file_name(batch_team)
    return dg.MetadataValue.path(f"{page}#run/{cell.task_id}/{cell.attempt}")


def run_metadata(run: RunSummary, model: str, *, skipped: bool) -> RunMetadata:
    """Figures of a completed run. ``skipped``: this launch found it done and called no model."""
    metadata: RunMetadata = {
        "verdict": verdict(run),
        "model": model,
        "success": int(bool(run.success)),
        "answer": (run.final_answer or "–")[:_ANSWER],
        "terminated_by": run.terminated_by or "–",
        "turns": run.turns,
        "tool_calls": run.tool_calls,
        "tool_errors": run.tool_errors,
        "tokens": _known(run.tokens_in, run.tokens_out),
        "all_tokens": _known(run.all_tokens),
        "model_calls": run.model_calls,
        "latency_s": round((run.latency_ms or 0) / 1000, 3),
        "try": run.try_no,
        "run_id": str(run.run_id),
        "transcript": dg.MetadataValue.md(f"`eval-pipeline trace {run.run_id}`"),
    }
    if run.cost is not None:
        metadata["cost"] = run.cost
    if run.events_dropped:
        metadata["events_dropped"] = run.events_dropped
    if skipped:
        metadata["skipped"] = "done before; this launch called no model for it"
    return metadata


def _known(*tokens: int | None) -> int | str:
    counts = [count for count in tokens if count is not None]
    return sum(counts) if len(counts) == len(tokens) else "not reported"


def crash_metadata(run: RunSummary, model: str) -> RunMetadata:
    """Why a run crashed, and how far it had come."""
    return {
        "verdict": verdict(run),
        "model": model,
        "error": run.error_message or "–",
        "turns": run.turns,
        "tool_calls": run.tool_calls,
        "all_tokens": _known(run.all_tokens),
        "model_calls": run.model_calls,
        "try": run.try_no,
        "run_id": str(run.run_id),
        "transcript": dg.MetadataValue.md(f"`eval-pipeline trace {run.run_id}`"),
    }


def events_metadata(run: RunSummary) -> RunMetadata:
    """The trace of a run: how long it is, and the way to it."""
    return {
        "run_id": str(run.run_id),
        "turns": run.turns,
        "tool_calls": run.tool_calls,
        "events_dropped": run.events_dropped,
        "transcript": dg.MetadataValue.md(f"`eval-pipeline trace {run.run_id}`"),
    }
