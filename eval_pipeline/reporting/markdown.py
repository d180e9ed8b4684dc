"""A report in short, as Markdown for the Dagster UI: the same figures and words as on the page."""

from __future__ import annotations

from collections.abc import Iterator

from eval_pipeline.comparison.outcomes import MOST_CRASHED
from eval_pipeline.markdown import cell_text, table
from eval_pipeline.reporting.failures import failure_classes, modes
from eval_pipeline.reporting.material import Material
from eval_pipeline.reporting.rates import Rate, pass_rate, planned_rate
from eval_pipeline.reporting.words import NOTHING, count, duration, money, percent, percents, phrase, points

_SHOWN_TASKS = 25


def report_markdown(material: Material) -> str:
    """The summary of ``material``, whose foreign texts must have been guarded."""
    return "\n\n".join(_parts(material))


def _parts(material: Material) -> Iterator[str]:
    figures, runs = material.figures, material.runs
    if material.scripted:
        yield "**SCRIPTED MODEL: no model was asked; these are the figures of a story.**"
    if figures.planned and figures.crashed / figures.planned > MOST_CRASHED:
        yield f"**Not comparable:** {figures.crashed} of {figures.planned} runs crashed."
    rows = [
        ("pass@1 of completed", *_rate(pass_rate(runs))),
        ("pass@1 of planned", *_rate(planned_rate(runs))),
        ("completed", f"{figures.completed} of {figures.planned}", f"{figures.crashed} crashed"),
        ("no valid answer", percent(figures.format_invalid_rate), "of completed"),
        ("tokens for a right answer", count(figures.tokens_per_success), f"{count(figures.all_tokens)} in all"),
        ("latency", duration(figures.p50_latency_ms), f"95 % within {duration(figures.p95_latency_ms)}"),
    ]
    if figures.cost is not None:
        rows.append(("cost", money(figures.cost), "all tries"))
    yield table(("figure", "value", "95 % interval, bounds, or more"), rows)
    yield from _comparison(material)
    classes = failure_classes(runs)
    if classes:
        yield table(("failure", "runs", "of planned"), [(phrase(c.name), c.count, percent(c.share)) for c in classes])
    seen = modes(runs)
    if seen:
        rows_seen = [(phrase(mode.name), mode.found_by, mode.runs, mode.decided) for mode in seen]
        yield table(("mode", "seen by", "runs", "decided"), rows_seen)


def _rate(rate: Rate | None) -> tuple[str, str]:
    return (NOTHING, NOTHING) if rate is None else (percent(rate.value), percents(rate.interval))


def _comparison(material: Material) -> Iterator[str]:
    contrast = material.contrast
    if contrast is None:
        return
    yield f"**{contrast.verdict}**: {cell_text(contrast.words, 1000)}"
    if contrast.other_differences:
        yield table(("what else differs",), [(text,) for text in contrast.other_differences])
    moved = (*contrast.gained, *contrast.lost)
    if moved:
        rows = [(one.task_id, percent(one.before), percent(one.after), points(one.after - one.before)) for one in moved]
        yield table(("task", "before", "after", "points"), rows[:_SHOWN_TASKS])
