"""What endpoints do wrong: statuses, connections, streams, answers that are none, dialects of usage."""

from __future__ import annotations

import email.utils
import time

from eval_pipeline_tests.agents.faults import (
    BUDGET_S,
    OK,
    SAID,
    STOPS,
    STREAMED,
    WHOLE,
    Fault,
    again,
    crash,
    recovers,
)
from eval_pipeline_tests.agents.scenes import GOOD
from eval_pipeline_tests.stub_openai import (
    FOR_EVER_S,
    JSON_TYPE,
    SSE_TYPE,
    USAGES,
    Reply,
    content_filter_400,
    error,
    html,
    text,
)


def _date(in_s: float) -> str:
    return email.utils.formatdate(time.time() + in_s, usegmt=True)


STATUSES = [
    crash("400", [error(400)], "bad_response", "error 400 bad_response"),
    crash("401", [error(401)], "auth", "error 401 auth"),
    crash("402", [error(402)], "quota", "error 402 quota"),
    crash("403", [error(403)], "auth", "error 403 auth"),
    crash("403 that speaks of a quota", [error(403, code="insufficient_quota")], "quota", "error 403 quota"),
    crash("404", [error(404)], "bad_response", "error 404 bad_response"),
    crash("408 every time", [error(408)], "timeout", again("error 408 timeout")),
    crash("422", [error(422)], "bad_response", "error 422 bad_response"),
    crash("429 every time", [error(429)], "rate_limit", again("error 429 rate_limit")),
    recovers("429 twice, then an answer", [error(429), error(429), GOOD], f"2× error 429 rate_limit; {OK}"),
    recovers(
        "429 with Retry-After in seconds, then an answer",
        [error(429, headers={"retry-after": "0.2"}), GOOD],
        f"error 429 rate_limit; {OK}",
    ),
    recovers(
        "429 with Retry-After as a date, then an answer",
        [error(429, headers={"retry-after": _date(0), "date": _date(-1)}), GOOD],
        f"error 429 rate_limit; {OK}",
    ),
    recovers(
        "429 with retry-after-ms, then an answer",
        [error(429, headers={"retry-after-ms": "200", "retry-after": "3600"}), GOOD],
        f"error 429 rate_limit; {OK}",
    ),
    crash(
        "429 with a Retry-After beyond the retry budget",
        [error(429, headers={"retry-after": str(2 * BUDGET_S)})],
        "rate_limit",
        "error 429 rate_limit",
    ),
    recovers(
        "429 with a Retry-After that is neither number nor date, then an answer",
        [error(429, headers={"retry-after": "soon"}), GOOD],
        f"error 429 rate_limit; {OK}",
    ),
    crash(
        "429 insufficient_quota",
        [error(429, "You exceeded your current quota, please check your plan", "insufficient_quota")],
        "quota",
        "error 429 quota",
    ),
    crash(
        "429 of a daily limit",
        [error(429, "Rate limit reached for requests per day (RPD)")],
        "quota",
        "error 429 quota",
    ),
    crash(
        "429 of a limit per minute that points to the billing page",
        [
            error(
                429, "Rate limit reached (RPM): Limit 3. Add a payment method at https://example.test/account/billing."
            )
        ],
        "rate_limit",
        again("error 429 rate_limit"),
    ),
    recovers("408, then an answer", [error(408), GOOD], f"error 408 timeout; {OK}"),
    recovers(
        "503 with Retry-After, then an answer",
        [error(503, headers={"retry-after": "0.2"}), GOOD],
        f"error 503 server_error; {OK}",
    ),
    crash(
        "500 with a Retry-After beyond the retry budget",
        [error(500, headers={"retry-after": str(2 * BUDGET_S)})],
        "server_error",
        "error 500 server_error",
    ),
    crash("500 every time", [error(500)], "server_error", again("error 500 server_error")),
    crash("502 with a gateway's page", [html(502)], "server_error", again("error 502 server_error")),
    recovers("503, then an answer", [error(503), GOOD], f"error 503 server_error; {OK}"),
    crash("400 content_filter", [content_filter_400()], "content_filter", "error 400 content_filter"),
    Fault(
        "500 every time for the first choice of a speaker",
        "server_error",
        again("error 500 server_error"),
        "user",
        {"selector": [error(500)]},
        role="selector",
    ),
    Fault(
        "429 every time for the critic",
        "rate_limit",
        again("error 429 rate_limit"),
        "user →planner planner →critic",
        {"critic": [error(429)]},
        role="critic",
    ),
]

