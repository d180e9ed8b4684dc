"""What the command line prints: progress, tables, verdicts. It computes nothing.

A terminal gets a live line and colours; anything else gets plain lines, so that a CI log stays readable.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from eval_pipeline.execution.cells import CellEnd, CellResult
from eval_pipeline.ids import BatchTeam, TaskAttempt

if TYPE_CHECKING:
    # run_many brings AutoGen along, which --help must not wait for
    from eval_pipeline.execution.run_many import LaunchPlan, LaunchResult

_PLAIN_EVERY_S = 5.0
_LEAST_TEXT_WIDTH = 8
_FILE_WIDTH = 160
# a pipe or a file has no width of its own, and a table folded to 80 columns is hard to read in a log
out = Console(highlight=False, width=None if sys.stdout.isatty() else _FILE_WIDTH)
err = Console(stderr=True, highlight=False)


def say(text: str) -> None:
    """Print a line of results, whole, so that it can be searched and copied; nothing in it is taken for a style."""
    out.print(Text(text), soft_wrap=True)


def note(text: str) -> None:
    """Print a line beside the results, on standard error."""
    err.print(Text(text), soft_wrap=True)


def print_json(value: object) -> None:
    """One JSON document on standard output, non-ASCII kept."""
    print(json.dumps(value, ensure_ascii=False, indent=2, default=str))


def percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f} %"


def seconds(milliseconds: float | None) -> str:
    return "–" if milliseconds is None else f"{milliseconds / 1000:.1f} s"


def count(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}"


def table(title: str, header: Sequence[str], rows: Iterable[Sequence[str]], *, left: int = 1) -> None:
    """Print a table; the first ``left`` columns are text, the rest figures."""
    shown = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for position, name in enumerate(header):
        is_text = position < left
        width = _LEAST_TEXT_WIDTH if is_text else None
        shown.add_column(name, justify="left" if is_text else "right", overflow="fold", min_width=width)
    for row in rows:
        # a cell may hold what a model wrote: as Text it can neither style nor link
        shown.add_row(*(Text(value) for value in row))
    out.print(shown)


class Watch:
    """Follows a launch: done, running, crashed, tokens, rate, time left. A listener of the launcher."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._live = err.is_terminal and not quiet
        self._progress: Progress | None = None
        self._task: TaskID | None = None
        self._batch_team: BatchTeam | None = None
        self._total = self._started = self._done = self._crashed = self._tokens = 0
        self._since = self._last_line = time.monotonic()

    def planned(self, batch_team: BatchTeam, plan: LaunchPlan) -> None:
        self._batch_team = batch_team
        self._total = plan.run + plan.retry
        self._started = self._done = self._crashed = self._tokens = 0
        self._since = self._last_line = time.monotonic()
        if not self._quiet:
            note(f"{batch_team.key}: {plan.line()}")
        if self._live and self._total:
            self._progress = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[figures]}"),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
                console=err,
                transient=True,
            )
            self._task = self._progress.add_task(batch_team.key, total=self._total, figures="")
            self._progress.start()

    def begun(self, cell: TaskAttempt) -> None:
        self._started += 1
        self._show()

    def ended(self, result: CellResult) -> None:
        if result.end not in (CellEnd.COMPLETED, CellEnd.CRASHED):
            return
        self._done += 1
        self._crashed += result.end is CellEnd.CRASHED
        self._tokens += (result.run.all_tokens or 0) if result.run else 0
        self._show()

    def _show(self) -> None:
        running = max(0, self._started - self._done)
        figures = f"{running} running, {self._crashed} crashed, {self._tokens:,} tokens, {self._rate():.1f} runs/s"
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, completed=self._done, figures=figures)
        elif not self._quiet and time.monotonic() - self._last_line >= _PLAIN_EVERY_S:
            self._last_line = time.monotonic()
            left = f"about {(self._total - self._done) / self._rate():.0f} s left" if self._done else "none ended yet"
            note(f"{self._done}/{self._total} runs, {figures}, {left}")

    def _rate(self) -> float:
        """Runs that ended per second."""
        return self._done / max(1e-3, time.monotonic() - self._since)

    def finished(self, result: LaunchResult) -> None:
        self.close()

    def close(self) -> None:
        """Take the live line away; safe to call twice."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None
