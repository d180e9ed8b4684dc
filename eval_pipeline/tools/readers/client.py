"""Asks the process that reads files: starts it when it is first needed, and gives up when it takes too long.

One server serves all threads and event loops of a process, and ends with it. What it does with a file belongs
in :mod:`eval_pipeline.tools.readers.server`.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from io import FileIO
from pathlib import Path

from eval_pipeline.tools.errors import ToolError, ToolTimeoutError, UnreadableFileError

_BOOT = (
    "import json, socket, sys; sys.path[:] = json.loads(sys.argv[1]);"
    "from eval_pipeline.tools.readers.server import serve; serve(socket.socket(fileno=int(sys.argv[2])))"
)
_GRACE_S = 1.0
"""How much later than the child's own alarm its silence is taken for its end."""
_START_S = 30.0
"""How long a server may take to load its parsers, on a machine under load."""
_MAX_ANSWER = 1024 * 1024


def _import_path() -> str:
    # An empty or relative entry means this process's folder, which is not the server's.
    return json.dumps([str(Path(entry).absolute()) for entry in sys.path])


class _Server:
    """The running server and the socket on which it is asked."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-I", "-B", "-X", "utf8", "-c", _BOOT, _import_path(), str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                # Nothing of this process's environment: its secrets are no business of a parser.
                env={"PATH": os.defpath, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
                cwd="/",
                start_new_session=True,
            )
        self.socket = ours
        ours.settimeout(_START_S)
        try:
            ready = ours.recv(1)
        except TimeoutError:
            ready = b""
        if not ready:
            self.close()
            raise ConnectionError("the reading process ended before it was ready")
        ours.settimeout(_GRACE_S)

    def alive(self) -> bool:
        return self.process.poll() is None

    def ask(self, message: bytes) -> FileIO:
        """Send a request; the answer comes through the pipe that is returned.

        Raises:
            ConnectionError: the server has ended.
        """
        read_end, write_end = os.pipe()
        pipe = FileIO(read_end)
        try:
            socket.send_fds(self.socket, [message], [write_end])
        except OSError:
            pipe.close()
            raise
        finally:
            os.close(write_end)
        return pipe

    def forget(self) -> None:
        """Let go of a server that belongs to the process that this one was forked from."""
        self.socket.close()
        self.process.returncode = 0

    def close(self) -> None:
        self.socket.close()
        try:
            self.process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


class _Holder:
    """The one server of this process, or none yet."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._server: _Server | None = None

    def running(self) -> _Server:
        with self._lock:
            if self._server is None or not self._server.alive():
                self._close()
                self._server = _Server()
            return self._server

    def stop(self) -> None:
        with self._lock:
            self._close()

    def discard(self, server: _Server) -> None:
        with self._lock:
            if self._server is server:
                self._close()

    def after_fork(self) -> None:
        self._lock = threading.Lock()
        if self._server is not None:
            self._server.forget()
            self._server = None

    def _close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None


_holder = _Holder()
atexit.register(_holder.stop)
os.register_at_fork(after_in_child=_holder.after_fork)


def stop() -> None:
    """End the server, if there is one; the next file starts another."""
    _holder.stop()


async def read(path: Path, *, seconds: float) -> str:
    """The text of the file, read in a child process; a cancelled call ends it.

    Raises:
        UnreadableFileError: see :func:`eval_pipeline.tools.readers.dispatch.read`.
        ToolTimeoutError: it took longer than ``seconds``.
        ToolError: the reading process could not be started or was killed.
    """
    message = json.dumps({"path": str(path), "seconds": seconds}).encode()
    try:
        # Silence is a server that was killed before it could say anything: one that is new gets the file again.
        received = await _ask(message, seconds) or await _ask(message, seconds)
    except TimeoutError:
        raise _too_slow(path, seconds) from None
    except OSError as error:
        raise ToolError(f"{path.name} cannot be read: the reading process did not start") from error
    return _text(received, path, seconds)


async def _ask(message: bytes, seconds: float) -> bytes:
    server = await asyncio.to_thread(_holder.running)
    received = b""
    with contextlib.suppress(ConnectionError):
        received = await _receive(server.ask(message), seconds + _GRACE_S)
    if not received:
        # It may look alive for a moment longer.
        await asyncio.to_thread(_holder.discard, server)
    return received


async def _receive(pipe: FileIO, seconds: float) -> bytes:
    """All that comes before the pipe's other end is closed; closing ours ends the child."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
    try:
        async with asyncio.timeout(seconds):
            received = b""
            while len(received) < _MAX_ANSWER and (chunk := await reader.read(_MAX_ANSWER)):
                received += chunk
            return received
    finally:
        # The child that still writes to it is ended by the server.
        transport.close()


def _text(received: bytes, path: Path, seconds: float) -> str:
    answer, newline, ending = received.partition(b"\n")
    if newline and answer.startswith(b"{"):
        fields = json.loads(answer)
        if "text" in fields:
            return str(fields["text"])
        if "error" in fields:
            raise UnreadableFileError(fields["error"])
        ending = answer
    status = json.loads(ending)["status"] if ending else None
    if status is not None and os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM:
        raise _too_slow(path, seconds)
    raise ToolError(f"{path.name} cannot be read: the process that reads it was stopped")


def _too_slow(path: Path, seconds: float) -> ToolTimeoutError:
    return ToolTimeoutError(f"{path.name} took longer than {seconds:g} s to read and is not read")
