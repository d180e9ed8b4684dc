"""How figures are written on a page: per cents, counts, times, differences. No markup."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from eval_pipeline.stats.rates import Interval

NOTHING = "–"
_MINUS = re.compile(r"(?<![\w.-])-(?=\d)")
_SPACE = "\u00a0"
"""Between a number and its unit, which belong on one line."""


def percent(share: float | None) -> str:
    """``0.842`` as ``84.2 %``."""
    return NOTHING if share is None else f"{100 * share:.1f}{_SPACE}%"


def percents(interval: Interval | None) -> str:
    """An interval of shares as ``62.4 to 94.5 %``."""
    return NOTHING if interval is None else f"{100 * interval.low:.1f} to {100 * interval.high:.1f}{_SPACE}%"


def points(difference: float) -> str:
    """A difference of shares as ``+26.3``; one that rounds to nothing as ``0.0``."""
    text = f"{100 * difference:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else signed(text)


def more_or_less(difference: float, decimals: int = 0) -> str:
    """A difference of any other figure, as ``+1,223``."""
    return signed(f"{difference:+,.{decimals}f}")


def points_interval(interval: Interval | None) -> str:
    """``+4.5 to +48.1``; a difference of rates lies between -100 and 100, Student's interval of few tasks may not."""
    if interval is None:
        return NOTHING
    return f"{points(max(-1.0, interval.low))} to {points(min(1.0, interval.high))}"


def count(value: float | None) -> str:
    """A whole number with separators."""
    return NOTHING if value is None else f"{value:,.0f}"


def counted(value: int, thing: str, things: str | None = None) -> str:
    """``1 run``, ``2 runs``."""
    return f"{value:,} {thing if value == 1 else things or f'{thing}s'}"


def duration(milliseconds: float | None) -> str:
    """``262 ms``, ``1.1 s``, ``2 min 5 s``, ``3 h 20 min``."""
    if milliseconds is None:
        return NOTHING
    seconds = milliseconds / 1000
    if seconds < 1:
        return f"{milliseconds:.0f}{_SPACE}ms"
    if seconds < 119.5:
        return f"{seconds:.1f}{_SPACE}s"
    minutes, rest = divmod(round(seconds), 60)
    hours = f"{minutes // 60}{_SPACE}h {minutes % 60}{_SPACE}min"
    return hours if minutes >= 120 else f"{minutes}{_SPACE}min {rest}{_SPACE}s"


def round_duration(milliseconds: float | None) -> str:
    """The duration of a tick, which is round: ``10 s``, ``5 min``."""
    text = duration(milliseconds)
    return text.removesuffix(f" 0{_SPACE}s").removesuffix(f" 0{_SPACE}min").replace(f".0{_SPACE}s", f"{_SPACE}s")


def money(cost: float | None) -> str:
    """A cost in the currency of the price settings."""
    if cost is None:
        return NOTHING
    return f"{cost:,.2f}" if cost >= 1 else f"{cost:.4g}"


def p_value(p: float) -> str:
    """``0.0625``, ``< 0.0001``."""
    return "< 0.0001" if p < 0.0001 else f"{p:.4f}".rstrip("0").rstrip(".")


def moment(value: datetime | None) -> str:
    """``2026-11-30 20:41 UTC``."""
    return NOTHING if value is None else f"{value.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def signed(text: str) -> str:
    """With a minus sign instead of a hyphen."""
    return text.replace("-", "\u2212")


def sentence(text: str) -> str:
    """A sentence with figures whose signs and units stay with their numbers."""
    return _MINUS.sub("\u2212", text).replace(" %", f"{_SPACE}%")


def phrase(name: str) -> str:
    """A name of the database as words: ``max_messages`` as ``max messages``."""
    return name.replace("_", " ")
