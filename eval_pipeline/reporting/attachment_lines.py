"""The process that reads attachments for :mod:`.attachments`: paths in, a JSON line per file out.

Imports every parser; nothing else imports this.
"""

from __future__ import annotations

import json
import resource
import sys
from itertools import chain
from pathlib import Path

from eval_pipeline.tools.readers.dispatch import whole
from eval_pipeline.tools.readers.kinds import notice

MEMORY_BYTES = 2 * 1024**3
MOST_CHARACTERS = 20_000_000
"""Of one file; a larger one is read so far."""


def main() -> None:
    """Answer the JSON list of paths on standard input."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, resource.getrlimit(resource.RLIMIT_AS)[1]))
    for path in json.load(sys.stdin):
        lines, complete = read_lines(Path(path))
        print(json.dumps({"lines": lines, "complete": complete}), flush=True)


def read_lines(path: Path) -> tuple[list[str], bool]:
    """The lines of a file, and whether they are all; a picture, a recording or a broken file has none."""
    if notice(path) is not None:
        return [], False
    lines: list[str] = []
    total = 0
    try:
        for line in chain.from_iterable(map(str.splitlines, whole(path, most=4 * MOST_CHARACTERS))):
            total += len(line)
            if total > MOST_CHARACTERS:
                return lines, False
            lines.append(line)
    except Exception:
        # the libraries raise anything for a file that is not what it says; what was read so far is protected
        return lines, False
    return lines, True
