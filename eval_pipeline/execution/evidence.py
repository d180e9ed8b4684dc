"""What the tools of a run returned, read back from its trace: the evidence that a grounded answer may cite."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import Connection, select

from eval_pipeline.benchmarks.base import Evidence
from eval_pipeline.db import tables


def evidence_of(connection: Connection, run_id: UUID) -> tuple[Evidence, ...]:
    """Every successful tool call of a try in the order of its results, whole: what was cut comes from ``texts``.

    Empty results are no evidence, and errors are none either.
    """
    events, texts = tables.events, tables.texts
    calls = {
        row.tool_call_id: row.tool_args
        for row in connection.execute(
            select(events.c.tool_call_id, events.c.tool_args)
            .where(events.c.run_id == run_id, events.c.message_type == "tool_call")
            .order_by(events.c.seq)
        )
    }
    results = connection.execute(
        select(events.c.tool_name, events.c.tool_call_id, events.c.content, texts.c.body)
        .outerjoin(texts, texts.c.sha256 == events.c.content_sha256)
        .where(events.c.run_id == run_id, events.c.message_type == "tool_result")
        .order_by(events.c.seq)
    )
    evidence = []
    for row in results:
        text = row.body if row.body is not None else row.content or ""
        if text.strip():
            evidence.append(Evidence(row.tool_name, calls.get(row.tool_call_id) or {}, text))
    return tuple(evidence)
