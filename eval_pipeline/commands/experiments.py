"""``experiment``: the ledger on the command line."""

from __future__ import annotations

from dataclasses import asdict

from eval_pipeline import console
from eval_pipeline.commands.context import ready
from eval_pipeline.comparison.ledger import close_experiment, experiments, graph, open_experiment
from eval_pipeline.teams.registry import load_teams


def show_ledger(*, as_json: bool) -> None:
    """Print every experiment and the lineage of the teams with its verdicts."""
    settings, database = ready()
    with database.connect() as connection:
        entries = experiments(connection)
    if as_json:
        console.print_json([asdict(entry) for entry in entries])
        return
    rows = [
        (
            entry.experiment_id,
            f"{entry.team_before} → {entry.team_after}",
            entry.layer,
            entry.verdict,
            "–" if entry.difference is None else f"{100 * entry.difference:+.1f}",
            "–" if entry.tasks_compared is None else str(entry.tasks_compared),
        )
        for entry in entries
    ]
    console.table("Experiments", ("id", "teams", "layer", "verdict", "points", "tasks"), rows, left=4)
    for line in graph(entries, load_teams(settings.teams_dir)):
        console.say(line)


def open_new(experiment_id: str, hypothesis: str, team_id: str, *, as_json: bool) -> None:
    """Open an experiment about what ``team_id`` changes."""
    settings, database = ready()
    with database.begin() as connection:
        entry = open_experiment(connection, experiment_id, hypothesis, team_id, load_teams(settings.teams_dir))
    if as_json:
        console.print_json(asdict(entry))
    else:
        console.say(f"{entry.experiment_id} is open: {entry.team_before} → {entry.team_after} ({entry.layer})")


def close(experiment_id: str, batch_before: str, batch_after: str, *, common: bool, as_json: bool) -> None:
    """Compare two batches and close the experiment by them."""
    _, database = ready()
    with database.begin() as connection:
        found = close_experiment(connection, experiment_id, batch_before, batch_after, common=common)
        entry = next(one for one in experiments(connection) if one.experiment_id == experiment_id)
    if as_json:
        console.print_json(asdict(entry))
    else:
        console.say(f"{experiment_id}: {entry.verdict}. {found.words()}")
