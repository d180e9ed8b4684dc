"""What a benchmark measures, and how it is shown: a figure with its unit, beside what it was held, and its target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rich.table import Table

Size = Literal["full", "small"]
"""``small`` goes through the same code in seconds: it shows that a benchmark works, and its figures mean little."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured value.

    ``ratio`` is ``value`` divided by what was measured in the same run for ``beside``; ``target`` says what the ratio,
    or the value where there is no ratio, has to be, and ``met`` whether it is.
    """

    what: str
    value: float
    unit: str
    beside: str = ""
    ratio: float | None = None
    target: str = ""
    met: bool | None = None

    def columns(self) -> tuple[str, str, str, str, str]:
        """What a person reads: figure, value, ratio, target, and whether it is met."""
        ratio = "" if self.ratio is None else f"{self.ratio:.3g} × {self.beside}"
        return (
            self.what,
            f"{_shown(self.value)} {self.unit}",
            ratio,
            self.target,
            {True: "yes", False: "NO"}.get(self.met, ""),
        )


def _shown(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def drawn(title: str, figures: Sequence[Figure]) -> Table:
    """A table for the terminal."""
    table = Table(title=title, title_justify="left")
    for heading in ("figure", "value", "ratio", "target", "met"):
        table.add_column(heading)
    for figure in figures:
        table.add_row(*figure.columns())
    return table
