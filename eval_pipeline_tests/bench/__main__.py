"""Runs the benchmarks: ``python -m eval_pipeline_tests.bench [NAME ...] [--json FILE] [--size small]``.

What each measures, and against what, is in its module. The ratios were measured in one run and can be compared; the
absolute figures are this machine's.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
from dataclasses import asdict
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

import psutil
from rich.console import Console

from eval_pipeline_tests.bench.figures import Figure, drawn
from eval_pipeline_tests.bench.measuring import INSPECT, inspect_python

NAMES = (
    "overhead",
    "efficiency",
    "inserting",
    "reading",
    "launching",
    "pages",
    "streaming",
    "memory",
    "questions",
    "workers",
)
_PACKAGES = ("eval-pipeline", "dagster", "autogen-core", "sqlalchemy", "psycopg")


def surroundings() -> dict[str, object]:
    """Machine, versions and date."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 2**30, 1),
        "system": platform.platform(),
        "python": platform.python_version(),
        "packages": {name: importlib.metadata.version(name) for name in _PACKAGES},
        "load_before": [round(load, 2) for load in os.getloadavg()],
    }


def _processor() -> str:
    with Path("/proc/cpuinfo").open(encoding="utf-8") as file:
        return next((line.partition(":")[2].strip() for line in file if line.startswith("model name")), "unknown")


def main() -> int:
    """Print a table for each benchmark; 1 if a target is not met."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--json", type=Path, help="also write everything there")
    parser.add_argument("--size", choices=("full", "small"), default="full", help="small only shows that it works")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(NAMES):
        parser.error(f"there is no benchmark {', '.join(sorted(unknown))}; choose from {', '.join(NAMES)}")
    console = Console()
    where = surroundings()
    console.print(where)
    if not inspect_python():
        console.print(f"Inspect is left out: name the Python of an environment with inspect-ai in {INSPECT}")
    measured: dict[str, list[Figure]] = {}
    for name in arguments.names or NAMES:
        module = import_module(f"eval_pipeline_tests.bench.{name}")
        measured[name] = list(module.measure(arguments.size))
        console.print(drawn(module.TITLE, measured[name]))
        if arguments.json:
            figures = {done: [asdict(figure) for figure in some] for done, some in measured.items()}
            arguments.json.write_text(json.dumps({"surroundings": where, "figures": figures}, indent=1) + "\n")
    return int(any(figure.met is False for some in measured.values() for figure in some))


if __name__ == "__main__":
    raise SystemExit(main())
