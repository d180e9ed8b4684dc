"""The embedded PostgreSQL: one server for all processes that use the same data directory, with nothing to install.

The first process starts it, later ones join it, the last one to end stops it. Every user holds a shared lock on a
file, so that one that was killed neither keeps the server nor takes it down. Databases inside the server are made in
:mod:`eval_pipeline.db.dsn`.

The server listens on a Unix socket that only its owner and root can open. Run as root, it runs as the system user
``pgserver`` and the parents of its data directory become enterable, but not readable, for others. A data directory
must not be shared between machines.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import logging
import os
import pwd
import re
import shutil
import stat
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TypedDict

from sqlalchemy import URL

from eval_pipeline.db import file_locks, postgres_binaries, postmaster
from eval_pipeline.db.postgres_binaries import OWN_SERVER
from eval_pipeline.errors import DatabaseError

SUPERUSER = "postgres"
SYSTEM_USER = "pgserver"
"""Whom the server runs as when we are root, since PostgreSQL refuses to run as root."""
MAX_CONNECTIONS = 300
_START_S = 120
_STOP_S = 60
_LOCK_S = _START_S + 30
_POLL_S = 0.05
_PORT = 5432
# sockaddr_un holds 104 bytes on macOS and 108 on Linux, the file name and a zero byte included
_LONGEST_SOCKET_DIR = 104 - len(f"/.s.PGSQL.{_PORT}") - 1
# what has no meaning in a list of socket directories or hosts, to a shell, or in a URL
_PLAIN_PATH = re.compile(r"[A-Za-z0-9_./~-]+")
_SERVER_OPTIONS = {
    "listen_addresses": "",
    "port": str(_PORT),
    "max_connections": str(MAX_CONNECTIONS),
    "unix_socket_permissions": "0700",
    # containers give /dev/shm 64 MB, which parallel queries outgrow
    "max_parallel_workers_per_gather": "0",
    "max_parallel_maintenance_workers": "0",
}


@dataclass(frozen=True, slots=True)
class Server:
    """A running server."""

    data_dir: Path
    socket_dir: Path
    port: int
    pid: int

    def url(self, database: str) -> URL:
        """The address of a database of this server, without a driver."""
        return URL.create(
            "postgresql",
            username=SUPERUSER,
            database=database,
            query={"host": str(self.socket_dir), "port": str(self.port)},
        )


@dataclass(frozen=True, slots=True)
class _Hold:
    """This process's share of a server. A forked child inherits the descriptor but not the duty to release it."""

    pid: int
    descriptor: int


_log = logging.getLogger(__name__)
_started: list[subprocess.Popen[bytes]] = []
"""The servers that this process has started, kept so that one that ends is not left a zombie."""
_holds: dict[Path, _Hold] = {}
_holds_lock = threading.Lock()


def server(data_dir: Path) -> Server:
    """Start the server of ``data_dir``, or join it; the last process that called this stops it when it ends.

    Safe to call again at any time: a server that has died meanwhile is started again.

    Raises:
        DatabaseError: it cannot be started; the message says why and what to do.
    """
    data_dir = data_dir.expanduser().resolve()
    try:
        data_dir.parent.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise DatabaseError(
            f"{data_dir.parent}: the folder of the embedded PostgreSQL cannot be made ({exc.strerror}); set "
            f"DAGSTER_HOME to a folder of your own, or {OWN_SERVER}"
        ) from exc
    with file_locks.exclusive(_beside(data_dir, "lock"), _LOCK_S):
        _hold(data_dir)
        try:
            for process in _started:
                process.poll()
            return _running(data_dir) or _start(data_dir)
        except PermissionError as exc:
            raise DatabaseError(
                f"{exc.filename or data_dir}: the embedded PostgreSQL belongs to another user; run as that user, set "
                f"DAGSTER_HOME to a folder of your own, or {OWN_SERVER}"
            ) from exc
        except OSError as exc:
            raise DatabaseError(
                f"{exc.filename or data_dir}: the embedded PostgreSQL cannot be used ({exc.strerror}); mend that, set "
                f"DAGSTER_HOME to another folder, or {OWN_SERVER}"
            ) from exc


def stop(data_dir: Path) -> bool:
    """Stop the server of ``data_dir`` for everyone; whether there was one to stop.

    Raises:
        DatabaseError: it does not stop.
    """
    data_dir = data_dir.expanduser().resolve()
    if not data_dir.is_dir():
        return False
    with file_locks.exclusive(_beside(data_dir, "lock"), _LOCK_S):
        return _stop(data_dir)


