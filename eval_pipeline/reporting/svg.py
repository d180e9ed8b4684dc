"""Elements of inline SVG and scales to place them. Horizontal places are per cent, so that a plot fits any width.

What is plotted belongs to :mod:`eval_pipeline.reporting.plots`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from markupsafe import Markup

from eval_pipeline.reporting.escaping import shown_text


def element(name: str, *children: Markup | str, **attributes: str | float | None) -> Markup:
    """An element; ``class_`` and ``stroke_width`` are written ``class`` and ``stroke-width``, ``None`` is left out."""
    written = Markup().join(
        Markup(' {}="{}"').format(key.rstrip("_").replace("_", "-"), number(value))
        for key, value in attributes.items()
        if value is not None
    )
    inside = Markup().join(child if isinstance(child, Markup) else shown_text(child) for child in children)
    return Markup("<{0}{1}>{2}</{0}>").format(Markup(name), written, inside)


def number(value: str | float) -> str:
    """A number as short as two decimals allow; a text as it is."""
    return shown_text(value) if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")


def per_cent(share: float) -> str:
    """A share from 0 to 1 as a horizontal place or width."""
    return f"{number(100 * min(1.0, max(0.0, share)))}%"


def plot(label: str, height: float, *children: Markup) -> Markup:
    """A plot of the page's width and ``height`` pixels; ``label`` says what it shows to whoever cannot see it."""
    return element(
        "svg", *children, class_="plot", width="100%", height=height, role="img", aria_label=label, focusable="false"
    )


@dataclass(frozen=True, slots=True)
class Scale:
    """Places of values between ``low`` and ``high``, with a margin on both sides; logarithmic where they span a lot."""

    low: float
    high: float
    log: bool

    @classmethod
    def of(cls, values: list[float]) -> Scale:
        """A scale for ``values``, which are not negative and at least one."""
        low, high = min(values), max(values)
        positive = [value for value in values if value > 0]
        log = bool(positive) and len(positive) == len(values) and high / low > 15
        if log:
            return cls(low, high, log=True)
        return cls(0.0, high if high > 0 else 1.0, log=False)

    def share(self, value: float) -> float:
        """The place of ``value``, from 0 to 1."""
        if self.log:
            span = math.log(self.high) - math.log(self.low)
            inside = (math.log(max(value, self.low)) - math.log(self.low)) / span
        else:
            inside = (value - self.low) / (self.high - self.low)
        return 0.02 + 0.96 * min(1.0, max(0.0, inside))

    def ticks(self) -> list[float]:
        """About five round values on the scale."""
        if self.log:
            first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
            steps = (1, 2, 5) if last - first <= 2 else (1, 3) if last - first <= 3 else (1,)
            found = [step * 10.0**power for power in range(first, last + 1) for step in steps]
            return [value for value in found if self.low <= value <= self.high]
        step = _round_step((self.high - self.low) / 4)
        return [step * count for count in range(int(self.high / step) + 1)]


def _round_step(rough: float) -> float:
    power = 10.0 ** math.floor(math.log10(rough))
    return next(step * power for step in (1, 2, 2.5, 5, 10) if step * power >= rough * 0.999)
