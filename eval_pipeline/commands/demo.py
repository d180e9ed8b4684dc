"""``demo``: six teams over the sample suite with the scripted model, and what their figures mean."""

from __future__ import annotations

import os
import time
from pathlib import Path

from eval_pipeline import console
from eval_pipeline.commands.batches import BatchRequest, launch
from eval_pipeline.commands.context import ready
from eval_pipeline.commands.reading import TOTALS_HEADER, totals_rows
from eval_pipeline.db.totals import batch_totals
from eval_pipeline.home import report_dir
from eval_pipeline.ids import BatchTeam
from eval_pipeline.launcher import Selection
from eval_pipeline.reporting.publish import file_name
from eval_pipeline.teams.registry import load_teams

SUITE = "sample"
TEAMS = ("v1-baseline", "v2-attach-path", "v3-prompt-fix", "v4-prompt-fix", "v5-multitool", "v6-verify-gate")


def run_demo(batch: str, *, as_json: bool) -> int:
    """Run the demo under ``batch``; 1 if a cell has no completed run."""
    os.environ["EVAL_LLM_PROVIDER"] = "scripted"
    begun = time.monotonic()
    if not as_json:
        console.say(
            "Six versions of one team over the suite 'sample'. The model is scripted: it plays prepared replies.\n"
            "Team, tools, database and scorer are real, so these are the figures of a story, not of a model."
        )
    request = BatchRequest(batch, TEAMS, SUITE, None, Selection(), retry_crashed=True)
    results = launch(request, quiet=as_json)
    settings, database = ready()
    with database.connect() as connection:
        totals = batch_totals(connection, batch)
    if as_json:
        console.print_json([one.as_json() for one in totals])
    else:
        changes = {spec.team_id: spec.change for spec in load_teams(settings.teams_dir).values()}
        console.table(f"Batch {batch} (scripted model)", TOTALS_HEADER, totals_rows(totals))
        for one in totals:
            console.say(f"{one.batch_team.team}: {changes[one.batch_team.team]}")
        console.say(_next_steps(batch, time.monotonic() - begun, report_dir(settings)))
    return 1 if any(result.unfinished for result in results) else 0


def _next_steps(batch: str, seconds: float, reports: Path) -> str:
    return (
        f"\nDone in {seconds:.0f} s. Where to look next:\n"
        f"  {reports / file_name(BatchTeam(batch, 'v5-multitool'))}   v5 as a page, compared with v4\n"
        f"  eval-pipeline trace '{batch}@v1-baseline|sample-cafe-food-total#1'    why v1 fails: it guesses the path\n"
        f"  eval-pipeline trace '{batch}@v5-multitool|sample-cafe-food-total#1'   how v5 solves it\n"
        f"  eval-pipeline status {batch}      eval-pipeline check\n"
        "  DAGSTER_HOME=$PWD dagster dev     the same batch in the browser, at http://localhost:3000"
    )