def is_held(data_dir: Path) -> bool:
    """Whether this process counts as a user of the server of ``data_dir``."""
    held = _holds.get(data_dir.expanduser().resolve())
    return held is not None and held.pid == os.getpid()


def _beside(data_dir: Path, suffix: str) -> Path:
    # not inside: the data directory belongs to the server's user and must be empty at first
    return data_dir.with_name(f"{data_dir.name}.{suffix}")


def _hold(data_dir: Path) -> None:
    with _holds_lock:
        held = _holds.get(data_dir)
        # a deleted lock file is seen by nobody else
        if held is not None and held.pid == os.getpid() and os.fstat(held.descriptor).st_nlink:
            return
        descriptor = file_locks.open_lock(_beside(data_dir, "users"))
        file_locks.share(descriptor)
        _holds[data_dir] = _Hold(os.getpid(), descriptor)
    atexit.register(_release, data_dir, os.getpid())


def _release(data_dir: Path, pid: int) -> None:
    held = _holds.pop(data_dir, None)
    if held is None or os.getpid() != pid or not data_dir.is_dir():
        return
    try:
        with file_locks.exclusive(_beside(data_dir, "lock"), _LOCK_S):
            if file_locks.try_exclusive(held.descriptor):
                _stop(data_dir)
    except (DatabaseError, OSError) as exc:
        # nobody is left to catch it
        _log.warning("%s", exc)
    finally:
        os.close(held.descriptor)


def _running(data_dir: Path, starting: subprocess.Popen[bytes] | None = None) -> Server | None:
    """The server once it takes queries; ``None`` if there is none, or if the one that is starting has ended."""
    deadline = time.monotonic() + _START_S
    while True:
        found = postmaster.read(data_dir)
        if starting is not None and starting.poll() is not None:
            return None
        if found is not None and postmaster.is_alive(data_dir, found):
            if found.status == "ready":
                return Server(data_dir, found.socket_dir, found.port, found.pid)
        elif starting is None:
            return None
        if time.monotonic() > deadline:
            raise DatabaseError(
                f"the embedded PostgreSQL in {data_dir} has not been ready for {_START_S} s; see "
                f"{data_dir / 'log'}, or {OWN_SERVER}"
            )
        time.sleep(_POLL_S)


