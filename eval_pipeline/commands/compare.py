"""``compare``: one ``batch@team`` against another, or several against a baseline."""

from __future__ import annotations

from collections.abc import Sequence

from eval_pipeline import console
from eval_pipeline.commands.context import ready
from eval_pipeline.comparison.compare import Comparison, compare
from eval_pipeline.comparison.outcomes import outcomes
from eval_pipeline.contamination.store import flag_batch, places
from eval_pipeline.ids import BatchTeam
from eval_pipeline.jsontypes import JsonObject
from eval_pipeline.stats.paired import PairedDifference, holm

_SHOWN_TASKS = 20


def show_comparison(
    baseline: BatchTeam, others: Sequence[BatchTeam], *, common: bool, without_flagged: bool, as_json: bool
) -> None:
    """Print how each of ``others`` compares with ``baseline``; p-values of several are adjusted after Holm.

    ``without_flagged`` looks at every run for contamination first, and leaves out those that are flagged for certain.

    Raises:
        IdError: there is no such batch.
        ComparisonError: other tasks, without ``common``.
    """
    settings, database = ready()
    with database.begin() as connection:
        sides = []
        for condition in (baseline, *others):
            side = outcomes(connection, condition)
            if without_flagged:
                flag_batch(connection, condition, places(settings))
                side = outcomes(connection, condition, without_flagged=True)
            sides.append(side)
    before, *after = sides
    found = [compare(before, side, common=common) for side in after]
    adjusted = holm({one.after.batch_team.key: one.p_value for one in found})
    if as_json:
        console.print_json([comparison_json(one, adjusted[one.after.batch_team.key]) for one in found])
        return
    scripted = " (scripted model)" if before.scripted else ""
    console.table(
        f"Against {baseline.key}{scripted}",
        ("batch@team", "tasks", "before", "after", "difference", "95 % interval", "p", "p (Holm)", "tokens", "latency"),
        [_row(one, adjusted[one.after.batch_team.key]) for one in found],
    )
    for one in found:
        console.say(one.words())
        for name, pairs in (("gained", one.gained), ("lost", one.lost)):
            if pairs:
                listed = ", ".join(pair.task_id for pair in pairs[:_SHOWN_TASKS])
                more = f" and {len(pairs) - _SHOWN_TASKS} more" if len(pairs) > _SHOWN_TASKS else ""
                console.say(f"  {name}: {listed}{more}")


def _row(one: Comparison, adjusted: float) -> tuple[str, ...]:
    interval = one.difference.interval
    return (
        one.after.batch_team.key,
        str(len(one.pairs)),
        console.percent(one.rate_before),
        console.percent(one.rate_after),
        f"{100 * one.difference.mean:+.1f}",
        f"{100 * interval.low:+.1f} to {100 * interval.high:+.1f}" if interval else "–",
        f"{one.p_value:.3f}",
        f"{adjusted:.3f}",
        f"{one.tokens.mean:+,.0f}" if one.tokens else "–",
        f"{one.latency_ms.mean / 1000:+.1f} s" if one.latency_ms else "–",
    )


def comparison_json(one: Comparison, adjusted: float) -> JsonObject:
    """Every figure of a comparison, rates as shares from 0 to 1."""
    return {
        "before": one.before.batch_team.key,
        "after": one.after.batch_team.key,
        "verdict": one.verdict,
        "words": one.words(),
        "tasks": len(one.pairs),
        "without_a_verdict_on_both_sides": list(one.unpaired),
        "rate_before": one.rate_before,
        "rate_after": one.rate_after,
        "difference": _difference_json(one.difference),
        "test": one.test,
        "p_value": one.p_value,
        "p_value_holm": adjusted,
        "tokens_per_task": _difference_json(one.tokens) if one.tokens else None,
        "latency_ms_per_task": _difference_json(one.latency_ms) if one.latency_ms else None,
        "resolves": one.resolves,
        "gained": [pair.task_id for pair in one.gained],
        "lost": [pair.task_id for pair in one.lost],
        "levels": {part.name: part.difference.mean for part in one.levels},
        "attachments": {part.name: part.difference.mean for part in one.attachments},
        "other_differences": list(one.other_differences),
        "left_out_as_contaminated": {
            side.batch_team.key: side.left_out for side in (one.before, one.after) if side.left_out is not None
        },
    }


def _difference_json(difference: PairedDifference) -> JsonObject:
    interval = difference.interval
    return {
        "mean": difference.mean,
        "standard_error": difference.standard_error,
        "low": interval.low if interval else None,
        "high": interval.high if interval else None,
        "tasks": difference.tasks,
    }
