"""Which result belongs to which tool call, whatever ids a model gives them. No I/O.

Servers send null ids, the same id for every call of a run, or forget the name; within a run a stored id
stands for one call and at most one result.
"""

from __future__ import annotations

from dataclasses import dataclass

from eval_pipeline.tracing.rows import NAME_KEPT

_ROOM_FOR_A_NUMBER = 12


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A call that has no result yet. ``given_id`` is the model's, ``call_id`` the one that is stored."""

    given_id: str
    call_id: str
    name: str
    source: str


class CallIds:
    """The tool calls of one run."""

    def __init__(self) -> None:
        self._open: list[OpenCall] = []
        self._times_taken: dict[str, int] = {}

    def opened(self, given_id: str, name: str, source: str, seq: int) -> OpenCall:
        """Note a call; without an id of its own it is named after its row."""
        call = OpenCall(given_id, self._unused(given_id, seq), name, source)
        self._open.append(call)
        return call

    def closed(self, given_id: str, name: str, source: str, seq: int) -> OpenCall:
        """The call that a result belongs to: the oldest open one of that id and name, else of that id.

        A result without an id belongs to the oldest open call of its name. One that belongs to no open call
        gets an id of its own, so that it can be mistaken for nobody's.
        """
        same_id = [call for call in self._open if call.given_id == given_id]
        same_name = [call for call in (same_id or self._open) if call.name == name]
        if same_id or (not given_id and same_name):
            found = (same_name or same_id)[0]
            self._open.remove(found)
            return found
        return OpenCall(given_id, self._unused(given_id, seq), name, source)

    def take_open(self) -> list[OpenCall]:
        """The calls that never got a result, oldest first; they are closed by this."""
        calls, self._open = self._open, []
        return calls

    def _unused(self, given_id: str, seq: int) -> str:
        wanted = given_id[: NAME_KEPT - _ROOM_FOR_A_NUMBER].strip() or f"call-{seq}"
        while (times := self._times_taken.get(wanted, 0)) > 0:
            self._times_taken[wanted] = times + 1
            wanted = f"{wanted}~{times + 1}"
        self._times_taken[wanted] = 1
        return wanted
