"""A way to PostgreSQL that can be cut, frozen and mended while others use it."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import make_url


class Proxy:
    """Hands on what comes to a port of its own to a server's Unix socket, in an event loop of its own."""

    def __init__(self, socket_path: Path) -> None:
        self._socket_path = str(socket_path)
        self._loop = asyncio.new_event_loop()
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0
        threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True).start()

    def mend(self) -> None:
        """Take connections, and hand on what was held back."""
        asyncio.run_coroutine_threadsafe(self._mend(), self._loop).result(5)

    def cut(self) -> None:
        """End every connection, and refuse new ones."""
        asyncio.run_coroutine_threadsafe(self._cut(), self._loop).result(5)

    def freeze(self) -> None:
        """Take connections and data still, but hand nothing on."""
        self._loop.call_soon_threadsafe(self._flowing.clear)

    def close(self) -> None:
        self.cut()
        self._loop.call_soon_threadsafe(self._loop.stop)

    async def _mend(self) -> None:
        self._flowing.set()
        if self._server is None:
            self._server = await asyncio.start_server(self._connected, "127.0.0.1", self.port)
            self.port = self._server.sockets[0].getsockname()[1]

    async def _cut(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in list(self._open):
            writer.transport.abort()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_unix_connection(self._socket_path)
        self._open |= {writer, server_writer}
        for task in (
            asyncio.ensure_future(self._hand_on(reader, server_writer)),
            asyncio.ensure_future(self._hand_on(server_reader, writer)),
        ):
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _hand_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                await self._flowing.wait()
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            self._open.discard(writer)
            with contextlib.suppress(RuntimeError):
                writer.close()


@contextmanager
def proxied(dsn: str) -> Iterator[tuple[Proxy, str]]:
    """A proxy to the embedded server of ``dsn``, and the address of the same database through it."""
    url = make_url(dsn)
    folder, port = str(url.query["host"]), str(url.query["port"])
    proxy = Proxy(Path(folder, f".s.PGSQL.{port}"))
    proxy.mend()
    through = url.set(host="127.0.0.1", port=proxy.port, query={})
    try:
        yield proxy, through.render_as_string(hide_password=False)
    finally:
        proxy.close()
