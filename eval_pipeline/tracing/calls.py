"""One request to the model as a row of ``model_calls``. No I/O."""

from __future__ import annotations

from eval_pipeline.errors import ErrorClass
from eval_pipeline.tracing.hygiene import TextHygiene
from eval_pipeline.tracing.items import ModelCall
from eval_pipeline.tracing.rows import CallRow, count_or_none

_MESSAGE_KEPT = 2048


def call_row(call: ModelCall, call_no: int, hygiene: TextHygiene) -> CallRow:
    """The row of ``call``, the ``call_no``-th of its run from 0; nothing that an endpoint said makes it raise."""
    usage = call.usage
    error_class = call.error_class
    if call.outcome == "error" and error_class is None:
        error_class = ErrorClass.UNKNOWN
    return CallRow(
        call_no=call_no,
        role=call.role,
        kind=call.kind,
        attempt=call.attempt,
        started_at=call.started_at,
        latency_ms=max(0, call.latency_ms),
        outcome=call.outcome,
        finish_reason=hygiene.name(call.finish_reason) if call.finish_reason else None,
        prompt_tokens=count_or_none(usage.prompt_tokens) if usage else None,
        completion_tokens=count_or_none(usage.completion_tokens) if usage else None,
        http_status=count_or_none(call.http_status),
        error_class=error_class.value if error_class else None,
        error_message=hygiene.text(call.error_message)[:_MESSAGE_KEPT] if call.error_message else None,
        model=hygiene.name(call.model) if call.model else None,
    )
