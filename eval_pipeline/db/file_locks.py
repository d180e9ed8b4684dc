"""Locks between processes of one machine on a file, which the kernel drops when their holder dies.

Locks inside PostgreSQL are in :mod:`eval_pipeline.db.locks`; these serve before there is a server.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from eval_pipeline.errors import DatabaseError

_POLL_S = 0.05


def open_lock(path: Path) -> int:
    """A descriptor to lock ``path`` with; not inherited by programs that this process starts.

    Raises:
        DatabaseError: the file cannot be made or opened.
    """
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as exc:
        raise DatabaseError(
            f"{path}: the lock file cannot be opened ({exc.strerror}); make its folder writable, or set "
            "DAGSTER_HOME to a folder of your own"
        ) from exc


def try_exclusive(descriptor: int) -> bool:
    """Take the exclusive lock if nobody else holds it, shared or not."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def share(descriptor: int) -> None:
    """Take the shared lock; waits only for the moment in which another process tries the exclusive one."""
    fcntl.flock(descriptor, fcntl.LOCK_SH)


@contextmanager
def exclusive(path: Path, wait_s: float) -> Iterator[None]:
    """Hold the exclusive lock on ``path``; it also keeps threads of one process apart.

    Raises:
        DatabaseError: not obtained within ``wait_s`` seconds, or the file cannot be opened.
    """
    descriptor = open_lock(path)
    try:
        deadline = time.monotonic() + wait_s
        while not try_exclusive(descriptor):
            if time.monotonic() > deadline:
                raise DatabaseError(
                    f"{path}: another process has held this lock for {wait_s:.0f} s; end the process that is "
                    "starting or stopping the embedded PostgreSQL, then try again"
                )
            time.sleep(_POLL_S)
        yield
    finally:
        os.close(descriptor)
