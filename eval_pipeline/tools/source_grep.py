"""The process that searches for a regular expression: run as a script, without anything of ours imported.

It reads one JSON object (``pattern``, ``most`` hits, ``lines`` of each file by its path) and writes one: ``hits`` as
pairs of path and line, or ``error``. Whoever starts it ends it in time.
"""

from __future__ import annotations

import json
import re
import resource
import sys
import warnings

_MEMORY = 512 * 2**20
_LONGEST_LINE = 2000


def main() -> None:
    """Answer the question on stdin."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    warnings.simplefilter("ignore")
    question = json.loads(sys.stdin.buffer.read())
    try:
        pattern = re.compile(question["pattern"])
    except (re.error, RecursionError, OverflowError) as error:
        print(json.dumps({"error": str(error)}))
        return
    hits: list[tuple[str, int]] = []
    for path, lines in question["lines"].items():
        for number, line in enumerate(lines, 1):
            if pattern.search(line[:_LONGEST_LINE]):
                hits.append((path, number))
                if len(hits) >= question["most"]:
                    break
        if len(hits) >= question["most"]:
            break
    print(json.dumps({"hits": hits}))


if __name__ == "__main__":
    main()
