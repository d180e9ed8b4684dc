"""The process that reads files: it has the parsers loaded, and forks a child with limits for each file.

Forking costs a few milliseconds where importing the parsers costs half a second. A child cannot outlive its
time (the kernel's own alarm ends it) nor its reader (its pipe is watched). Who asks belongs in
:mod:`eval_pipeline.tools.readers.client`.

Protocol, on a ``SOCK_SEQPACKET`` socket: a first message of the server says that it is ready; each message to
it is a JSON object ``{path, seconds}`` with the write end of a pipe. The child writes one JSON line ``{text}``
or ``{error}``; after it, ``{status}`` is its wait status in a line of its own. The end of the socket ends the
server and whatever it still reads.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import resource
import select
import signal
import socket
from pathlib import Path

from eval_pipeline.tools.errors import UnreadableFileError
from eval_pipeline.tools.readers import dispatch

MEMORY_BYTES = 1024 * 1024 * 1024
"""What a child may allocate beyond what the loaded parsers take."""
MAX_MESSAGE = 64 * 1024
_SOFT_SHARE = 0.6
"""Part of its time after which a reader stops and shows what it has."""
_MAX_OPEN_FILES = 64


def serve(control: socket.socket) -> None:
    """Answer requests until the other end of ``control`` is closed."""
    wake, woken = os.pipe()
    os.set_blocking(woken, False)
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(woken)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    # What is loaded by now stays shared with the children, if the collector never touches it.
    gc.collect()
    gc.freeze()
    control.send(b".")
    children: dict[int, int] = {}
    poll = select.poll()
    poll.register(control, select.POLLIN)
    poll.register(wake, select.POLLIN)
    try:
        while True:
            for fd, _ in poll.poll():
                if fd == control.fileno():
                    request = _receive(control)
                    if request is None:
                        return
                    pid, pipe = _start(*request)
                    children[pid] = pipe
                    # Only an error is reported for the writing end: that the reader is gone.
                    poll.register(pipe, 0)
                elif fd == wake:
                    os.read(wake, 4096)
                else:
                    _kill(next(pid for pid, pipe in children.items() if pipe == fd))
                    poll.unregister(fd)
            _reap(children, poll)
    finally:
        for pid in children:
            _kill(pid)


def _receive(control: socket.socket) -> tuple[bytes, int] | None:
    message, fds, _, _ = socket.recv_fds(control, MAX_MESSAGE, 1)
    return (message, fds[0]) if message and fds else None


def _start(message: bytes, pipe: int) -> tuple[int, int]:
    pid = os.fork()
    if pid:
        return pid, pipe
    status = 1
    try:
        request = json.loads(message)
        _limit(request["seconds"])
        answer = _answer(Path(request["path"]), request["seconds"] * _SOFT_SHARE)
        data = json.dumps(answer).encode() + b"\n"
        while data:
            data = data[os.write(pipe, data) :]
        status = 0
    finally:
        os._exit(status)


def _limit(seconds: float) -> None:
    signal.set_wakeup_fd(-1)
    for each in (signal.SIGCHLD, signal.SIGALRM, signal.SIGPIPE):
        signal.signal(each, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    memory = pages * resource.getpagesize() + MEMORY_BYTES
    limits = {
        resource.RLIMIT_AS: memory,
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NOFILE: _MAX_OPEN_FILES,
    }
    for limit, wanted in limits.items():
        highest = resource.getrlimit(limit)[1]
        value = wanted if highest == resource.RLIM_INFINITY else min(wanted, highest)
        resource.setrlimit(limit, (value, value))


def _answer(path: Path, seconds: float) -> dict[str, str]:
    try:
        return {"text": dispatch.read(path, seconds=seconds)}
    except UnreadableFileError as error:
        return {"error": str(error)}
    except MemoryError:
        return {"error": f"{path.name} needs more than {MEMORY_BYTES // 1024**2} MiB to be read and is not read"}
    except OSError as error:
        return {"error": f"{path.name} cannot be read: {error.strerror or type(error).__name__}"}


def _reap(children: dict[int, int], poll: select.poll) -> None:
    while children:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        pipe = children.pop(pid)
        with contextlib.suppress(KeyError):
            poll.unregister(pipe)
        with contextlib.suppress(OSError):
            # The reader may have gone away, or may not be reading: it must not hold up the others.
            os.set_blocking(pipe, False)
            os.write(pipe, json.dumps({"status": status}).encode() + b"\n")
        os.close(pipe)


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
