"""Which class of error a failure is, and how long an endpoint asks us to wait, word by word."""

from __future__ import annotations

import json

import httpx2
import openai
import pytest

from eval_pipeline.agents.failures import classify, refused, retry_after_seconds

DATE = "Mon, 30 Nov 2026 20:00:10 GMT"
SERVER_DATE = "Mon, 30 Nov 2026 20:00:00 GMT"
SERVER_NOW = 1796068800.0


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "inf"}, float("inf")),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after-ms": "250", "retry-after": "60"}, 0.25),
        ({"retry-after-ms": "x", "retry-after": "60"}, 60.0),
        ({"retry-after": DATE}, 10.0),
        ({"retry-after": DATE, "date": SERVER_DATE}, 10.0),
        # a clock of ours that goes wrong by hours changes nothing where the server tells its own
        ({"retry-after": DATE, "date": "Mon, 30 Nov 2026 20:00:08 GMT"}, 2.0),
        ({"retry-after": SERVER_DATE, "date": DATE}, 0.0),
        ({"retry-after": "Mon, 99 Nov 99999999 20:00:08 GMT"}, None),
    ],
)
def test_retry_after_is_read_in_every_form(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_seconds(headers, now=SERVER_NOW) == seconds


def _status_error(status: int, body: object) -> openai.APIStatusError:
    request = httpx2.Request("POST", "http://endpoint.test/v1/chat/completions")
    response = httpx2.Response(status, request=request, json=body)
    return openai.APIStatusError(f"Error code: {status} - {body}", response=response, body=body)


@pytest.mark.parametrize(
    ("status", "body", "error_class", "retryable"),
    [
        (429, {"message": "Rate limit reached for requests per min (RPM)"}, "rate_limit", True),
        (429, {"message": "Limit 3 RPM. Add a payment method at https://example.test/billing"}, "rate_limit", True),
        (429, {"message": "You exceeded your current quota: 15 requests per minute"}, "rate_limit", True),
        (
            429,
            {"message": "You exceeded your current quota, check your plan", "code": "insufficient_quota"},
            "quota",
            False,
        ),
        (429, {"message": "Rate limit reached for tokens per day (TPD)"}, "quota", False),
        (429, {"message": "free-models-per-day", "code": 429}, "quota", False),
        (429, {"message": "Insufficient balance or no resource package", "code": "1113"}, "quota", False),
        (429, {"message": "billing_hard_limit_reached"}, "quota", False),
        (429, {}, "rate_limit", True),
        (402, {"message": "Insufficient Balance"}, "quota", False),
        (403, {"message": "not for you"}, "auth", False),
        (407, {"message": "proxy"}, "auth", False),
        (403, {"message": "ResponsibleAIPolicyViolation"}, "content_filter", False),
        (400, {"message": "maximum context length", "code": "context_length_exceeded"}, "bad_response", False),
        (409, {"message": "again"}, "server_error", True),
        (425, {"message": "too early"}, "server_error", True),
        (529, {"message": "overloaded"}, "server_error", True),
        (422, {"detail": [{"loc": ["body"], "msg": "field required"}]}, "bad_response", False),
        (500, "<html>\nno</html>", "server_error", True),
        (500, None, "server_error", True),
        (500, ["a", "list"], "server_error", True),
        (500, {"error": "in words"}, "server_error", True),
    ],
)
def test_a_status_is_filed_by_what_is_said_with_it(
    status: int, body: object, error_class: str, retryable: bool
) -> None:
    nested = {"error": body} if isinstance(body, dict) and "error" not in body and "detail" not in body else body
    for form in (body, nested):
        failure = classify(_status_error(status, form))
        assert (failure.error_class, failure.retryable, failure.http_status) == (error_class, retryable, status)
        assert "\n" not in str(failure)
        assert len(str(failure)) < 600


@pytest.mark.parametrize(
    ("error", "error_class", "retryable"),
    [
        ({"message": "engine died"}, "server_error", True),
        ({"message": "slow down", "code": 429}, "rate_limit", True),
        ({"message": "slow down", "type": "rate_limit_error"}, "rate_limit", True),
        ({"message": "no money", "code": "insufficient_quota"}, "quota", False),
        ({"message": "who are you", "status": 401}, "auth", False),
        ({"message": "filtered", "code": "content_filter", "status": 400}, "content_filter", False),
        ({"message": "no such field", "type": "invalid_request_error"}, "bad_response", False),
        ({}, "server_error", True),
        ("in words", "server_error", True),
        (["a", "list"], "server_error", True),
        ({"message": {"nested": "object"}, "code": None}, "server_error", True),
    ],
)
def test_an_error_object_without_a_status_is_filed_alike(error: object, error_class: str, retryable: bool) -> None:
    failure = refused(error, http_status=200)
    assert (failure.error_class, failure.retryable, failure.http_status) == (error_class, retryable, 200)


@pytest.mark.parametrize(
    ("error", "error_class", "retryable"),
    [
        (TimeoutError(), "timeout", True),
        (ConnectionResetError("reset"), "connection", True),
        (json.JSONDecodeError("no", "{", 1), "bad_response", True),
        (AttributeError("'list' object has no attribute 'choices'"), "bad_response", False),
    ],
)
def test_what_is_no_answer_at_all_is_filed_too(error: Exception, error_class: str, retryable: bool) -> None:
    failure = classify(error)
    assert (failure.error_class, failure.retryable) == (error_class, retryable)
    assert classify(failure) is failure
