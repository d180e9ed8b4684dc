"""The experiments ledger: hypotheses about one change each, and the figures that close them.

A verdict is never written: the view computes it from the interval. What a comparison is belongs to
:mod:`eval_pipeline.comparison.compare`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime

from sqlalchemy import Connection, column, select, table, update
from sqlalchemy.dialects.postgresql import insert

from eval_pipeline.comparison.compare import Comparison, compare
from eval_pipeline.comparison.outcomes import outcomes
from eval_pipeline.db import tables
from eval_pipeline.errors import EvalPipelineError
from eval_pipeline.ids import BatchTeam, check_id, shown
from eval_pipeline.teams.registry import team
from eval_pipeline.teams.spec import TeamSpec

_HYPOTHESIS_LENGTH = 2000


class LedgerError(EvalPipelineError):
    """An experiment that cannot be opened, attached or closed as asked."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """A row of ``v_experiments``; ``verdict`` is promoted, rejected, inconclusive or open."""

    experiment_id: str
    hypothesis: str
    layer: str
    team_before: str
    team_after: str
    suite: str | None
    batch_before: str | None
    batch_after: str | None
    tasks_compared: int | None
    difference: float | None
    ci_low: float | None
    ci_high: float | None
    verdict: str


_FIELDS = tuple(field.name for field in fields(Experiment))


def experiments(connection: Connection) -> list[Experiment]:
    """The whole ledger in the order of its ids."""
    view = table("v_experiments", *(column(name) for name in _FIELDS))
    rows = connection.execute(select(view).order_by(view.c.experiment_id)).mappings()
    return [Experiment(**{name: row[name] for name in _FIELDS}) for row in rows]


def experiment(connection: Connection, experiment_id: str) -> Experiment:
    """One experiment.

    Raises:
        LedgerError: there is none of that id.
    """
    for found in experiments(connection):
        if found.experiment_id == experiment_id:
            return found
    raise LedgerError(f"there is no experiment {shown(experiment_id)}; eval-pipeline experiment list shows them")


def open_experiment(
    connection: Connection, experiment_id: str, hypothesis: str, team_id: str, teams: Mapping[str, TeamSpec]
) -> Experiment:
    """Open an experiment about what ``team_id`` changes against its parent; the layer is the one its file declares.

    The one-variable guard has held that declaration against the file when the teams were loaded.

    Raises:
        LedgerError: the id is taken, the hypothesis is empty, or the team has no parent.
        IdError: a wrong id, or no such team.
    """
    check_id(experiment_id, "experiment id", "experiment")
    spec = team(teams, team_id)
    text = " ".join(hypothesis.split())[:_HYPOTHESIS_LENGTH]
    if not text:
        raise LedgerError("--hypothesis is empty; say what the change should do, and why")
    if spec.parent is None or spec.layer is None:
        raise LedgerError(f"team {shown(team_id)} extends no other, so there is no one change to test")
    row = insert(tables.experiments).values(
        experiment_id=experiment_id,
        hypothesis=text,
        layer=spec.layer,
        team_before=spec.parent,
        team_after=team_id,
    )
    # the driver does not count what an insert has inserted
    returning = row.on_conflict_do_nothing().returning(tables.experiments.c.experiment_id)
    if connection.execute(returning).scalar_one_or_none() is None:
        raise LedgerError(f"there is an experiment {shown(experiment_id)} already; take another id")
    return experiment(connection, experiment_id)


def close_experiment(
    connection: Connection, experiment_id: str, batch_before: str, batch_after: str, *, common: bool = False
) -> Comparison:
    """Attach two batches, compare them, and store the figures that decide; an open or closed experiment alike.

    Raises:
        LedgerError: no such experiment, or the two are not comparable yet.
        IdError: a batch that is not there.
        ComparisonError: other tasks, without ``common``.
    """
    entry = experiment(connection, experiment_id)
    before = outcomes(connection, BatchTeam(batch_before, entry.team_before))
    after = outcomes(connection, BatchTeam(batch_after, entry.team_after))
    found = compare(before, after, common=common)
    if not found.comparable:
        raise LedgerError(f"experiment {experiment_id} stays open. {found.words()}")
    interval = found.difference.interval
    connection.execute(
        update(tables.experiments)
        .where(tables.experiments.c.experiment_id == experiment_id)
        .values(
            suite=after.suite,
            batch_before=batch_before,
            batch_after=batch_after,
            tasks_compared=len(found.pairs),
            difference=found.difference.mean if interval else None,
            # a difference of rates lies between -1 and 1, Student's interval of few tasks may not
            ci_low=max(-1.0, interval.low) if interval else None,
            ci_high=min(1.0, interval.high) if interval else None,
            closed_at=datetime.now(UTC),
        )
    )
    return found


def graph(entries: Sequence[Experiment], teams: Mapping[str, TeamSpec]) -> list[str]:
    """The lineage of the teams as an indented tree, each with what it changed and the verdicts about that."""
    verdicts: dict[tuple[str | None, str], list[Experiment]] = {}
    for entry in entries:
        verdicts.setdefault((entry.team_before, entry.team_after), []).append(entry)
    lines: list[str] = []

    def branch(parent: str | None, depth: int) -> None:
        for spec in teams.values():
            if spec.parent != parent:
                continue
            said = ", ".join(_said(entry) for entry in verdicts.get((parent, spec.team_id), []))
            name = f"{spec.team_id} [{spec.layer}]" if spec.layer else spec.team_id
            line = "  " * depth + ("└─ " if depth else "") + name
            lines.append(f"{line}: {said}" if said else line)
            branch(spec.team_id, depth + 1)

    branch(None, 0)
    return lines


def _said(entry: Experiment) -> str:
    if entry.difference is None or entry.ci_low is None or entry.ci_high is None:
        return f"{entry.experiment_id} {entry.verdict}"
    figures = f"{100 * entry.difference:+.1f} ({100 * entry.ci_low:+.1f} to {100 * entry.ci_high:+.1f})"
    return f"{entry.experiment_id} {entry.verdict} {figures}"
