"""The Python code in an answer, for the benchmarks that run it. Linear in the length of the text; runs nothing."""

from __future__ import annotations

import re

from eval_pipeline.benchmarks.fences import fenced_blocks

MAX_CODE = 200_000
"""Characters of code that are run."""
_LABELS = frozenset({"python", "python3", "py"})
_BEGINS_LIKE_CODE = re.compile(r"^(?:async[ \t]++def|def|class|import|from|@)[ \t]*+\w", re.MULTILINE)
_TEST = re.compile(r"^[ \t]*+(?:async[ \t]++)?def[ \t]++test", re.MULTILINE)


def python_code(text: str) -> str | None:
    """The code of an answer; ``None`` for none.

    It is the last fenced block that is labelled as Python, else the last one without a label, else the whole text where
    a definition or an import begins one of its lines. One fence is taken off, never a second one inside it.
    """
    blocks = [block for block in fenced_blocks(text) if block.body.strip()]
    for labels in (_LABELS, frozenset({""})):
        bodies = [block.body for block in blocks if block.label in labels]
        if bodies:
            return bodies[-1]
    return text if not blocks and _BEGINS_LIKE_CODE.search(text) else None


def has_tests(code: str) -> bool:
    """Whether a function whose name begins with ``test`` is defined anywhere in ``code``."""
    return _TEST.search(code) is not None