_GONE = "error – connection"
_BROKEN = "error 200 connection"
CONNECTIONS = [
    crash("reset before the status, every time", [Reply(drop_before_status="rst")], "connection", again(_GONE)),
    recovers("closed before the status, then an answer", [Reply(drop_before_status="fin"), GOOD], f"{_GONE}; {OK}"),
    Fault(
        "refused connection",
        "connection",
        again(_GONE),
        "user",
        {},
        role="selector",
        settings="nobody listens",
    ),
    Fault(
        "no word before the status",
        "timeout",
        "2× error – timeout",
        STOPS,
        {"planner": [Reply(delay_s=FOR_EVER_S)]},
        settings="impatient",
    ),
    Fault(
        "a body that drips byte by byte",
        "timeout",
        "2× error – timeout",
        STOPS,
        {"planner": [text("slow", drip_s=0.05)]},
        settings="impatient",
        modes=WHOLE,
    ),
    Fault(
        "no word after the second chunk",
        "timeout",
        "error 200 timeout",
        STOPS,
        {"planner": [text("half an answer", break_after=2, break_how="stall")]},
        settings="impatient",
        modes=STREAMED,
    ),
    Fault(
        "no word after the second chunk, with usage on every chunk",
        "timeout",
        "error 200 timeout +usage",
        STOPS,
        {"planner": [text("half an answer", break_after=2, break_how="stall", usage="every")]},
        settings="impatient",
        modes=STREAMED,
    ),
    Fault(
        "only keep-alive comments",
        "timeout",
        "2× error 200 timeout",
        STOPS,
        {"planner": [text("", break_after=0, break_how="comments")]},
        settings="impatient",
        modes=STREAMED,
    ),
]


_BAD_STREAM = "error 200 bad_response"
_DIED = "error 200 server_error"


def _broken(how: str, after: int, **more: object) -> Reply:
    return text("an answer in four pieces", break_after=after, break_how=how, **more)


STREAMS = [
    crash("reset after the second chunk", [_broken("rst", 2)], "connection", _BROKEN, STREAMED),
    crash("closed after the second chunk", [_broken("fin", 2)], "connection", _BROKEN, STREAMED),
    crash("reset before the first chunk, every time", [_broken("rst", 0)], "connection", again(_BROKEN), STREAMED),
    recovers("closed before the first chunk, then an answer", [_broken("fin", 0), GOOD], f"{_BROKEN}; {OK}", STREAMED),
    crash(
        "a garbage line among the chunks", [_broken("garbage", 2)], "bad_response", "error 200 bad_response", STREAMED
    ),
    recovers(
        "a garbage line as the first, then an answer",
        [_broken("garbage", 0), GOOD],
        f"error 200 bad_response; {OK}",
        STREAMED,
    ),
    crash(
        "ends without a finish reason", [_broken("eof_clean", 3)], "bad_response", "error 200 bad_response", STREAMED
    ),
    crash(
        "ends without a finish reason, with usage on every chunk",
        [_broken("eof_clean", 3, usage="every")],
        "bad_response",
        "error 200 bad_response +usage",
        STREAMED,
    ),
    crash(
        "an error event among the chunks",
        [_broken("error_event", 2)],
        "server_error",
        "error 200 server_error",
        STREAMED,
    ),
    crash(
        "an error event as the first, every time",
        [_broken("error_event", 0)],
        "server_error",
        again("error 200 server_error"),
        STREAMED,
    ),
    crash(
        "an error event with code 429, every time",
        [_broken("error_event", 0, error_event={"message": "slow down", "code": 429})],
        "rate_limit",
        again("error 200 rate_limit"),
        STREAMED,
    ),
    crash("no event at all", [_broken("eof_clean", 0)], "bad_response", again("error 200 bad_response"), STREAMED),
    recovers("closed after the finish reason, before the usage", [text(SAID, break_after=6)], "ok 200 stop", STREAMED),
    recovers("no [DONE] at the end", [text(SAID, done=False)], OK, STREAMED),
    recovers("a whole answer although a stream was asked for", [text(SAID, whole=True)], OK, STREAMED),
]

