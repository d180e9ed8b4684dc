"""Which class of error an exception of the OpenAI SDK is, decided where the real object is still at hand.

AutoGen turns an agent's exception into text, so nothing downstream could tell a quota from a rate limit any more.
"""

from __future__ import annotations

import email.utils
import json
import re
import time
from collections.abc import Mapping

import openai

from eval_pipeline.agents.completion import ModelFailure
from eval_pipeline.errors import ErrorClass

_QUOTA = re.compile(
    r"insufficient[_ ]quota|exceeded your current quota|quota[_ ]exceeded|billing|per[_ -]?day|daily (?:limit|quota)"
    r"|out of credits|insufficient (?:balance|credits|funds)",
    re.IGNORECASE,
)
_FILTERED = re.compile(r"content[_ ]filter|content management policy|ResponsibleAIPolicyViolation", re.IGNORECASE)
_MESSAGE_LENGTH = 500


def _error_body(error: openai.APIError) -> Mapping[str, object]:
    body = error.body
    if isinstance(body, Mapping) and isinstance(body.get("error"), Mapping):
        return body["error"]  # type: ignore[no-any-return]
    return body if isinstance(body, Mapping) else {}


def retry_after_seconds(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Seconds that ``Retry-After`` (or ``retry-after-ms``) asks for, as a number or an HTTP date; ``None`` without."""
    milliseconds = headers.get("retry-after-ms")
    value = headers.get("retry-after")
    try:
        if milliseconds is not None:
            return max(0.0, float(milliseconds) / 1000)
        if value is None:
            return None
        return max(0.0, float(value))
    except ValueError:
        date = email.utils.parsedate_tz(value or "")
        if date is None:
            return None
        return max(0.0, email.utils.mktime_tz(date) - (time.time() if now is None else now))


def _status_class(error: openai.APIStatusError, text: str) -> tuple[ErrorClass, bool]:
    status = error.status_code
    if _FILTERED.search(text) and status in (400, 403, 422):
        return ErrorClass.CONTENT_FILTER, False
    if status == 402 or (status in (403, 429) and _QUOTA.search(text)):
        return ErrorClass.QUOTA, False
    if status in (401, 403, 407):
        return ErrorClass.AUTH, False
    if status == 429:
        return ErrorClass.RATE_LIMIT, True
    if status in (408, 409, 425):
        return ErrorClass.TIMEOUT if status == 408 else ErrorClass.SERVER_ERROR, True
    if status >= 500:
        return ErrorClass.SERVER_ERROR, True
    return ErrorClass.BAD_RESPONSE, False


def classify(error: Exception) -> ModelFailure:
    """Turn whatever a request raised into a :class:`ModelFailure`.

    ``retryable`` says that asking again can help; whether part of the answer had already arrived is the caller's to
    know.
    """
    message = str(error)[:_MESSAGE_LENGTH] or type(error).__name__
    match error:
        case ModelFailure():
            return error
        case openai.APIStatusError():
            code = _error_body(error).get("code")
            detail = _error_body(error).get("message")
            kind, retryable = _status_class(error, f"{code} {detail} {message}")
            headers = {name.lower(): value for name, value in error.response.headers.items()}
            return ModelFailure(
                kind,
                f"HTTP {error.status_code}: {detail or message}"[:_MESSAGE_LENGTH],
                retryable=retryable,
                http_status=error.status_code,
                retry_after_s=retry_after_seconds(headers),
            )
        case openai.APITimeoutError():
            return ModelFailure(ErrorClass.TIMEOUT, "the endpoint did not answer in time", retryable=True)
        case openai.APIConnectionError():
            cause = f": {error.__cause__}" if error.__cause__ else ""
            return ModelFailure(ErrorClass.CONNECTION, f"{message}{cause}"[:_MESSAGE_LENGTH], retryable=True)
        case openai.APIResponseValidationError():
            return ModelFailure(ErrorClass.BAD_RESPONSE, message, retryable=True, http_status=error.status_code)
        case openai.APIError():
            # an error event inside a stream: it has a body but no status of its own
            text = f"{error.code} {message}"
            if _QUOTA.search(text):
                return ModelFailure(ErrorClass.QUOTA, message)
            if _FILTERED.search(text):
                return ModelFailure(ErrorClass.CONTENT_FILTER, message)
            if error.code in ("429", "rate_limit_exceeded"):
                return ModelFailure(ErrorClass.RATE_LIMIT, message, retryable=True)
            return ModelFailure(ErrorClass.SERVER_ERROR, message, retryable=True)
        case json.JSONDecodeError():
            return ModelFailure(ErrorClass.BAD_RESPONSE, f"the answer is not JSON: {message}", retryable=True)
        case TimeoutError():
            return ModelFailure(ErrorClass.TIMEOUT, "the endpoint did not answer in time", retryable=True)
        case OSError():
            return ModelFailure(ErrorClass.CONNECTION, message, retryable=True)
        case _:
            return ModelFailure(ErrorClass.BAD_RESPONSE, f"{type(error).__name__}: {message}", retryable=False)
