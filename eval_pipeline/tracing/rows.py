"""The rows of ``events`` and ``model_calls`` as values, and how much of a text they keep. No I/O."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime

from eval_pipeline.jsontypes import JsonObject, JsonValue

CONTENT_KEPT = 8192
"""Characters of a content, of tool arguments and of a payload that a row keeps."""
TOOL_RESULT_KEPT = 2048
NAME_KEPT = 200
"""Characters of a name or id. They are indexed, and PostgreSQL's index rows end at 2.7 kB."""
_LARGEST_COUNT = 2**31 - 1


@dataclass(slots=True)
class EventRow:
    """One row of ``events`` without its run id; the fields are the table's columns. Nobody but its maker changes it.

    ``content_length`` counts the characters of the whole content, masked and cleaned. ``content_sha256`` is
    set where something was cut: it is the SHA-256 (hex, over UTF-8) of the whole text, and ``texts`` holds
    that text under it. On a ``tool_call`` and an ``evaluator_score``, which have no content, both speak of
    the JSON text of ``tool_args`` or ``payload``. Latency is in milliseconds. ``None`` is SQL's NULL.
    """

    seq: int
    ts: datetime
    message_type: str
    source: str
    target: str | None = None
    content: str | None = None
    content_sha256: str | None = None
    content_length: int | None = None
    tool_name: str | None = None
    tool_call_id: str | None = None
    tool_args: JsonValue = None
    reason_code: str | None = None
    payload: JsonValue = None
    error: JsonObject | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    latency_ms: int | None = None
    texts: Mapping[str, str] = field(default_factory=dict)

    def columns(self) -> dict[str, object]:
        """The values by column name, for an insert."""
        return {name: getattr(self, name) for name in _COLUMNS}

    @property
    def size(self) -> int:
        """About how many characters this row is in memory and on the wire."""
        return sum(map(len, self.texts.values())) + len(self.content or "") + CONTENT_KEPT


_COLUMNS = tuple(column.name for column in fields(EventRow) if column.name != "texts")


@dataclass(frozen=True, slots=True)
class CallRow:
    """One row of ``model_calls`` without its run id; ``call_no`` counts from 0. Its texts are clean and masked."""

    call_no: int
    role: str
    kind: str
    attempt: int
    started_at: datetime
    latency_ms: int
    outcome: str
    finish_reason: str | None
    prompt_tokens: int | None
    completion_tokens: int | None
    http_status: int | None
    error_class: str | None
    error_message: str | None
    model: str | None

    def columns(self) -> dict[str, object]:
        """The values by column name, for an insert."""
        return {name: getattr(self, name) for name in _CALL_COLUMNS}

    @property
    def size(self) -> int:
        """About how many characters this row is in memory and on the wire."""
        return len(self.error_message or "") + 1000


_CALL_COLUMNS = tuple(column.name for column in fields(CallRow))


def count_or_none(count: object) -> int | None:
    """A count that someone else reported, such as of tokens: ``None`` where it is 0, which is unknown, or absurd."""
    if isinstance(count, bool) or not isinstance(count, int):
        return None
    return count if 0 < count <= _LARGEST_COUNT else None


@dataclass(frozen=True, slots=True)
class Cut:
    """What a row keeps of a text: its beginning, its full length, and its hash if that is not all of it."""

    kept: str
    length: int
    sha256: str | None
    texts: Mapping[str, str]

    @classmethod
    def of(cls, text: str, limit: int) -> Cut:
        """``text``, already masked and clean, cut to ``limit`` characters."""
        if len(text) <= limit:
            return cls(text, len(text), None, {})
        digest = hashlib.sha256(text.encode()).hexdigest()
        return cls(text[:limit], len(text), digest, {digest: text})


@dataclass(frozen=True, slots=True)
class CutJson:
    """What a row keeps of a JSON value: the value, or the beginning of its text as a string."""

    kept: JsonValue
    length: int | None
    sha256: str | None
    texts: Mapping[str, str]

    @classmethod
    def of(cls, value: JsonValue) -> CutJson:
        """``value``, already masked and clean; its text may have ``CONTENT_KEPT`` characters."""
        cut = Cut.of(json.dumps(value, ensure_ascii=False), CONTENT_KEPT)
        if cut.sha256 is None:
            return cls(value, None, None, {})
        return cls(cut.kept, cut.length, cut.sha256, cut.texts)
