"""Python's garbage collector while a launch runs, or while a code location is loaded."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

_THRESHOLDS = (50_000, 10, 5)


@contextlib.contextmanager
def rarely_collecting() -> Iterator[None]:
    """Collect rarely, and leave alone what is there already.

    A worker has a few hundred thousand objects of code and settings that never go away, and makes thousands of
    short-lived ones a second. Looking through the first for the sake of the second takes a fifth of a run's CPU.
    """
    usual = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*usual)
        gc.unfreeze()
