"""What a tool knows about the run that it serves: the attachment and the limits, nothing else.

A tool never sees the task, its gold answer or the settings.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ToolContext:
    """The part of a run that its tools may know.

    ``attachment`` is the staged copy (absolute), ``None`` for a task without one; ``materials`` the folder with what a
    benchmark's own tools may read; ``dsn_env`` the environment variable with the DSN of the task's database server.
    ``sandbox_minimum`` is the weakest level of :class:`eval_pipeline.tools.sandbox.Level` that ``python_exec`` may run
    at. Times are in seconds.
    """

    attachment: Path | None = None
    materials: Path | None = None
    dsn_env: str | None = None
    sandbox_minimum: str = "limits"
    exec_timeout_s: float = 20.0
    read_timeout_s: float = 20.0
