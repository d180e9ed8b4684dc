"""Which levels this machine really offers, found out by running a program at each and asking it what it sees."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import threading
from functools import cache
from pathlib import Path

import eval_pipeline
from eval_pipeline.errors import SettingsError
from eval_pipeline.ids import shown
from eval_pipeline.tools.sandbox.command import Way, command
from eval_pipeline.tools.sandbox.policy import LEVELS, PRIVATE_FILES, Level, Limits

_TIMEOUT_S = 20.0
_PROGRAM = """
import json, os, socket, sys
def readable(path):
    try:
        open(path, "rb").close()
        return True
    except OSError:
        return False
def reachable():
    try:
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(("192.0.2.1", 9))
        return True
    except OSError:
        return False
print(json.dumps({"canary": readable(CANARY), "network": reachable(), "pid": os.getpid()}))
"""
_lock = threading.Lock()


def best_level() -> Level:
    """The strongest level that works here; tried once in a process, in about a tenth of a second.

    Raises:
        SettingsError: not even the weakest works.
    """
    return best_way().level


def require(minimum: str) -> Level:
    """The strongest level that works here, if it is at least ``minimum``.

    Raises:
        SettingsError: it is weaker, or ``minimum`` names no level; one line for the person who set it.
    """
    if minimum not in LEVELS:
        raise SettingsError(f"EVAL_SANDBOX_MINIMUM is {shown(minimum)}; use one of {', '.join(reversed(LEVELS))}")
    best = best_level()
    if LEVELS.index(best) > LEVELS.index(minimum):
        raise SettingsError(
            f"EVAL_SANDBOX_MINIMUM asks for {minimum}, but this machine offers no more than {best}: "
            "install bubblewrap, allow user namespaces, or lower the setting"
        )
    return best


def best_way() -> Way:
    """How the strongest level that works here is made.

    Raises:
        SettingsError: none works.
    """
    for level in LEVELS:
        if found := way(level):
            return found
    raise SettingsError("python_exec cannot run here: not even a process with limits on its resources could be started")


def way(level: Level) -> Way | None:
    """How this machine makes ``level``, or ``None`` where it cannot."""
    with _lock:
        return _way(level)


@cache
def _way(level: Level) -> Way | None:
    if level == "bwrap" and shutil.which("bwrap") is None:
        return None
    # A user that owns nothing cannot always read the interpreter: root's own, below its home, for one.
    for new_user in (True, False) if os.geteuid() == 0 else (False,):
        if _works(Way(level, new_user)):
            return Way(level, new_user)
    return None


def _works(candidate: Way) -> bool:
    canary = str(Path(eval_pipeline.__file__).absolute())
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as config:
        start = command(
            candidate,
            f"CANARY = {canary!r}\n{_PROGRAM}",
            None,
            Limits(),
            None if candidate.level in PRIVATE_FILES else folder,
        )
        if start.uid is not None:
            os.chown(folder, start.uid, start.uid)
        config.write(start.config)
        config.seek(0)
        try:
            ended = subprocess.run(
                start.argv,
                stdin=config,
                capture_output=True,
                env=start.env,
                cwd="/",
                timeout=_TIMEOUT_S,
                start_new_session=True,
                check=False,
            )
            seen = json.loads(ended.stdout)
        except (OSError, subprocess.SubprocessError, ValueError):
            return False
    if candidate.level == "limits":
        return True
    private = candidate.level not in PRIVATE_FILES or seen["pid"] < 10
    return private and not seen["canary"] and not seen["network"]
