"""What is started for one program at one level: the command line, and what the launcher is told on its input.

Fields of the launcher's JSON: ``level``; ``parent`` (the process that must still be there);
``user_namespace`` (whether one is needed to make the others); ``uid`` (to become, or null); ``steps`` (of the
file system); ``rules`` (path and Landlock rights); ``filter`` (BPF in hex, or null); ``limits`` (name of the
resource and value); ``argv``, ``env`` and ``cwd`` of the program; ``code``, its text.
"""

from __future__ import annotations

import json
import math
import os
import secrets
import shutil
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from eval_pipeline.jsontypes import JsonValue
from eval_pipeline.tools.sandbox import filesystem, seccomp
from eval_pipeline.tools.sandbox.policy import PRIVATE_FILES, Level, Limits

# Rights of linux/landlock.h: execute, read file, read folder; write file and cut it; everything.
_READ_FILE, _READ_FOLDER, _WRITE_FILE, _ANYTHING = 0x1 | 0x4, 0x8, 0x2 | 0x4000, 0xFFFF
_FIRST_UID, _LAST_UID = 61184, 65519
"""Users that systemd sets aside for services that need one for a moment: nothing belongs to them."""


@dataclass(frozen=True, slots=True)
class Way:
    """How this machine makes a level. ``new_user``: as root, the program runs as a user of its own."""

    level: Level
    new_user: bool


@dataclass(frozen=True, slots=True)
class Command:
    """What to start: ``argv`` with ``env``, and ``config`` on its standard input."""

    argv: list[str]
    env: dict[str, str]
    config: bytes
    uid: int | None


def command(way: Way, code: str, attachment: Path | None, limits: Limits, folder: str | None) -> Command:
    """Put together one start.

    ``folder`` is an empty temporary folder for a level that has no file system of its own.
    """
    cwd = folder or filesystem.WORK
    env = _environment(cwd)
    uid = None
    if way.new_user and (way.level in PRIVATE_FILES or attachment is None or _open_to_all(attachment)):
        uid = _FIRST_UID + secrets.randbelow(_LAST_UID - _FIRST_UID + 1)
    steps = filesystem.steps(attachment, limits.disk) if way.level in PRIVATE_FILES else []
    program = seccomp.program(shared=way.level not in PRIVATE_FILES)
    config: dict[str, JsonValue] = {
        "level": way.level,
        "parent": os.getpid(),
        "user_namespace": os.geteuid() != 0,
        "uid": uid,
        "steps": [list(step) for step in steps] if way.level == "namespaces" else [],
        "rules": [list(rule) for rule in _rules(attachment, cwd)] if way.level == "landlock" else [],
        "filter": program.hex() if program else None,
        "limits": _resources(limits),
        "argv": [sys.executable, "-I", "-B", "-u", "-X", "utf8", f"{cwd}/main.py"],
        "env": dict(env),
        "cwd": cwd,
        "code": code,
    }
    launcher = [sys.executable, "-I", "-S", "-B", "-X", "utf8", "-c", _launcher()]
    wrapper = list(_bwrap(steps, keep_setuid=way.new_user)) if way.level == "bwrap" else []
    return Command([*wrapper, *launcher], env, json.dumps(config).encode(), uid)


def _open_to_all(file: Path) -> bool:
    """Whether a user that owns nothing can read the file where it lies; a folder of root's own can be in the way."""
    if not file.stat().st_mode & stat.S_IROTH:
        return False
    return all(folder.stat().st_mode & stat.S_IXOTH for folder in file.resolve().parents)


def _environment(cwd: str) -> dict[str, str]:
    return {
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "HOME": cwd,
        "TMPDIR": cwd,
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUTF8": "1",
        # One thread: each takes address space and counts as a process.
        **dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
        # Names a processor, for machines on which the library would guess wrong.
        **{name: value for name in ("OPENBLAS_CORETYPE",) if (value := os.environ.get(name))},
    }


def _resources(limits: Limits) -> dict[str, JsonValue]:
    return {
        "RLIMIT_CPU": math.ceil(limits.seconds),
        "RLIMIT_AS": limits.memory,
        "RLIMIT_FSIZE": limits.file_size,
        "RLIMIT_NPROC": limits.processes,
        "RLIMIT_NOFILE": limits.open_files,
        "RLIMIT_CORE": 0,
    }


def _rules(attachment: Path | None, cwd: str) -> Iterator[tuple[str, int]]:
    for path in filesystem.readable(attachment):
        yield path, _READ_FILE | (_READ_FOLDER if Path(path).is_dir() else _WRITE_FILE if "/dev/" in path else 0)
    for path in filesystem.listable():
        yield path, _READ_FOLDER
    yield cwd, _ANYTHING


def _bwrap(steps: list[filesystem.Step], *, keep_setuid: bool) -> Iterator[str]:
    yield from (shutil.which("bwrap") or "bwrap", "--die-with-parent", "--as-pid-1", "--unshare-pid")
    yield from ("--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try")
    if os.geteuid() != 0:
        yield "--unshare-user"
    elif keep_setuid:
        yield from ("--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID")
    for step in steps:
        match step.kind:
            case "bind":
                yield from ("--ro-bind", step.source, step.target)
            case "device":
                yield from ("--dev-bind", step.source, step.target)
            case "link":
                yield from ("--symlink", step.source, step.target)
            case "tmpfs":
                yield from ("--size", str(step.size), "--perms", f"{step.mode:o}", "--tmpfs", step.target)
            case "folder":
                yield from ("--perms", f"{step.mode:o}", "--dir", step.target)
            case "proc":
                yield from ("--proc", step.target)
            case "seal":
                yield from ("--remount-ro", step.target)


@cache
def _launcher() -> str:
    return files(__package__).joinpath("launcher.py").read_text(encoding="utf-8")
