"""Which class of error a failed request is, decided where the real exception or answer is still at hand.

AutoGen turns an agent's exception into text, so nothing downstream could tell a quota from a rate limit any more.
Reading answers that are none belongs to :mod:`eval_pipeline.agents.answers`.
"""

from __future__ import annotations

import email.utils
import json
import math
import re
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from eval_pipeline.agents.completion import ModelFailure
from eval_pipeline.errors import ErrorClass

if TYPE_CHECKING:
    import openai

_MESSAGE_LENGTH = 500

_PER_MINUTE = re.compile(r"per[_ -]?(?:min|sec)|\b(?:rpm|tpm)\b", re.IGNORECASE)
_QUOTA = re.compile(
    r"insufficient[_ ](?:quota|balance|credits?|funds)|exceeded your current quota|quota[_ ]exceeded"
    r"|billing[_ ](?:hard[_ ])?(?:limit|not[_ ]active)|per[_ -]?day|daily (?:limit|quota)|\b(?:rpd|tpd)\b"
    r"|out of credits",
    re.IGNORECASE,
)
_FILTERED = re.compile(r"content[_ ]filter|content management policy|ResponsibleAIPolicyViolation", re.IGNORECASE)
_STATUS_OF_A_NAME = {
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "insufficient_quota": 429,
    "invalid_api_key": 401,
    "authentication_error": 401,
    "permission_error": 403,
    "permission_denied": 403,
    "invalid_request_error": 400,
    "context_length_exceeded": 400,
    "model_not_found": 404,
    "overloaded_error": 503,
    "server_error": 500,
}
"""What the usual words for errors come down to, where an error has no HTTP status of its own."""


def retry_after_seconds(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Seconds that ``retry-after-ms`` or ``Retry-After`` (a number or an HTTP date) asks for; ``None`` without.

    A date is held against the server's own ``Date``, since clocks differ; without one against ``now``, in seconds
    since the epoch. Names are lower case.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after", "")
    seconds = _number(value)
    if seconds is not None:
        return seconds
    then, server_now = _moment(value), _moment(headers.get("date", ""))
    if then is None:
        return None
    if server_now is None:
        server_now = time.time() if now is None else now
    return max(0.0, then - server_now)


def _number(value: str | None) -> float | None:
    try:
        number = float(value or "")
    except ValueError:
        return None
    return None if math.isnan(number) else max(0.0, number)


def _moment(value: str) -> float | None:
    date = email.utils.parsedate_tz(value)
    try:
        return None if date is None else float(email.utils.mktime_tz(date))
    except (ValueError, OverflowError):
        return None


def refused(error: object, *, http_status: int | None) -> ModelFailure:
    """What an error object inside an answer comes to: an event of a stream, or a body that came with status 200."""
    fields = error if isinstance(error, Mapping) else {"message": error}
    names = [str(fields[name]) for name in ("code", "status", "type") if fields.get(name) is not None]
    text = _one_line(str(fields.get("message") or error))
    status = next(filter(None, map(_status_of, names)), 500)
    kind, retryable = _of_status(status, f"{' '.join(names)} {text}")
    return ModelFailure(
        kind, f"the endpoint answered with an error: {text}", retryable=retryable, http_status=http_status
    )


def _status_of(name: str) -> int | None:
    if name.isdecimal() and len(name) == 3 and int(name) >= 400:
        return int(name)
    return _STATUS_OF_A_NAME.get(name.lower())


def _of_status(status: int, text: str) -> tuple[ErrorClass, bool]:
    """The class of an HTTP status with what was said beside it, and whether asking again can help."""
    if status in (400, 403, 422) and _FILTERED.search(text):
        return ErrorClass.CONTENT_FILTER, False
    if status == 402 or (status in (403, 429) and _is_quota(text)):
        return ErrorClass.QUOTA, False
    if status in (401, 403, 407):
        return ErrorClass.AUTH, False
    if status == 429:
        return ErrorClass.RATE_LIMIT, True
    if status == 408:
        return ErrorClass.TIMEOUT, True
    if status in (409, 425) or status >= 500:
        return ErrorClass.SERVER_ERROR, True
    return ErrorClass.BAD_RESPONSE, False


def _is_quota(text: str) -> bool:
    """Whether waiting a minute cannot help. Some servers call a limit per minute a quota, too."""
    return bool(_QUOTA.search(text)) and not _PER_MINUTE.search(text)


def classify(error: Exception) -> ModelFailure:
    """Turn whatever a request raised into a :class:`ModelFailure`.

    ``retryable`` says that asking again can help; whether part of the answer had already arrived is the caller's to
    know.
    """
    if isinstance(error, ModelFailure):
        return error
    # a large package, and a worker of the scripted model never needs it
    import openai  # noqa: PLC0415

    message = _one_line(str(error)) or type(error).__name__
    match error:
        case openai.APIStatusError():
            return _of_answer(error)
        case openai.APITimeoutError() | TimeoutError():
            return ModelFailure(ErrorClass.TIMEOUT, "the endpoint did not answer in time", retryable=True)
        case openai.APIConnectionError():
            cause = _one_line(f"{message}: {error.__cause__}") if error.__cause__ else message
            return ModelFailure(ErrorClass.CONNECTION, cause, retryable=True)
        case openai.APIResponseValidationError():
            return ModelFailure(ErrorClass.BAD_RESPONSE, message, retryable=True, http_status=error.status_code)
        case openai.APIError():
            # an error event of a stream: it has a body but no status of its own
            return refused(error.body or message, http_status=200)
        case json.JSONDecodeError():
            text = f"the answer is not JSON: {message}"
            return ModelFailure(ErrorClass.BAD_RESPONSE, text, retryable=True, http_status=200)
        case OSError():
            return ModelFailure(ErrorClass.CONNECTION, message, retryable=True)
        case _ if "TimeoutException" in (raised := _of_http_client(error)):
            return ModelFailure(ErrorClass.TIMEOUT, "the endpoint did not answer in time", retryable=True)
        case _ if "RequestError" in raised:
            return ModelFailure(ErrorClass.CONNECTION, f"Connection error.: {message}", retryable=True)
        case _:
            text = f"the answer cannot be read ({type(error).__name__}: {message})"
            return ModelFailure(ErrorClass.BAD_RESPONSE, text, retryable=False)


def _of_http_client(error: Exception) -> set[str]:
    """The names of the classes of an error of the SDK's HTTP client, which has had two names so far."""
    return {base.__name__ for base in type(error).__mro__ if base.__module__.startswith("httpx")}


def _of_answer(error: openai.APIStatusError) -> ModelFailure:
    body = error.body
    fields = body if isinstance(body, Mapping) else {}
    inner = fields.get("error")
    fields = inner if isinstance(inner, Mapping) else fields
    detail = _one_line(str(fields.get("message") or fields.get("detail") or inner or error))
    names = [str(fields[name]) for name in ("code", "type") if fields.get(name) is not None]
    kind, retryable = _of_status(error.status_code, f"{' '.join(names)} {detail}")
    headers = {name.lower(): value for name, value in error.response.headers.items()}
    return ModelFailure(
        kind,
        f"HTTP {error.status_code}: {detail}",
        retryable=retryable,
        http_status=error.status_code,
        retry_after_s=retry_after_seconds(headers),
    )


def _one_line(text: str) -> str:
    return " ".join(text[: 4 * _MESSAGE_LENGTH].split())[:_MESSAGE_LENGTH]
