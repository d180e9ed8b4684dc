"""The ledger: an experiment is opened about a team's one change, closed by an interval, and shown in its lineage."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from eval_pipeline.comparison.compare import ComparisonError
from eval_pipeline.comparison.ledger import (
    LedgerError,
    close_experiment,
    experiment,
    experiments,
    graph,
    open_experiment,
)
from eval_pipeline.errors import EvalPipelineError, IdError
from eval_pipeline.teams.registry import load_teams
from eval_pipeline_tests.db.builders import Rows

TEAMS = load_teams(None)
V4, V5 = "v4-prompt-fix", "v5-multitool"
SHIPPED = {
    "EXP-40": ("input", "v1-baseline", "v2-attach-path"),
    "EXP-41": ("prompt", "v2-attach-path", "v3-prompt-fix"),
    "EXP-42": ("tools", "v4-prompt-fix", "v5-multitool"),
    "EXP-46": ("prompt", "v3-prompt-fix", "v4-prompt-fix"),
    "EXP-47": ("routing", "v1-baseline", "v6-verify-gate"),
}


def run_both(
    rows: Rows, before: int, after: int, *, of: int = 40, crashed: int = 0, suite_hash: str = "s" * 64
) -> None:
    """Batch ``old`` under v4 and ``new`` under v5 over ``of`` tasks, the first so many of them right."""
    for number in range(of):
        rows.task(f"t{number:02}")
    for team, batch, right, hashed in ((V4, "old", before, "s" * 64), (V5, "new", after, suite_hash)):
        rows.team(team)
        rows.batch(batch, team, suite_hash=hashed, contract={"team": team})
        for number in range(of):
            cell = {"batch_id": batch, "team_id": team}
            rows.cell(f"t{number:02}", **cell)
            if batch == "new" and number >= of - crashed:
                rows.crashed(f"t{number:02}", **cell)
            else:
                rows.completed(f"t{number:02}", success=number < right, **cell)


def test_the_shipped_experiments_are_open_and_say_what_their_teams_declare(rows: Rows) -> None:
    found = experiments(rows.connection)
    assert {one.experiment_id: (one.layer, one.team_before, one.team_after) for one in found} == SHIPPED
    assert {one.verdict for one in found} == {"open"}
    for one in found:
        assert (TEAMS[one.team_after].parent, TEAMS[one.team_after].layer) == (one.team_before, one.layer)
        assert len(one.hypothesis) > 50


def test_opening_takes_parent_and_layer_from_the_team(rows: Rows) -> None:
    entry = open_experiment(rows.connection, "EXP-50", "  A reader for each kind\nof file  helps. ", V5, TEAMS)
    assert (entry.team_before, entry.team_after, entry.layer) == (V4, V5, "tools")
    assert entry.hypothesis == "A reader for each kind of file helps."
    assert (entry.verdict, entry.difference) == ("open", None)
    assert experiment(rows.connection, "EXP-50") == entry


@pytest.mark.parametrize(
    ("experiment_id", "hypothesis", "team", "error", "said"),
    [
        ("EXP-42", "x", V5, LedgerError, "there is an experiment 'EXP-42' already"),
        ("EXP-50", " \n ", V5, LedgerError, "--hypothesis is empty"),
        ("EXP-50", "x", "v1-baseline", LedgerError, "extends no other"),
        ("EXP-50", "x", "v9-nowhere", EvalPipelineError, "v9-nowhere"),
        ("EXP 50", "x", V5, IdError, "experiment id"),
        ("", "x", V5, IdError, "experiment id"),
    ],
)
def test_what_cannot_be_opened_is_refused_in_one_line(
    rows: Rows, experiment_id: str, hypothesis: str, team: str, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said) as refused:
        open_experiment(rows.connection, experiment_id, hypothesis, team, TEAMS)
    assert "\n" not in str(refused.value)
    assert len(experiments(rows.connection)) == len(SHIPPED)


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        (10, 30, "promoted"),
        (30, 10, "rejected"),
        (20, 21, "inconclusive"),
        (20, 20, "inconclusive"),
        (0, 40, "promoted"),
    ],
)
def test_closing_stores_the_figures_and_the_verdict_follows_from_them(
    rows: Rows, before: int, after: int, verdict: str
) -> None:
    run_both(rows, before, after)
    found = close_experiment(rows.connection, "EXP-42", "old", "new")
    entry = experiment(rows.connection, "EXP-42")
    assert entry.verdict == verdict
    assert (entry.suite, entry.batch_before, entry.batch_after, entry.tasks_compared) == ("sample", "old", "new", 40)
    assert entry.difference == pytest.approx((after - before) / 40)
    assert found.difference.interval is not None
    assert (entry.ci_low, entry.ci_high) == pytest.approx(
        (found.difference.interval.low, found.difference.interval.high)
    )
    closed = rows.connection.execute(text("select closed_at from experiments where experiment_id = 'EXP-42'"))
    assert closed.scalar_one() is not None


def test_closing_again_by_other_batches_replaces_the_figures(rows: Rows) -> None:
    run_both(rows, 10, 30)
    close_experiment(rows.connection, "EXP-42", "old", "new")
    rows.batch("newer", V5, contract={"team": V5})
    for number in range(40):
        rows.cell(f"t{number:02}", batch_id="newer", team_id=V5)
        rows.completed(f"t{number:02}", success=False, batch_id="newer", team_id=V5)
    close_experiment(rows.connection, "EXP-42", "old", "newer")
    assert experiment(rows.connection, "EXP-42").verdict == "rejected"


def test_an_interval_beyond_what_rates_can_differ_by_is_stored_at_the_edge(rows: Rows) -> None:
    run_both(rows, 0, 2, of=3)
    close_experiment(rows.connection, "EXP-42", "old", "new")
    entry = experiment(rows.connection, "EXP-42")
    assert entry.ci_high == 1
    assert entry.verdict == "inconclusive"


def test_one_task_is_too_few_to_close_by(rows: Rows) -> None:
    run_both(rows, 0, 1, of=1)
    close_experiment(rows.connection, "EXP-42", "old", "new")
    assert experiment(rows.connection, "EXP-42").verdict == "open"


def test_too_many_crashes_leave_it_open(rows: Rows) -> None:
    run_both(rows, 10, 30, crashed=3)
    with pytest.raises(LedgerError, match=r"EXP-42 stays open. Not comparable: new@v5-multitool 7.5 % crashed"):
        close_experiment(rows.connection, "EXP-42", "old", "new")
    assert experiment(rows.connection, "EXP-42").verdict == "open"


def test_other_tasks_are_refused_unless_cut_to_the_common_ones(rows: Rows) -> None:
    run_both(rows, 10, 30, suite_hash="o" * 64)
    with pytest.raises(ComparisonError, match="--common"):
        close_experiment(rows.connection, "EXP-42", "old", "new")
    assert close_experiment(rows.connection, "EXP-42", "old", "new", common=True).verdict == "better"


@pytest.mark.parametrize(
    ("experiment_id", "before", "after", "said"),
    [
        ("EXP-99", "old", "new", "no experiment 'EXP-99'"),
        ("EXP-42", "none", "new", "none@v4"),
        ("EXP-42", "new", "old", "new@v4"),
    ],
)
def test_what_is_not_there_is_named(rows: Rows, experiment_id: str, before: str, after: str, said: str) -> None:
    run_both(rows, 1, 1, of=2)
    with pytest.raises(EvalPipelineError, match=said):
        close_experiment(rows.connection, experiment_id, before, after)


def test_the_graph_is_the_lineage_with_its_verdicts(rows: Rows) -> None:
    run_both(rows, 10, 30)
    close_experiment(rows.connection, "EXP-42", "old", "new")
    open_experiment(rows.connection, "EXP-50", "Once more.", V5, TEAMS)
    lines = graph(experiments(rows.connection), TEAMS)
    assert [line.partition(":")[0] for line in lines if "t1" not in line] == [
        "v1-baseline",
        "  └─ v2-attach-path [input]",
        "    └─ v3-prompt-fix [prompt]",
        "      └─ v4-prompt-fix [prompt]",
        "        └─ v5-multitool [tools]",
        "  └─ v6-verify-gate [routing]",
    ]
    (v5,) = [line for line in lines if V5 in line]
    assert "EXP-42 promoted +50.0 (+33.8 to +66.2), EXP-50 open" in v5
    assert "EXP-40 open" in lines[1]
