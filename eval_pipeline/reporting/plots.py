"""The plots of a report, as inline SVG. What is plotted is counted elsewhere; colours are the stylesheet's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median

from markupsafe import Markup

from eval_pipeline.reporting.material import VERDICTS, Part, Run, Shift, Verdict
from eval_pipeline.reporting.rates import Rate
from eval_pipeline.reporting.svg import Scale, element, per_cent, plot
from eval_pipeline.reporting.words import (
    counted,
    duration,
    more_or_less,
    percent,
    percents,
    points,
    points_interval,
    round_duration,
)
from eval_pipeline.stats.rates import Interval

_GOLDEN = 0.6180339887
_BINS = 28
Written = Callable[[float | None], str]


def css(verdict: Verdict) -> str:
    """The class that gives a verdict its colour."""
    return f"v-{verdict.replace(' ', '-')}"


def rate_bar(rate: Rate, *, height: float = 22) -> Markup:
    """A rate from 0 to 100 % as a bar, with its interval as a line through a point."""
    middle = height / 2
    return plot(
        f"{percent(rate.value)}, from {percents(rate.interval)}",
        height,
        element("rect", class_="track", x="0", y=middle - 4, width="100%", height=8, rx=4),
        element("rect", class_="v-right soft", x="0", y=middle - 4, width=per_cent(rate.value), height=8, rx=4),
        *_whisker(rate.interval.low, rate.interval.high, middle),
        element("circle", class_="v-right dot", cx=per_cent(rate.value), cy=middle, r=5.5),
    )


def _whisker(low: float, high: float, middle: float) -> tuple[Markup, ...]:
    ends = [
        element("line", class_="whisker", x1=per_cent(x), x2=per_cent(x), y1=middle - 5, y2=middle + 5)
        for x in (low, high)
    ]
    return (
        element("line", class_="whisker", x1=per_cent(low), x2=per_cent(high), y1=middle, y2=middle),
        *ends,
    )


def change_bar(part: Part) -> Markup:
    """A rate before (ring) and after (point) on an axis from 0 to 100 %."""
    kind = "same" if part.after == part.before else "v-right" if part.after > part.before else "v-wrong"
    return plot(
        f"{part.name}: before {percent(part.before)}, after {percent(part.after)}",
        22,
        element("rect", class_="track", x="0", y=7, width="100%", height=8, rx=4),
        element("line", class_=f"{kind} change", x1=per_cent(part.before), x2=per_cent(part.after), y1=11, y2=11),
        element("circle", class_="before", cx=per_cent(part.before), cy=11, r=5),
        element("circle", class_=f"{kind} dot", cx=per_cent(part.after), cy=11, r=5.5),
    )


def difference_axis(shift: Shift) -> Markup:
    """A difference of rates with its interval on an axis around 0."""
    interval = shift.interval or Interval(shift.mean, shift.mean)
    low, high = max(-1.0, interval.low), min(1.0, interval.high)
    reach = next(step for step in (0.1, 0.2, 0.3, 0.5, 1.0) if max(abs(low), abs(high)) <= step)

    def at(value: float) -> str:
        return per_cent(0.03 + 0.94 * (value + reach) / (2 * reach))

    kind = "v-right" if low > 0 else "v-wrong" if high < 0 else "same"
    ticks = [-reach, -reach / 2, 0.0, reach / 2, reach]
    return plot(
        f"difference {points(shift.mean)} points, 95 % interval {points_interval(shift.interval)}",
        64,
        *(element("line", class_="zero" if not x else "grid", x1=at(x), x2=at(x), y1=4, y2=40) for x in ticks),
        element("line", class_=f"{kind} band", x1=at(low), x2=at(high), y1=22, y2=22),
        element("circle", class_=f"{kind} dot", cx=at(shift.mean), cy=22, r=7),
        *(
            element("text", more_or_less(100 * x) if x else "0", class_="tick", x=at(x), y=57, text_anchor="middle")
            for x in ticks
        ),
    )


def strips(runs: Sequence[Run], value: Callable[[Run], float | None], written: Written, what: str) -> Markup | None:
    """A row of points per verdict on one axis, with the median of each; ``None`` where no run has the figure."""
    rows: list[tuple[Verdict, list[tuple[Run, float]]]] = []
    for verdict in VERDICTS:
        found = [(run, x) for run in runs if run.verdict == verdict and (x := value(run)) is not None]
        if found:
            rows.append((verdict, found))
    if not rows:
        return None
    scale = Scale.of([x for _, found in rows for _, x in found])
    height, marks = 58.0, []
    for number, (verdict, found) in enumerate(rows):
        top = number * height
        middle = median(x for _, x in found)
        marks += [
            element(
                "text",
                element("tspan", verdict, class_="name"),
                element("tspan", f"  {counted(len(found), 'run')}, median {written(middle)}", class_="faint"),
                x="0",
                y=top + 13,
                class_="row",
            ),
            element("line", class_="grid", x1="0", x2="100%", y1=top + 35, y2=top + 35),
            *(_point(run, x, scale, top + 35, place, written) for place, (run, x) in enumerate(found)),
            element(
                "line",
                class_="median",
                x1=per_cent(scale.share(middle)),
                x2=per_cent(scale.share(middle)),
                y1=top + 22,
                y2=top + 48,
            ),
        ]
    bottom = len(rows) * height
    label = f"{what} of each run by verdict: " + "; ".join(
        f"{verdict}, median {written(median(x for _, x in found))}" for verdict, found in rows
    )
    return plot(label, bottom + 22, *marks, *_ticks(scale, bottom + 14, written))


def _point(run: Run, x: float, scale: Scale, middle: float, place: int, written: Written) -> Markup:
    # points that would hide each other are spread by the golden ratio, the same way every time
    spread = ((place * _GOLDEN) % 1 - 0.5) * 20
    return element(
        "circle",
        element("title", f"{run.cell.key}: {run.verdict}, {written(x)}"),
        class_=f"{css(run.verdict)} point",
        cx=per_cent(scale.share(x)),
        cy=middle + spread,
        r=3.4,
        data_run=run.cell.key,
    )


def _ticks(scale: Scale, y: float, written: Written) -> list[Markup]:
    return [
        element(
            "text",
            written(value),
            class_="tick",
            x=per_cent(share),
            y=y,
            text_anchor="start" if share < 0.06 else "end" if share > 0.94 else "middle",
        )
        for value in scale.ticks()
        for share in (scale.share(value),)
    ]


def histogram(runs: Sequence[Run], p50: float | None, p95: float | None) -> Markup | None:
    """How long the completed runs took, right ones below the others, with the two percentiles, in milliseconds."""
    taken = [(float(run.latency_ms), run.verdict) for run in runs if run.completed and run.latency_ms is not None]
    if not taken:
        return None
    scale = Scale.of([x for x, _ in taken])
    bins: list[dict[Verdict, int]] = [{} for _ in range(_BINS)]
    for x, verdict in taken:
        one = bins[min(_BINS - 1, int(scale.share(x) * _BINS))]
        one[verdict] = one.get(verdict, 0) + 1
    most = max(sum(one.values()) for one in bins)
    height, base = 110.0, 148.0
    marks = [element("line", class_="grid", x1="0", x2="100%", y1=base, y2=base)]
    for place, one in enumerate(bins):
        top = base
        for verdict in VERDICTS:
            if verdict in one:
                size = height * one[verdict] / most
                top -= size
                marks.append(
                    element(
                        "rect",
                        element("title", counted(one[verdict], f"{verdict} run")),
                        class_=f"{css(verdict)} bin",
                        x=per_cent((place + 0.06) / _BINS),
                        y=top,
                        width=per_cent(0.88 / _BINS),
                        height=size,
                    )
                )
    for level, (name, limit) in enumerate((("half within", p50), ("95 % within", p95))):
        if limit is None:
            continue
        share, top = scale.share(limit), 11 + 15 * level
        marks += [
            element("line", class_="median", x1=per_cent(share), x2=per_cent(share), y1=top + 4, y2=base),
            element(
                "text",
                f"{name} {duration(limit)}",
                class_="row",
                x=per_cent(share),
                y=top,
                text_anchor="start" if share < 0.2 else "end" if share > 0.75 else "middle",
            ),
        ]
    return plot(
        f"latency of {counted(len(taken), 'completed run')}: half within {duration(p50)}, 95 % within {duration(p95)}",
        base + 20,
        *marks,
        *_ticks(scale, base + 16, round_duration),
    )


def calls_bar(calls: int, errors: int, most: int) -> Markup:
    """How often a tool was called, and how often it failed."""
    right, wrong = (calls - errors) / most if most else 0.0, errors / most if most else 0.0
    return plot(
        f"{counted(calls, 'call')}, {counted(errors, 'error')}",
        18,
        element("rect", class_="track", x="0", y=5, width="100%", height=8, rx=4),
        element("rect", class_="accent", x="0", y=5, width=per_cent(right), height=8, rx=4),
        element("rect", class_="v-wrong", x=per_cent(right), y=5, width=per_cent(wrong), height=8, rx=4),
    )


def share_bar(share: float, verdict: Verdict) -> Markup:
    """A share of all planned runs."""
    return plot(
        percent(share),
        14,
        element("rect", class_="track", x="0", y=3, width="100%", height=8, rx=4),
        element("rect", class_=css(verdict), x="0", y=3, width=per_cent(share), height=8, rx=4),
    )


def stacked_bar(counts: Sequence[tuple[Verdict, int]], total: int) -> Markup:
    """Runs by verdict, side by side."""
    marks, done = [], 0
    for verdict, count in counts:
        marks.append(
            element(
                "rect",
                element("title", f"{verdict}: {count}"),
                class_=css(verdict),
                x=per_cent(done / total),
                y=1,
                width=per_cent(count / total),
                height=12,
            )
        )
        done += count
    return plot(", ".join(f"{verdict} {count}" for verdict, count in counts), 14, *marks)
