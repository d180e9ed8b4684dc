"""``rescore`` and ``ground``: stored answers scored again, without a model."""

from __future__ import annotations

from eval_pipeline import console
from eval_pipeline.commands.context import ready, suite_named
from eval_pipeline.comparison.outcomes import outcomes
from eval_pipeline.db.views import refresh_batches
from eval_pipeline.execution.rescoring import rescore
from eval_pipeline.ids import BatchTeam
from eval_pipeline.suites import load_tasks


def rescore_batch(batch_team: BatchTeam, *, verdicts: bool, as_json: bool) -> None:
    """Score ``batch_team`` again and say what changed.

    Raises:
        IdError: there is no such batch.
        SuiteError: its suite is not declared any more, or its data are not there.
    """
    settings, database = ready()
    with database.connect() as connection:
        suite_name = outcomes(connection, batch_team).suite
    done = rescore(database, batch_team, load_tasks(suite_named(settings, suite_name), settings), verdicts=verdicts)
    refresh_batches(database, [batch_team])
    if as_json:
        console.print_json(
            {
                "batch": batch_team.key,
                "scorer_version": done.version,
                "scored": done.scored,
                "gained": [str(run_id) for run_id in done.gained],
                "lost": [str(run_id) for run_id in done.lost],
                "left_out": done.left_out,
            }
        )
        return
    what = f"{len(done.gained)} gained, {len(done.lost)} lost" if verdicts else "verdicts are left as they are"
    console.say(f"{batch_team.key}: {done.scored} runs scored with {done.version}; {what}")
    if done.left_out:
        console.note(f"{done.left_out} runs answered a task that the suite no longer has with that content; left out")
