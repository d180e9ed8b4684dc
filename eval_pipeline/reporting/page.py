"""Puts a page together: what the templates are given, and the policy that keeps the page alone with itself.

The page takes nothing from a network: its one style, its one script and its data are inside it, and its policy allows
exactly these by their hashes, so that markup which got in by a mistake of ours could not run.
"""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from importlib.metadata import version

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from eval_pipeline.comparison.outcomes import MOST_CRASHED
from eval_pipeline.db.accounting import Handover
from eval_pipeline.failures.modes import MODES
from eval_pipeline.reporting import plots, words
from eval_pipeline.reporting.escaping import finalize
from eval_pipeline.reporting.failures import contaminations, endings, failure_classes, modes
from eval_pipeline.reporting.leak_guard import SHORTEST, Kind
from eval_pipeline.reporting.material import OWN, VERDICTS, Material, Run
from eval_pipeline.reporting.rates import attempts, pass_rate, planned_rate
from eval_pipeline.reporting.transcripts import pack
from eval_pipeline.suites import Protected

_WRITERS = (
    words.percent,
    words.percents,
    words.points,
    words.points_interval,
    words.more_or_less,
    words.count,
    words.counted,
    words.duration,
    words.money,
    words.p_value,
    words.moment,
    words.phrase,
    words.sentence,
)
_STYLES = ("page.css", "page_runs.css", "page_transcript.css")
_SCRIPTS = ("page_runs.js", "page_transcript.js")
_PACKAGE = "eval_pipeline.reporting"


@dataclass(frozen=True, slots=True)
class GuardNote:
    """What the page says about its leak guard; the text of ``unread`` attachments was not, or not all, looked for."""

    protect: Sequence[Protected] = field(default=(), metadata=OWN)
    replaced: Mapping[Kind, int] = field(default_factory=dict, metadata=OWN)
    unread: Sequence[str] = ()


def render(material: Material, note: GuardNote, baseline_page: str | None = None) -> bytes:
    """The whole page. ``baseline_page`` is the file of the baseline's report, where there is one in the same folder."""
    style, script = _joined(_STYLES), _joined(_SCRIPTS)
    runs = material.runs
    packed = pack(runs)
    page = _environment().get_template("page.html")
    text = page.render(
        m=material,
        f=material.figures,
        note=note,
        baseline_page=baseline_page,
        # files of this package, as they are
        style=Markup(style),
        script=Markup(script),
        style_hash=_csp_hash(style),
        script_hash=_csp_hash(script),
        packed=packed,
        rate=pass_rate(runs),
        planned=planned_rate(runs),
        attempts=attempts(runs),
        levels=[(level, pass_rate([run for run in runs if run.level == level.level])) for level in material.levels],
        tries=sum(len(run.tries) for run in runs),
        retried=[run for run in runs if len(run.tries) > 1],
        crashed_share=material.figures.crashed / material.figures.planned if material.figures.planned else 0.0,
        most_crashed=MOST_CRASHED,
        classes=failure_classes(runs),
        endings=endings(runs),
        modes=modes(runs),
        meanings=MODES,
        contaminations=contaminations(runs),
        handovers=_handovers(material.accounting.handovers),
        verdicts=[(verdict, count) for verdict in VERDICTS if (count := sum(run.verdict == verdict for run in runs))],
        failures=sorted({run.failure for run in runs if run.failure}),
        ended_by=sorted({run.terminated_by for run in runs if run.terminated_by}),
        with_cost=any(run.cost is not None for run in runs),
        with_tries=any(len(run.tries) > 1 for run in runs),
        strips=_strips(material),
        histogram=plots.histogram(runs, material.figures.p50_latency_ms, material.figures.p95_latency_ms),
        role_tokens=sum(role.tokens or 0 for role in material.accounting.roles),
        most_calls=max((tool.calls for tool in material.tools), default=0),
        shortened=bool(packed.cut_texts) or any(_longest(run) > packed.events for run in runs),
        shortest=SHORTEST,
        version=version("eval-pipeline"),
    )
    return text.encode("utf-8", "replace")


def _strips(material: Material) -> tuple[str, Markup] | None:
    """Cost against success, or tokens where there are no prices; with the name of what it is."""
    if any(run.cost is not None for run in material.runs):
        plot = plots.strips(material.runs, lambda run: run.cost, words.money, "cost")
        return ("Cost", plot) if plot else None
    plot = plots.strips(material.runs, _tokens, words.count, "tokens")
    return ("Tokens", plot) if plot else None


def _handovers(found: Sequence[Handover]) -> tuple[list[str], list[tuple[str, list[int]]]]:
    """The hand-overs as a matrix: who spoke next, and for each speaker how often each of them did."""
    columns = sorted({one.next_speaker for one in found}, key=_role_order)
    rows = []
    for speaker in sorted({one.speaker for one in found}, key=_role_order):
        counts = Counter[str]()
        for one in found:
            if one.speaker == speaker:
                counts[one.next_speaker] += one.handovers
        rows.append((speaker, [counts[name] for name in columns]))
    return columns, rows


def _role_css(name: str) -> str:
    """The class that gives a known role its colour; a name that a team file made up has none."""
    return f"role-{name}" if name in ("planner", "executor", "critic", "selector") else ""


def _role_order(name: str) -> tuple[int, str]:
    order = ("user", "planner", "executor", "critic")
    return (order.index(name) if name in order else len(order), name)


def _longest(run: Run) -> int:
    return max((len(one.events) + one.more_events for one in run.tries), default=0)


def _tokens(run: Run) -> float | None:
    return None if run.all_tokens is None else float(run.all_tokens)


@cache
def _joined(names: Sequence[str]) -> str:
    loader = PackageLoader(_PACKAGE)
    environment = Environment()
    return "\n".join(loader.get_source(environment, name)[0] for name in names)


def _csp_hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader(_PACKAGE),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for write in _WRITERS:
        environment.filters[write.__name__] = write
    environment.filters["css"] = plots.css
    environment.filters["role_css"] = _role_css
    for draw in (
        plots.rate_bar,
        plots.change_bar,
        plots.difference_axis,
        plots.calls_bar,
        plots.share_bar,
        plots.stacked_bar,
    ):
        environment.globals[draw.__name__] = draw
    environment.globals["small_bar"] = partial(plots.rate_bar, height=18)
    return environment
