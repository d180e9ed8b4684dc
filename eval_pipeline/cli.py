"""The ``eval-pipeline`` command: a thin way in for people who think in batches.

Every command is a few lines over the same assets and functions that the Dagster UI uses. Printing is in
:mod:`eval_pipeline.console`, launching in :mod:`eval_pipeline.launcher`.
"""

from __future__ import annotations

import io
import logging
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import typer

from eval_pipeline import console
from eval_pipeline.errors import EvalPipelineError

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    help="Evaluates teams of LLM agents: every (task, attempt) is traced, scored and resumable.",
)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")]
SuiteName = Annotated[str, typer.Option("--suite", help="A suite of suites.yaml.")]
Batch = Annotated[str, typer.Option("--batch", help="The batch id, such as first-try.")]

_CRASHED = 1
_USAGE = 2
_INTERRUPTED = 130


@app.command()
def demo(
    batch: Annotated[str, typer.Option("--batch", help="The batch id; the same id again resumes.")] = "demo",
    as_json: Json = False,
) -> None:
    """Run all six teams over the sample suite with the scripted model and compare them."""
    from eval_pipeline.commands.demo import run_demo

    raise typer.Exit(run_demo(batch, as_json=as_json))


@app.command("init-db")
def init_db(as_json: Json = False) -> None:
    """Bring the database up to date: migrations and the registered teams. Safe to repeat."""
    from eval_pipeline.commands.setup import initialise

    applied, where = initialise()
    if as_json:
        console.print_json({"applied": applied, "database": where})
    else:
        console.say(f"{where}: {', '.join(applied) or 'nothing to do, the schema is up to date'}")


@app.command("stop-db")
def stop_db() -> None:
    """Stop the embedded PostgreSQL of this home, whoever started it."""
    from eval_pipeline.commands.setup import stop_embedded

    console.say(stop_embedded())


@app.command()
def load(
    suite: SuiteName = "sample",
    batch: Annotated[str | None, typer.Option("--batch", help="Also register this batch …")] = None,
    team: Annotated[list[str] | None, typer.Option("--team", help="… under these teams.")] = None,
    as_json: Json = False,
) -> None:
    """Load a suite's tasks, register its keys in Dagster and, if asked, the keys of a batch."""
    from eval_pipeline.commands.batches import load_suite_keys

    report = load_suite_keys(suite, batch, team or [])
    if as_json:
        console.print_json(asdict(report))
    else:
        keys = ", ".join(report.batch_team) or "none asked for"
        figures = f"{report.tasks} tasks, {report.cells} cells, hash {report.suite_hash[:12]}"
        console.say(f"suite {suite}: {figures}; batches: {keys}")


@app.command("smoke-llm")
def smoke_llm(as_json: Json = False) -> None:
    """Make one function-calling round trip with the configured endpoint and say what works."""
    from eval_pipeline.commands.setup import smoke_endpoint

    raise typer.Exit(smoke_endpoint(as_json=as_json))


@app.command()
def run(
    batch: Batch,
    team: Annotated[list[str], typer.Option("--team", help="A team id; may be given several times.")],
    suite: Annotated[str | None, typer.Option("--suite", help="A suite of suites.yaml.")] = None,
    benchmark: Annotated[
        str | None,
        typer.Option("--benchmark", help="Instead of --suite, where one suite has this benchmark."),
    ] = None,
    level: Annotated[list[int] | None, typer.Option("--level", help="Only tasks of this level; may repeat.")] = None,
    exclude_web: Annotated[bool, typer.Option("--exclude-web", help="Leave out tasks that need the web.")] = False,
    task_ids: Annotated[str | None, typer.Option("--task-ids", help="Only these tasks, separated by commas.")] = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="Only the first N tasks.")] = None,
    attempts: Annotated[int | None, typer.Option("--attempts", min=1, help="Only attempts 1 to N.")] = None,
    concurrency: Annotated[int | None, typer.Option("--concurrency", min=1, help="Runs at once.")] = None,
    retry_crashed: Annotated[bool, typer.Option("--retry-crashed", help="Start crashed runs again.")] = False,
    as_json: Json = False,
) -> None:
    """Run a batch, or go on with it: what has completed is skipped. Exits with 1 when a cell has no completed run."""
    from eval_pipeline.commands.batches import BatchRequest, run_batches
    from eval_pipeline.launcher import Selection

    if concurrency is not None:
        os.environ["EVAL_CONCURRENCY"] = str(concurrency)
    ids = tuple(part.strip() for part in task_ids.split(",") if part.strip()) if task_ids is not None else None
    selection = Selection(tuple(level) if level else None, exclude_web, ids, limit, attempts)
    request = BatchRequest(batch, tuple(team), suite, benchmark, selection, retry_crashed)
    raise typer.Exit(run_batches(request, as_json=as_json))


