"""How much of a program's output is shown: its beginning and its end, since a traceback stands at the end."""

from __future__ import annotations

import codecs


class Shown:
    """Takes bytes as they come and keeps at most ``limit`` characters of them, whatever their number."""

    def __init__(self, limit: int) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._limit = limit
        # Room for the line about the cut, which is then never longer than what it replaces.
        self._head_room = limit * 5 // 8
        self._tail_room = limit - self._head_room - 100
        self._head = ""
        self._tail = ""
        self._characters = 0

    def feed(self, data: bytes, *, final: bool = False) -> None:
        text = self._decoder.decode(data, final)
        self._characters += len(text)
        room = self._limit - len(self._head)
        self._head += text[:room]
        self._tail = (self._tail + text)[-self._tail_room :]

    def text(self) -> str:
        """What is shown of all that came so far."""
        if self._characters <= self._limit:
            return self._head
        cut = self._characters - self._head_room - self._tail_room
        return f"{self._head[: self._head_room]}\n[cut: {cut:,} characters]\n{self._tail}"
