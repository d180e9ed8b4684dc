"""What is promised about a program that a model wrote: the levels of isolation, and the limits at each of
them.

How a level is made belongs to :mod:`eval_pipeline.tools.sandbox.command` and the modules that it uses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

Level = Literal["bwrap", "namespaces", "landlock", "limits"]
"""How a program is kept apart, strongest first.

At every level: limits on time, memory, processes, open files, file size and output; an environment without
anything of ours; the end of the program is the end of all that it started.

* ``bwrap``: bubblewrap. File system, processes, network, IPC and host name of its own: only the interpreter,
  the system's libraries and the attachment are there.
* ``namespaces``: the same by the kernel's namespaces alone, where bubblewrap is not installed.
* ``landlock``: for a container that may not make namespaces. The kernel refuses to open any other file and to
  make a network socket; that a file exists can still be seen.
* ``limits``: no wall around files; no network where the kernel can filter system calls.
"""

LEVELS: tuple[Level, ...] = get_args(Level)
"""Every level, strongest first."""

PRIVATE_FILES: frozenset[Level] = frozenset({"bwrap", "namespaces"})
"""Levels at which a program has files and processes of its own, instead of rules about everybody's."""

_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """What one program may use. ``memory`` counts for each process and for all together; sizes are in bytes."""

    seconds: float = 20.0
    memory: int = 2048 * _MIB
    processes: int = 64
    open_files: int = 256
    file_size: int = 128 * _MIB
    disk: int = 256 * _MIB
    output: int = 8 * _MIB
    """What a program may write to stdout and stderr before it is stopped."""
    characters: int = 8000
    """Characters of its output that are shown."""
