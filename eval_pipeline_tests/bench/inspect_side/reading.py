"""Reads an Inspect log and asks one thing of its events: which tools were called how often, with how many errors.

Run by an interpreter that has ``inspect-ai``: ``reading.py LOG_DIR``, where ``overhead.py`` has written one log. It
prints one line of JSON: how many samples and events there are, and the seconds of reading them and of one pass.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from pathlib import Path

from inspect_ai.log import read_eval_log


def main() -> None:
    (path,) = Path(sys.argv[1]).glob("*.eval")
    begun_s = time.perf_counter()
    log = read_eval_log(str(path))
    read_s = time.perf_counter()
    events, calls, errors = 0, Counter[str](), Counter[str]()
    for sample in log.samples or []:
        for event in sample.events:
            events += 1
            if event.event == "tool":
                calls[event.function] += 1
                errors[event.function] += event.error is not None
    figures = {
        "samples": len(log.samples or []),
        "events": events,
        "tool_calls": calls.total(),
        "errors": errors.total(),
    }
    print(json.dumps(figures | {"read_s": read_s - begun_s, "pass_s": time.perf_counter() - read_s}))


if __name__ == "__main__":
    main()