def _start(data_dir: Path) -> Server:
    postmaster.drop_traces_of_the_dead(data_dir)
    if not (data_dir / "PG_VERSION").exists():
        _initialise(data_dir)
    programs = postgres_binaries.folder(_version(data_dir))
    owner = _owner(data_dir)
    sockets = _socket_dir(data_dir, owner)
    if owner is not None:
        postgres_binaries.open_to(programs, *owner)
        _let_in(data_dir)
        _let_in(sockets)
    options = _SERVER_OPTIONS | {"unix_socket_directories": str(sockets)}
    arguments = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
    log = data_dir / "log"
    with _log_file(log, owner) as output:
        log_began = output.tell()
        # not through pg_ctl, whose shell takes some characters of a path for commands
        process = subprocess.Popen(
            [programs / "postgres", "-D", data_dir, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            # a key that ends this process must not end the server that others use
            start_new_session=True,
            **_identity(owner),
        )
    _started.append(process)
    started = _running(data_dir, process)
    if started is None:
        with log.open("rb") as file:
            file.seek(log_began)
            said = _reason(file.read())
        raise DatabaseError(f"the embedded PostgreSQL in {data_dir} did not start: {said}; see {log}, or {OWN_SERVER}")
    return started


def _log_file(path: Path, owner: tuple[int, int] | None) -> BinaryIO:
    file = path.open("ab")
    if owner is not None:
        os.fchown(file.fileno(), *owner)
    return file


def _initialise(data_dir: Path) -> None:
    """Make the data directory, all or nothing: a killed ``initdb`` must not leave one that looks finished."""
    if data_dir.exists() and any(data_dir.iterdir()):
        raise DatabaseError(
            f"{data_dir}: is not empty and holds no PostgreSQL data; move it, or set DAGSTER_HOME to another folder"
        )
    programs = postgres_binaries.folder(postgres_binaries.newest_version())
    unfinished = _beside(data_dir, "unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(mode=0o700)
    owner = _owner(unfinished)
    if owner is not None:
        os.chown(unfinished, *owner)
        postgres_binaries.open_to(programs, *owner)
        _let_in(unfinished)
    _run(
        # the locale of this machine's environment may not be installed, and must not decide how text is sorted
        [programs / "initdb", "--auth=trust", "--encoding=UTF8", "--no-locale", "-U", SUPERUSER, "-D", unfinished],
        owner,
        f"the embedded PostgreSQL could not be set up in {data_dir}",
    )
    unfinished.rename(data_dir)


def _stop(data_dir: Path) -> bool:
    found = postmaster.read(data_dir)
    if found is None or not postmaster.is_alive(data_dir, found):
        return False
    programs = postgres_binaries.folder(_version(data_dir))
    _run(
        [programs / "pg_ctl", "stop", "-w", "-t", str(_STOP_S), "-m", "fast", "-D", data_dir],
        _owner(data_dir),
        f"the embedded PostgreSQL in {data_dir} did not stop",
    )
    postmaster.wait_for_end(data_dir, found)
    if found.socket_dir != data_dir:
        with contextlib.suppress(OSError):
            found.socket_dir.rmdir()
    return True


def _version(data_dir: Path) -> int:
    text = (data_dir / "PG_VERSION").read_text().strip()
    if not text.isdecimal():
        raise DatabaseError(
            f"{data_dir / 'PG_VERSION'}: holds no version of PostgreSQL; restore the folder from a backup"
        )
    return int(text)


def _owner(data_dir: Path) -> tuple[int, int] | None:
    """Whom to run PostgreSQL's programs as, uid and gid; ``None`` for ourselves."""
    if os.geteuid() != 0:
        return None
    found = data_dir.stat()
    if found.st_uid != 0:
        return found.st_uid, found.st_gid
    try:
        entry = pwd.getpwnam(SYSTEM_USER)
    except KeyError:
        try:
            subprocess.run(["useradd", "--system", SYSTEM_USER], check=True, capture_output=True)
            entry = pwd.getpwnam(SYSTEM_USER)
        except (OSError, subprocess.CalledProcessError, KeyError) as exc:
            raise DatabaseError(
                f"PostgreSQL does not run as root and the system user {SYSTEM_USER!r} cannot be added; add it with "
                f"useradd, run as an ordinary user, or {OWN_SERVER}"
            ) from exc
    return entry.pw_uid, entry.pw_gid


def _let_in(data_dir: Path) -> None:
    for parent in data_dir.parents:
        mode = parent.stat().st_mode
        if not mode & stat.S_IXOTH:
            parent.chmod(mode | stat.S_IXOTH)


def _socket_dir(data_dir: Path, owner: tuple[int, int] | None) -> Path:
    if _holds_a_socket(data_dir):
        return data_dir
    name = hashlib.sha256(os.fsencode(data_dir)).hexdigest()[:12]
    temporary = Path(tempfile.gettempdir())
    if not _holds_a_socket(temporary / f"eval-pipeline-{name}"):
        temporary = Path("/tmp")
    folder = temporary / f"eval-pipeline-{name}"
    uid, gid = owner or (os.geteuid(), -1)
    folder.mkdir(mode=0o700, exist_ok=True)
    # anyone can make this folder first; a stranger's would let the stranger answer in the server's place
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid not in (os.geteuid(), uid):
        raise DatabaseError(f"{folder}: belongs to another user; remove it, or use a shorter path as DAGSTER_HOME")
    folder.chmod(0o700)
    os.chown(folder, uid, gid)
    return folder


def _holds_a_socket(folder: Path) -> bool:
    return len(os.fsencode(folder)) <= _LONGEST_SOCKET_DIR and _PLAIN_PATH.fullmatch(str(folder)) is not None


class _Identity(TypedDict, total=False):
    cwd: str
    env: dict[str, str]
    umask: int
    user: int
    group: int
    extra_groups: list[int]


def _identity(owner: tuple[int, int] | None) -> _Identity:
    """Whom and in what surroundings PostgreSQL's programs run as."""
    # our environment holds keys, which a server need not inherit, and PG* variables, which would mislead it
    common: _Identity = {"cwd": "/", "env": {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}, "umask": 0o077}
    return common if owner is None else common | {"user": owner[0], "group": owner[1], "extra_groups": []}


def _run(command: Sequence[str | Path], owner: tuple[int, int] | None, failure: str) -> None:
    """Run one of PostgreSQL's programs; ``failure`` begins the message where it fails."""
    done = subprocess.run(
        command,
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        **_identity(owner),
    )
    if done.returncode != 0:
        raise DatabaseError(f"{failure}: {_reason(done.stdout)}; mend that, or {OWN_SERVER}")


def _reason(output: bytes) -> str:
    lines = [line.strip() for line in output.decode(errors="replace").splitlines() if line.strip()]
    telling = [line for line in lines if re.search(r"FATAL|PANIC|error:", line)]
    return (telling or lines or ["it said nothing"])[-1]
