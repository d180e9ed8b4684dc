"""Server-sent events: the bytes of a stream cut into the payloads of their ``data`` lines. What is in them belongs to
:mod:`eval_pipeline.agents.answers`.

The SDK's reading makes an object of a dozen fields of each chunk, which costs more CPU than all the rest of a run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

DONE = b"[DONE]"


class DataLines:
    """Takes bytes as they come, cut anywhere, and gives out whole payloads.

    As the standard says, an event ends with an empty line, its data lines are joined by line ends, comments and other
    fields are passed over, and a line ends with LF, CRLF or CR.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._event: list[bytes] = []

    def feed(self, data: bytes) -> list[bytes]:
        """The payloads of the events that ``data`` completes."""
        text = self._rest + data
        held = b""
        if b"\r" in text:
            # the LF of a CRLF may still be on its way
            text, held = (text[:-1], b"\r") if text.endswith(b"\r") else (text, b"")
            text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = text.split(b"\n")
        self._rest = lines.pop() + held
        return list(self._payloads(lines))

    def end(self) -> list[bytes]:
        """What is left when the stream has ended; a last event may lack its empty line."""
        return list(self._payloads([*self._rest.splitlines(), b""]))

    def _payloads(self, lines: Sequence[bytes]) -> Iterator[bytes]:
        for line in lines:
            if line.startswith(b"data:"):
                self._event.append(line[6:] if line[5:6] == b" " else line[5:])
            elif not line and self._event:
                yield self._event[0] if len(self._event) == 1 else b"\n".join(self._event)
                self._event = []


def values(payloads: Sequence[bytes]) -> Iterator[object]:
    """The JSON values of payloads, read at one go where they are objects, as they should be.

    Raises:
        ValueError: a payload is not JSON, or not UTF-8; those before it have been given out.
    """
    if len(payloads) > 1 and all(payload[:1] == b"{" and payload[-1:] == b"}" for payload in payloads):
        try:
            together = json.loads(b"[%b]" % b",".join(payloads))
        except (ValueError, RecursionError):
            together = []
        if len(together) == len(payloads):
            yield from together
            return
    for payload in payloads:
        yield json.loads(payload)