_NO_ANSWER = again("error 200 bad_response")
NO_ANSWERS = [
    crash("200 with a gateway's page, every time", [html()], "bad_response", _NO_ANSWER),
    recovers("200 with a gateway's page, then an answer", [html(), GOOD], f"error 200 bad_response; {OK}"),
    crash(
        "200 with a page that is called JSON",
        [html(content_type=JSON_TYPE)],
        "bad_response",
        _NO_ANSWER,
    ),
    crash(
        "200 with a page that is called an event stream",
        [html(content_type=SSE_TYPE)],
        "bad_response",
        _NO_ANSWER,
        STREAMED,
    ),
    crash(
        "200 with an error object, every time",
        [Reply(body='{"error": {"message": "engine died", "type": "server_error"}}')],
        "server_error",
        again("error 200 server_error"),
    ),
    crash(
        "200 with an error object that speaks of a quota",
        [Reply(body='{"error": {"message": "no money", "code": "insufficient_quota"}}')],
        "quota",
        "error 200 quota",
    ),
    crash("200 with broken JSON", [Reply(body='{"choices": [{"mess')], "bad_response", _NO_ANSWER),
    crash("200 without choices", [Reply(body='{"id": "x", "choices": []}')], "bad_response", _NO_ANSWER),
    crash("200 with null for a message", [Reply(body='{"choices": [{"message": null}]}')], "bad_response", _NO_ANSWER),
    crash("200 with a list", [Reply(body="[]")], "bad_response", _NO_ANSWER),
    crash(
        "finish reason content_filter",
        [text("", finish_reason="content_filter")],
        "content_filter",
        "error 200 content_filter content_filter +usage",
    ),
    recovers("finish reason length", [text(SAID, finish_reason="length")], "ok 200 length +usage"),
    crash(
        "finish reason length before a word was said",
        [text("", finish_reason="length")],
        "bad_response",
        "error 200 length bad_response +usage",
    ),
    crash("empty text, every time", [text("")], "bad_response", again("error 200 stop bad_response +usage")),
    recovers("white space, then an answer", [text(" \n"), GOOD], f"error 200 stop bad_response +usage; {OK}"),
    crash(
        "finish reason tool_calls without a call",
        [text("", finish_reason="tool_calls")],
        "bad_response",
        again("error 200 tool_calls bad_response +usage"),
    ),
    recovers("an answer without a finish reason", [text(SAID, finish_reason=None)], "ok 200 +usage", WHOLE),
    crash(
        "an answer without a finish reason",
        [text(SAID, finish_reason=None)],
        "bad_response",
        "error 200 bad_response +usage",
        STREAMED,
    ),
]


_TOLD = {"none": "", "partial": " +prompt"}
DIALECTS = [
    *(
        recovers(f"usage as in `{usage}`", [text(SAID, usage=usage)], f"ok 200 stop{told}", STREAMED)
        for usage in USAGES
        for told in [_TOLD.get(usage, " +usage")]
    ),
    recovers("usage of zeros", [text(SAID, usage="zeros")], "ok 200 stop"),
    recovers("usage null", [text(SAID, usage="none")], "ok 200 stop", WHOLE),
    recovers("completion tokens null", [text(SAID, usage="partial")], "ok 200 stop +prompt", WHOLE),
]
