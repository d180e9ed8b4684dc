"""What a program and all that it started use together, seen from outside: memory, processes, and disk.

The kernel limits each process by itself; the sum needs someone who looks. How a program is ended belongs to
:mod:`eval_pipeline.tools.sandbox.runner`.
"""

from __future__ import annotations

import os
from collections import deque

import psutil

from eval_pipeline.tools.sandbox.policy import Limits

_MAX_FILES = 10_000


def excess(pid: int, folder: str | None, limits: Limits) -> str | None:
    """Which limit the tree of processes below ``pid`` is over, in words, or ``None``.

    ``folder`` is the scratch folder, where it is not a file system of its own with a size.
    """
    processes = _tree(pid)
    # Root is exempt from the kernel's own limit on processes. A few are the launcher's, not the program's.
    if len(processes) > limits.processes + 8:
        return f"it had more than {limits.processes} processes"
    if sum(map(_resident, processes)) > limits.memory and sum(map(_proportional, processes)) > limits.memory:
        return f"it used more than {limits.memory // 1024**2} MiB of memory"
    if folder is not None and _is_full(folder, limits.disk):
        return f"it wrote more than {limits.disk // 1024**2} MiB or {_MAX_FILES} files"
    return None


def _tree(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []


def _resident(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0


def _proportional(process: psutil.Process) -> int:
    """Memory with what is shared counted once for all who share it: it takes longer to find out."""
    try:
        return int(process.memory_full_info().pss)
    except (psutil.Error, AttributeError):
        return _resident(process)


def _is_full(folder: str, size: int) -> bool:
    used = files = 0
    waiting = deque([folder])
    while waiting:
        try:
            with os.scandir(waiting.popleft()) as entries:
                for entry in entries:
                    files += 1
                    used += entry.stat(follow_symlinks=False).st_blocks * 512
                    if used > size or files > _MAX_FILES:
                        return True
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
        except OSError:
            # What is looked at is being changed.
            continue
    return False
