"""What PostgreSQL leaves in a data directory about its running server, and whether that is still true.

A killed process, a reboot or a restarted container leaves a pid that may by now belong to another program. Telling
the living from the dead and removing their traces belongs here; starting and stopping is in
:mod:`eval_pipeline.db.embedded`.
"""

from __future__ import annotations

import contextlib
import socket
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

_GOODBYE_S = 3
_POLL_S = 0.02
_CONNECT_S = 2


@dataclass(frozen=True, slots=True)
class Postmaster:
    """The lines of ``postmaster.pid`` that matter. ``status`` is ``ready`` once it takes queries."""

    pid: int
    socket_dir: Path
    port: int
    status: str

    @property
    def socket(self) -> Path:
        return self.socket_dir / f".s.PGSQL.{self.port}"


def read(data_dir: Path) -> Postmaster | None:
    """What ``postmaster.pid`` says; ``None`` where there is none, or one that was not written to its end."""
    try:
        lines = [line.strip() for line in (data_dir / "postmaster.pid").read_text().splitlines()]
        return Postmaster(int(lines[0]), Path(lines[4]), int(lines[3]), lines[7] if len(lines) > 7 else "")
    except (FileNotFoundError, IndexError, ValueError):
        return None


def is_alive(data_dir: Path, found: Postmaster) -> bool:
    """Whether the server that ``found`` tells of still runs.

    Its pid must be a living postgres of this data directory. A server of another pid namespace is recognised by its
    socket, which answers.
    """
    return _is_server_of(data_dir, found.pid) or _answers(found.socket)


def wait_for_end(data_dir: Path, found: Postmaster) -> None:
    """Wait for the process itself, which ends a moment after it has taken its pid file away."""
    deadline = time.monotonic() + _GOODBYE_S
    while _is_server_of(data_dir, found.pid) and time.monotonic() < deadline:
        time.sleep(_POLL_S)


def drop_traces_of_the_dead(data_dir: Path) -> None:
    """Remove what would keep a new server from starting, once the old one is known to be dead.

    PostgreSQL itself takes a zombie and a reused pid for a living server. Backends that outlive a killed postmaster
    still write to the data, so they are ended first.
    """
    for process in _processes_of(data_dir):
        _end(process)
    found = read(data_dir)
    if found is not None:
        found.socket.with_name(found.socket.name + ".lock").unlink(missing_ok=True)
    (data_dir / "postmaster.pid").unlink(missing_ok=True)


def _is_server_of(data_dir: Path, pid: int) -> bool:
    try:
        process = psutil.Process(pid)
        return (
            process.status() != psutil.STATUS_ZOMBIE
            and process.name().startswith("postgres")
            and str(data_dir) in process.cmdline()
        )
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        # what cannot be looked into is left alone
        return True


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(_CONNECT_S)
        try:
            client.connect(str(path))
        except OSError:
            return False
    return True


def _processes_of(data_dir: Path) -> list[psutil.Process]:
    # a backend's title hides its arguments, but its working directory is the data directory, even a deleted one
    homes = (str(data_dir), f"{data_dir} (deleted)")
    found = []
    for process in psutil.process_iter(["name"]):
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            if (process.info["name"] or "").startswith("postgres") and process.cwd() in homes:
                found.append(process)
    return found


def _end(process: psutil.Process) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        process.terminate()
        try:
            process.wait(_GOODBYE_S)
        except psutil.TimeoutExpired:
            process.kill()
            process.wait(_GOODBYE_S)
