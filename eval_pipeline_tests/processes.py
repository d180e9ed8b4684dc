"""Commands of ours as processes of their own, as a person in a terminal starts them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

# tests that run in the background ignore SIGINT, and a process that inherits that does not hear it either
_WITH_SIGNALS = """
import os, signal, sys
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.SIG_DFL)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


def start(
    *arguments: str, environment: Mapping[str, str] | None = None, cwd: Path | None = None, heard: bool = True
) -> subprocess.Popen[str]:
    """``python`` with ``arguments``, in the foreground of a session of its own; its output can be read if ``heard``.

    A process that runs for long must not be heard: nobody empties its pipe.
    """
    return subprocess.Popen(
        [sys.executable, "-c", _WITH_SIGNALS, *arguments],
        env={**os.environ, **(environment or {})},
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE if heard else subprocess.DEVNULL,
        stderr=subprocess.PIPE if heard else subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )


def eval_pipeline(
    *arguments: str, environment: Mapping[str, str] | None = None, cwd: Path | None = None
) -> subprocess.Popen[str]:
    """The ``eval-pipeline`` command."""
    return start("-m", "eval_pipeline.cli", *arguments, environment=environment, cwd=cwd)