@app.command()
def status(
    batch: Annotated[str | None, typer.Argument(help="A batch id or batch@team; without, the latest batches.")] = None,
    as_json: Json = False,
) -> None:
    """Show how far a batch is: planned, completed, crashed, pass@1, tokens, and what is left."""
    from eval_pipeline.commands.reading import show_status

    show_status(batch, as_json=as_json)


@app.command()
def trace(
    run: Annotated[str, typer.Argument(help="A run id, or a cell: batch@team|task#attempt.")],
    full: Annotated[bool, typer.Option("--full", help="Show long texts whole.")] = False,
    as_json: Json = False,
) -> None:
    """Print the transcript of one run: who spoke, why, which tools with what result."""
    from eval_pipeline.commands.reading import show_trace

    show_trace(run, full=full, as_json=as_json)


@app.command()
def check(as_json: Json = False) -> None:
    """Run the consistency queries. Exits with 1 when one finds something."""
    from eval_pipeline.commands.reading import show_checks

    raise typer.Exit(show_checks(as_json=as_json))


@app.command("compare")
def compare_batches(
    baseline: Annotated[str, typer.Argument(help="The condition to compare with: batch@team.")],
    others: Annotated[list[str], typer.Argument(help="One or more conditions: batch@team.")],
    common: Annotated[
        bool, typer.Option("--common", help="Cut different suites down to the tasks with the same content.")
    ] = False,
    without_flagged: Annotated[
        bool, typer.Option("--without-flagged", help="Leave out runs whose contamination is decided.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Compare batches task by task: paired difference with its interval, exact test, tasks gained and lost."""
    from eval_pipeline.commands.compare import show_comparison
    from eval_pipeline.ids import BatchTeam

    conditions = [BatchTeam.parse(key, "compare") for key in (baseline, *others)]
    show_comparison(conditions[0], conditions[1:], common=common, without_flagged=without_flagged, as_json=as_json)


@app.command()
def failures(
    batch: Annotated[str, typer.Option("--batch", help="The condition to look at: batch@team.")],
    mode: Annotated[str | None, typer.Option("--mode", help="Only this mode, such as step_repetition.")] = None,
    again: Annotated[bool, typer.Option("--again", help="Compute all signals anew.")] = False,
    judge: Annotated[
        bool, typer.Option("--judge", help="Ask the configured model too; its labels stand beside the rules'.")
    ] = False,
    judge_runs: Annotated[int, typer.Option("--judge-runs", min=1, help="Most runs that it is asked about.")] = 20,
    judge_tokens: Annotated[
        int, typer.Option("--judge-tokens", min=1, help="Tokens after which it is asked no more.")
    ] = 200_000,
    as_json: Json = False,
) -> None:
    """Show why runs failed: rule-based signals from their traces, named by the modes of MAST."""
    from eval_pipeline.commands.failures import JudgeRequest, show_failures
    from eval_pipeline.ids import BatchTeam

    request = JudgeRequest(judge_runs, judge_tokens) if judge else None
    show_failures(BatchTeam.parse(batch, "--batch"), mode, request, again=again, as_json=as_json)


@app.command()
def contamination(
    batch: Annotated[str, typer.Option("--batch", help="The condition to look at: batch@team.")],
    again: Annotated[bool, typer.Option("--again", help="Look at every run anew.")] = False,
    as_json: Json = False,
) -> None:
    """Show runs that touched an answer key, another task's file or a public copy of the benchmark."""
    from eval_pipeline.commands.contamination import show_contamination
    from eval_pipeline.ids import BatchTeam

    show_contamination(BatchTeam.parse(batch, "--batch"), again=again, as_json=as_json)


@app.command()
def roles(
    batch: Annotated[str, typer.Option("--batch", help="The condition to look at: batch@team.")],
    as_json: Json = False,
) -> None:
    """Show what each role did and cost, the selector included, who handed over to whom, and how runs ended."""
    from eval_pipeline.commands.roles import show_roles
    from eval_pipeline.ids import BatchTeam

    show_roles(BatchTeam.parse(batch, "--batch"), as_json=as_json)


@app.command()
def ask(
    name: Annotated[str | None, typer.Argument(help="A question's name; without, all questions are listed.")] = None,
    batch: Annotated[
        str | None, typer.Option("--batch", help="Only this batch: batch@team, or a batch id for all its teams.")
    ] = None,
    suite: Annotated[str | None, typer.Option("--suite", help="Only batches of this suite.")] = None,
    tool: Annotated[
        str | None, typer.Option("--tool", help="Only calls of this tool, where the question has it.")
    ] = None,
    rows: Annotated[int, typer.Option("--rows", min=1, max=10_000, help="Most rows to show.")] = 20,
    as_json: Json = False,
) -> None:
    """Answer an everyday question about events, such as tool_errors; without a name, list the questions."""
    from eval_pipeline.commands.ask import AskRequest, ask_question, list_questions

    if name is None:
        list_questions(as_json=as_json)
    else:
        ask_question(AskRequest(name, batch, suite, tool, rows), as_json=as_json)


@app.command("export")
def export_rows(
    batch: Annotated[str, typer.Option("--batch", help="The condition to export: batch@team.")],
    output: Annotated[Path, typer.Option("--output", help="A folder; the files go into one of the batch's name.")],
    form: Annotated[
        Literal["jsonl", "csv", "parquet", "otlp"],
        typer.Option("--format", help="csv is for spreadsheets, otlp is for viewers of OpenTelemetry traces."),
    ] = "jsonl",
    as_json: Json = False,
) -> None:
    """Write a batch's runs, events, model calls and metrics to files, masked as they are stored."""
    from eval_pipeline.commands.export import export
    from eval_pipeline.ids import BatchTeam

    export(BatchTeam.parse(batch, "--batch"), form, output, as_json=as_json)


@app.command()
def archive(
    before: Annotated[
        str | None, typer.Option("--before", help="Archive the whole months before this one, such as 2026-11.")
    ] = None,
    to: Annotated[
        Path | None, typer.Option("--to", help="A folder, which gets one for each month; without, one of the home.")
    ] = None,
    restore: Annotated[
        Path | None, typer.Option("--restore", help="Bring back the month that is in this folder.")
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Write the files and leave the database as it is.")] = False,
    as_json: Json = False,
) -> None:
    """Move the traces of old months into Parquet files, or back; without an option, list what is archived."""
    from eval_pipeline.commands.archive import ArchiveRequest, run_archive

    run_archive(ArchiveRequest(before, to, restore, keep), as_json=as_json)


@app.command()
def rescore(
    batch: Annotated[str, typer.Option("--batch", help="The condition to score again: batch@team.")],
    as_json: Json = False,
) -> None:
    """Score stored answers again with the present scorer; old scores stay under their version. Calls no model."""
    from eval_pipeline.commands.rescoring import rescore_batch
    from eval_pipeline.ids import BatchTeam

    rescore_batch(BatchTeam.parse(batch, "--batch"), verdicts=True, as_json=as_json)


@app.command()
def ground(
    batch: Annotated[str, typer.Option("--batch", help="The condition to ground: batch@team.")],
    as_json: Json = False,
) -> None:
    """Compute metrics and grounding of stored runs again, without touching verdicts. Calls no model."""
    from eval_pipeline.commands.rescoring import rescore_batch
    from eval_pipeline.ids import BatchTeam

    rescore_batch(BatchTeam.parse(batch, "--batch"), verdicts=False, as_json=as_json)


@app.command()
def report(
    batch: Annotated[str, typer.Option("--batch", help="The condition to report on: batch@team.")],
    against: Annotated[
        str | None,
        typer.Option("--against", help="A baseline batch@team; without, the parent team's latest batch that fits."),
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", help="A folder; without, EVAL_REPORT_DIR.")] = None,
    protect_golds: Annotated[
        bool, typer.Option("--protect-golds", help="Keep gold answers out of it, whatever the suite says.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Write a batch's report: one HTML page with figures, plots, failures and every transcript."""
    from eval_pipeline.commands.report import ReportRequest, write_report
    from eval_pipeline.ids import BatchTeam

    baseline = BatchTeam.parse(against, "--against") if against else None
    request = ReportRequest(BatchTeam.parse(batch, "--batch"), baseline, output, protect_golds)
    write_report(request, as_json=as_json)


@app.command()
def gate(
    batch: Annotated[str, typer.Option("--batch", help="The condition to judge: batch@team.")],
    min_pass: Annotated[
        float | None, typer.Option("--min-pass", min=0, max=1, help="Least pass@1 over the planned runs, 0 to 1.")
    ] = None,
    max_crashed: Annotated[
        float, typer.Option("--max-crashed", min=0, max=1, help="Largest share of crashed runs.")
    ] = 0.05,
    against: Annotated[
        str | None, typer.Option("--against", help="A baseline batch@team that it must not be worse than.")
    ] = None,
    junit: Annotated[Path | None, typer.Option("--junit", help="Write JUnit XML to this file.")] = None,
    as_json: Json = False,
) -> None:
    """Hold a batch against bounds, for CI. Exits with 1 when one is missed."""
    from eval_pipeline.commands.gate import GateRequest, pass_gate
    from eval_pipeline.ids import BatchTeam

    baseline = BatchTeam.parse(against, "--against") if against else None
    request = GateRequest(BatchTeam.parse(batch, "--batch"), min_pass, max_crashed, baseline, junit)
    raise typer.Exit(pass_gate(request, as_json=as_json))


experiment_app = typer.Typer(
    no_args_is_help=True, help="The experiments ledger: one hypothesis, one change, one verdict."
)
app.add_typer(experiment_app, name="experiment")


@experiment_app.command("list")
def experiment_list(as_json: Json = False) -> None:
    """Show every experiment, and the lineage of the teams with its verdicts."""
    from eval_pipeline.commands.experiments import show_ledger

    show_ledger(as_json=as_json)


@experiment_app.command("open")
def experiment_open(
    experiment_id: Annotated[str, typer.Argument(help="An id, such as EXP-50.")],
    team: Annotated[str, typer.Option("--team", help="The team that makes the one change.")],
    hypothesis: Annotated[str, typer.Option("--hypothesis", help="What the change should do, and why.")],
    as_json: Json = False,
) -> None:
    """Open an experiment about what a team changes against its parent."""
    from eval_pipeline.commands.experiments import open_new

    open_new(experiment_id, hypothesis, team, as_json=as_json)


@experiment_app.command("close")
def experiment_close(
    experiment_id: Annotated[str, typer.Argument(help="An id, such as EXP-50.")],
    before: Annotated[str, typer.Option("--before", help="The batch id of the parent team.")],
    after: Annotated[str, typer.Option("--after", help="The batch id of the changed team.")],
    common: Annotated[bool, typer.Option("--common", help="Compare only the tasks with the same content.")] = False,
    as_json: Json = False,
) -> None:
    """Compare two batches and close the experiment by the interval of their difference."""
    from eval_pipeline.commands.experiments import close

    close(experiment_id, before, after, common=common, as_json=as_json)


def main() -> None:
    """Run the command line. A user's mistake is one line on standard error and exit code 2."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    for stream in (sys.stdout, sys.stderr):
        # a console that knows no Hangul shows escapes instead of ending the command
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except EvalPipelineError as error:
        console.note(f"error: {error}")
        sys.exit(_USAGE)
    except KeyboardInterrupt:
        console.note("interrupted")
        sys.exit(_INTERRUPTED)


if __name__ == "__main__":
    main()
