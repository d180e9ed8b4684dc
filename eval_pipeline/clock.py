"""The two clocks of a run, in one object that a test can replace.

Wall time dates rows; monotonic time measures durations, since a corrected wall clock runs backwards.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    def now(self) -> datetime:
        """The wall time, in UTC with its zone."""
        ...

    def monotonic(self) -> float:
        """Seconds since an arbitrary moment, never decreasing."""
        ...


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()
