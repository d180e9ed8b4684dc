"""What endpoints and models do wrong, and what a run has to make of it: the rows of the fault matrix.

Each row is one scene. The matrix is checked in ``test_faults.py`` and written down in ``docs/faults.md``; run this
module to write that file anew.
"""

from __future__ import annotations

import email.utils
import itertools
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from eval_pipeline_tests.agents.scenes import ANSWER, APPROVAL, COMPUTE, GOOD, LONG, SHORT, Scene, choose
from eval_pipeline_tests.stub_openai import (
    FOR_EVER_S,
    SSE_TYPE,
    USAGES,
    Call,
    Reply,
    content_filter_400,
    error,
    html,
    text,
    tool_calls,
)

DOCUMENT = Path(__file__).parents[2] / "docs" / "faults.md"

WHOLE, STREAMED, BOTH = (False,), (True,), (False, True)
RETRIES = 2
BUDGET_S = 5.0
GOES_ON = "user →planner planner →critic critic end:approve"
STOPS = "user →planner"
TOOL_GOES_ON = "user →planner planner →executor call:{} {} executor →planner planner →critic critic end:approve"
REJECTED = "user →planner planner →critic critic →planner planner →critic critic end:approve"
TWICE = ("planner", "critic", "planner", "critic")


_numbers = itertools.count(1)


@dataclass(frozen=True)
class Fault:
    """One row. ``calls`` are those of ``role`` in short, see :func:`test_faults.call_line`; all others went well.

    ``end`` is what the run was terminated by, or the class of its error. ``settings`` names the launch's settings.
    """

    what: str
    end: str
    calls: str
    trace: str
    replies: Mapping[str, Sequence[Reply]]
    role: str = "planner"
    modes: Sequence[bool] = BOTH
    route: Sequence[str] = SHORT
    question: str = "What is 6 * 7?"
    settings: str = "usual"
    task_id: str = field(default_factory=lambda: f"fault-{next(_numbers):03d}")

    @property
    def scene(self) -> Scene:
        return Scene(self.task_id, self.replies, self.route, self.question)

    @property
    def refuses(self) -> bool:
        """Whether runs in a row like this one keep others from starting."""
        return self.end in ("quota", "auth")


def _in_s(seconds: float) -> str:
    return email.utils.formatdate(time.time() + seconds, usegmt=True)


def _crash(what: str, replies: Sequence[Reply], end: str, calls: str, modes: Sequence[bool] = BOTH) -> Fault:
    return Fault(what, end, calls, STOPS, {"planner": replies}, modes=modes)


def _recovers(what: str, replies: Sequence[Reply], calls: str, modes: Sequence[bool] = BOTH) -> Fault:
    return Fault(what, "approve", calls, GOES_ON, {"planner": replies}, modes=modes)


def _again(failure: str) -> str:
    return f"{RETRIES + 1}× {failure}"


OK = "ok 200 stop +usage"
SAID = ANSWER.text or ""

STATUSES = [
    _crash("400", [error(400)], "bad_response", "error 400 bad_response"),
    _crash("401", [error(401)], "auth", "error 401 auth"),
    _crash("402", [error(402)], "quota", "error 402 quota"),
    _crash("403", [error(403)], "auth", "error 403 auth"),
    _crash("403 that speaks of a quota", [error(403, code="insufficient_quota")], "quota", "error 403 quota"),
    _crash("404", [error(404)], "bad_response", "error 404 bad_response"),
    _crash("408 every time", [error(408)], "timeout", _again("error 408 timeout")),
    _crash("422", [error(422)], "bad_response", "error 422 bad_response"),
    _crash("429 every time", [error(429)], "rate_limit", _again("error 429 rate_limit")),
    _recovers("429 twice, then an answer", [error(429), error(429), GOOD], f"2× error 429 rate_limit; {OK}"),
    _recovers(
        "429 with Retry-After in seconds, then an answer",
        [error(429, headers={"retry-after": "0.2"}), GOOD],
        f"error 429 rate_limit; {OK}",
    ),
    _recovers(
        "429 with Retry-After as a date, then an answer",
        [error(429, headers={"retry-after": _in_s(0), "date": _in_s(-1)}), GOOD],
        f"error 429 rate_limit; {OK}",
    ),
    _recovers(
        "429 with retry-after-ms, then an answer",
        [error(429, headers={"retry-after-ms": "200", "retry-after": "3600"}), GOOD],
        f"error 429 rate_limit; {OK}",
    ),
    _crash(
        "429 with a Retry-After beyond the retry budget",
        [error(429, headers={"retry-after": str(2 * BUDGET_S)})],
        "rate_limit",
        "error 429 rate_limit",
    ),
    _recovers(
        "429 with a Retry-After that is neither number nor date, then an answer",
        [error(429, headers={"retry-after": "soon"}), GOOD],
        f"error 429 rate_limit; {OK}",
    ),
    _crash(
        "429 insufficient_quota",
        [error(429, "You exceeded your current quota, please check your plan", "insufficient_quota")],
        "quota",
        "error 429 quota",
    ),
    _crash(
        "429 of a daily limit",
        [error(429, "Rate limit reached for requests per day (RPD)")],
        "quota",
        "error 429 quota",
    ),
    _crash(
        "429 of a limit per minute that points to the billing page",
        [
            error(
                429, "Rate limit reached (RPM): Limit 3. Add a payment method at https://example.test/account/billing."
            )
        ],
        "rate_limit",
        _again("error 429 rate_limit"),
    ),
    _crash("500 every time", [error(500)], "server_error", _again("error 500 server_error")),
    _crash("502 with a gateway's page", [html(502)], "server_error", _again("error 502 server_error")),
    _recovers("503, then an answer", [error(503), GOOD], f"error 503 server_error; {OK}"),
    _crash("400 content_filter", [content_filter_400()], "content_filter", "error 400 content_filter"),
    Fault(
        "500 every time for the first choice of a speaker",
        "server_error",
        _again("error 500 server_error"),
        "user",
        {"selector": [error(500)]},
        role="selector",
    ),
    Fault(
        "429 every time for the critic",
        "rate_limit",
        _again("error 429 rate_limit"),
        "user →planner planner →critic",
        {"critic": [error(429)]},
        role="critic",
    ),
]

_GONE = "error – connection"
_BROKEN = "error 200 connection"
CONNECTIONS = [
    _crash("reset before the status, every time", [Reply(drop_before_status="rst")], "connection", _again(_GONE)),
    _recovers("closed before the status, then an answer", [Reply(drop_before_status="fin"), GOOD], f"{_GONE}; {OK}"),
    Fault(
        "refused connection",
        "connection",
        _again(_GONE),
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
    _crash("reset after the second chunk", [_broken("rst", 2)], "connection", _BROKEN, STREAMED),
    _crash("closed after the second chunk", [_broken("fin", 2)], "connection", _BROKEN, STREAMED),
    _crash("reset before the first chunk, every time", [_broken("rst", 0)], "connection", _again(_BROKEN), STREAMED),
    _recovers("closed before the first chunk, then an answer", [_broken("fin", 0), GOOD], f"{_BROKEN}; {OK}", STREAMED),
    _crash(
        "a garbage line among the chunks", [_broken("garbage", 2)], "bad_response", "error 200 bad_response", STREAMED
    ),
    _recovers(
        "a garbage line as the first, then an answer",
        [_broken("garbage", 0), GOOD],
        f"error 200 bad_response; {OK}",
        STREAMED,
    ),
    _crash(
        "ends without a finish reason", [_broken("eof_clean", 3)], "bad_response", "error 200 bad_response", STREAMED
    ),
    _crash(
        "ends without a finish reason, with usage on every chunk",
        [_broken("eof_clean", 3, usage="every")],
        "bad_response",
        "error 200 bad_response +usage",
        STREAMED,
    ),
    _crash(
        "an error event among the chunks",
        [_broken("error_event", 2)],
        "server_error",
        "error 200 server_error",
        STREAMED,
    ),
    _crash(
        "an error event as the first, every time",
        [_broken("error_event", 0)],
        "server_error",
        _again("error 200 server_error"),
        STREAMED,
    ),
    _crash(
        "an error event with code 429, every time",
        [_broken("error_event", 0, error_event={"message": "slow down", "code": 429})],
        "rate_limit",
        _again("error 200 rate_limit"),
        STREAMED,
    ),
    _crash("no event at all", [_broken("eof_clean", 0)], "bad_response", _again("error 200 bad_response"), STREAMED),
    _recovers("closed after the finish reason, before the usage", [_broken("fin", 6)], "ok 200 stop", STREAMED),
    _recovers("no [DONE] at the end", [text(SAID, done=False)], OK, STREAMED),
    _recovers("a whole answer although a stream was asked for", [text(SAID, whole=True)], OK, STREAMED),
]

_NO_ANSWER = _again("error 200 bad_response")
NO_ANSWERS = [
    _crash("200 with a gateway's page, every time", [html()], "bad_response", _NO_ANSWER),
    _recovers("200 with a gateway's page, then an answer", [html(), GOOD], f"error 200 bad_response; {OK}"),
    _crash(
        "200 with a gateway's page that is called JSON",
        [html(content_type="application/json")],
        "bad_response",
        _NO_ANSWER,
    ),
    _crash(
        "200 with a page that is called an event stream",
        [html(content_type=SSE_TYPE)],
        "bad_response",
        _NO_ANSWER,
        STREAMED,
    ),
    _crash(
        "200 with an error object, every time",
        [Reply(body='{"error": {"message": "engine died", "type": "server_error"}}')],
        "server_error",
        _again("error 200 server_error"),
    ),
    _crash(
        "200 with an error object that speaks of a quota",
        [Reply(body='{"error": {"message": "no money", "code": "insufficient_quota"}}')],
        "quota",
        "error 200 quota",
    ),
    _crash("200 with broken JSON", [Reply(body='{"choices": [{"mess')], "bad_response", _NO_ANSWER),
    _crash("200 without choices", [Reply(body='{"id": "x", "choices": []}')], "bad_response", _NO_ANSWER),
    _crash("200 with null for a message", [Reply(body='{"choices": [{"message": null}]}')], "bad_response", _NO_ANSWER),
    _crash("200 with a list", [Reply(body="[]")], "bad_response", _NO_ANSWER),
    _crash(
        "finish reason content_filter",
        [text("", finish_reason="content_filter")],
        "content_filter",
        "error 200 content_filter content_filter +usage",
    ),
    _recovers("finish reason length", [text(SAID, finish_reason="length")], "ok 200 length +usage"),
    _crash(
        "finish reason length before a word was said",
        [text("", finish_reason="length")],
        "bad_response",
        "error 200 length bad_response +usage",
    ),
    _crash("empty text, every time", [text("")], "bad_response", _again("error 200 stop bad_response +usage")),
    _recovers("white space, then an answer", [text(" \n"), GOOD], f"error 200 stop bad_response +usage; {OK}"),
    _crash(
        "finish reason tool_calls without a call",
        [text("", finish_reason="tool_calls")],
        "bad_response",
        _again("error 200 tool_calls bad_response +usage"),
    ),
    _recovers("an answer without a finish reason", [text(SAID, finish_reason=None)], "ok 200 +usage", WHOLE),
    _crash(
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
        _recovers(f"usage as in `{usage}`", [text(SAID, usage=usage)], f"ok 200 stop{told}", STREAMED)
        for usage in USAGES
        for told in [_TOLD.get(usage, " +usage")]
    ),
    _recovers("usage null", [text(SAID, usage="none")], "ok 200 stop", WHOLE),
    _recovers("completion tokens null", [text(SAID, usage="partial")], "ok 200 stop +prompt", WHOLE),
]


def _tools(
    what: str,
    calls: Sequence[Call],
    outcome: str,
    modes: Sequence[bool] = BOTH,
    name: str = "python_calc",
    **more: object,
) -> Fault:
    return Fault(
        what,
        "approve",
        "ok 200 tool_calls +usage",
        TOOL_GOES_ON.format(name, outcome),
        {"executor": [Reply(calls=calls, **more)]},  # type: ignore[arg-type]
        role="executor",
        route=LONG,
        modes=modes,
    )


_SIX = '{"expression": "2 * 3"}'
_BAD = "error:ToolCallError"
_TYPE = "error:TypeError"
_PAIR = "call:python_calc result result"
TOOL_CALLS = [
    _tools("a null id", [Call("python_calc", _SIX, None)], "result"),
    _tools("an empty id", [Call("python_calc", _SIX, "")], "result"),
    _tools("two calls with null ids", [Call("python_calc", _SIX, None)] * 2, _PAIR),
    _tools("two calls with the same id", [Call("python_calc", _SIX, "twin")] * 2, _PAIR, WHOLE),
    _tools(
        "two calls with the same id",
        [Call("python_calc", _SIX, "twin", 0), Call("python_calc", _SIX, "twin", 1)],
        _PAIR,
        STREAMED,
    ),
    _tools("id and name in every delta", [Call("python_calc", _SIX, "one")], "result", STREAMED, repeat_id=True),
    _tools("deltas without an index", [Call("python_calc", _SIX, "one")], "result", STREAMED, omit_index=True),
    _tools(
        "two calls, deltas without an index",
        [Call("python_calc", _SIX, "one"), Call("python_calc", _SIX, "two")],
        _PAIR,
        STREAMED,
        omit_index=True,
    ),
    _tools(
        "two calls that both have index 0",
        [Call("python_calc", _SIX, "one", 0), Call("python_calc", _SIX, "two", 0)],
        _PAIR,
        STREAMED,
    ),
    _tools("empty arguments", [Call("python_calc", "", "one")], _TYPE),
    _tools("null for arguments", [Call("python_calc", None, "one")], _TYPE),
    _tools(
        "an object in place of the arguments' text", [Call("python_calc", {"expression": "1"}, "one")], "result", WHOLE
    ),
    _tools("arguments that are no JSON", [Call("python_calc", '{"expression": ', "one")], _BAD),
    _tools("arguments that are a list", [Call("python_calc", '["2 * 3"]', "one")], _TYPE),
    _tools("a number of 5,000 digits", [Call("python_calc", f'{{"expression": {"9" * 5000}}}', "one")], _BAD),
    _tools("brackets nested 100,000 deep", [Call("python_calc", "[" * 100_000, "one")], _BAD),
    _tools("a tool that nobody has", [Call("launch_rocket", "{}", "one")], _BAD, name="launch_rocket"),
    _tools("null for a tool's name", [Call(None, "{}", "one")], _BAD, name="unnamed"),
    _tools("an argument of the wrong type", [Call("python_calc", '{"expression": 6}', "one")], _TYPE),
    _tools("an argument too many", [Call("python_calc", '{"expression": "6", "unit": "m"}', "one")], _TYPE),
    _tools("an argument missing", [Call("python_calc", "{}", "one")], _TYPE),
    _tools("a tool that fails", [Call("python_calc", '{"expression": "1 / 0"}', "one")], "error:ZeroDivisionError"),
    Fault(
        "cut off in the middle of the arguments",
        "bad_response",
        "error 200 bad_response",
        "user →planner planner →executor",
        {"executor": [Reply(calls=[Call("python_calc", _SIX, "one")], break_after=3, break_how="eof_clean")]},
        role="executor",
        route=LONG,
        modes=STREAMED,
    ),
    Fault(
        "the planner calls a tool that it does not have",
        "approve",
        f"ok 200 tool_calls +usage; {OK}",
        f"user →planner call:python_calc {_BAD} planner →critic critic →planner planner →critic critic end:approve",
        {"planner": [COMPUTE, ANSWER], "critic": [text("There is no answer yet."), APPROVAL]},
        route=TWICE,
    ),
    Fault(
        "the critic calls a tool named APPROVE",
        "approve",
        f"ok 200 tool_calls +usage; {OK}",
        f"user →planner planner →critic call:APPROVE {_BAD} critic →planner planner →critic critic end:approve",
        {"critic": [tool_calls([("APPROVE", "{}")]), APPROVAL]},
        role="critic",
        route=TWICE,
    ),
]


def _selects(what: str, replies: Sequence[Reply], trace: str = "→planner", *, calls: int | str = 1) -> Fault:
    """The first choice of a speaker, which should be the planner."""
    rest = "planner →critic critic end:approve"
    line = calls if isinstance(calls, str) else f"{calls + 1}× {OK}"
    return Fault(
        what, "approve", line, f"user {trace} {rest}", {"selector": [*replies, choose("critic")]}, role="selector"
    )


_UNREAD = "→?(PARSE_FAILED) →planner"
SELECTIONS = [
    _selects("the summary names two agents", [choose("planner", "executor is done, critic should review")]),
    _selects("JSON in a fence", [text('```json\n{"next": "planner", "reason_code": "NEEDS_PLANNING"}\n```')]),
    _selects(
        "JSON after a thought that names others",
        [text('<think>executor or critic?</think>{"next": "planner", "reason_code": "NEEDS_PLANNING"}')],
    ),
    _selects("the name in the wrong case", [text('{"next": "PLANNER", "reason_code": "NEEDS_PLANNING"}')]),
    _selects("words around the JSON", [text('Sure: {"next": "planner", "reason_code": "NEEDS_PLANNING"} is next')]),
    _selects(
        "an unknown reason code", [text('{"next": "planner", "reason_code": "no idea"}')], "→planner(PARSE_FAILED)"
    ),
    _selects("an unknown name, then a right one", [choose("manager"), choose("planner")], "→manager →planner", calls=2),
    _selects(
        "a missing name, then a right one",
        [text('{"reason_code": "NEEDS_PLANNING"}'), choose("planner")],
        _UNREAD,
        calls=2,
    ),
    _selects(
        "null for a name, then a right one",
        [text('{"next": null}'), choose("planner")],
        _UNREAD,
        calls=2,
    ),
    _selects("a bare name, then JSON", [text("planner"), choose("planner")], _UNREAD, calls=2),
    _selects("empty text, then a right one", [text(""), choose("planner")], _UNREAD, calls=2),
    _selects(
        "a tool call, then a right one",
        [tool_calls([("planner", "{}")]), choose("planner")],
        _UNREAD,
        calls=f"ok 200 tool_calls +usage; 2× {OK}",
    ),
    _selects(
        "an unknown name three times: AutoGen falls back to the first participant",
        [choose("manager")] * 3,
        "→manager →manager →manager →planner(FALLBACK)",
        calls=3,
    ),
    _selects(
        "empty text three times: the same",
        [text("")] * 3,
        "→?(PARSE_FAILED) →?(PARSE_FAILED) →?(PARSE_FAILED) →planner(FALLBACK)",
        calls=3,
    ),
    Fault(
        "the speaker of before, then another",
        "approve",
        f"3× {OK}",
        "user →planner planner →planner →critic critic end:approve",
        {"selector": [choose("planner"), choose("planner"), choose("critic")]},
        role="selector",
    ),
    Fault(
        "the speaker of before three times: AutoGen falls back to him",
        "approve",
        f"5× {OK}",
        "user →planner planner →planner →planner →planner →planner(FALLBACK) planner →critic critic end:approve",
        {"selector": [*[choose("planner")] * 4, choose("critic")]},
        role="selector",
    ),
]


def _verdict(what: str, refusal: Reply, *, settings: str = "usual", modes: Sequence[bool] = BOTH) -> Fault:
    """A critic's message that must not end the run; the next one does."""
    return Fault(
        what,
        "approve",
        f"2× {OK}",
        REJECTED,
        {"critic": [refusal, APPROVAL]},
        role="critic",
        route=TWICE,
        settings=settings,
        modes=modes,
    )


def _approves(what: str, approval: str, settings: str = "usual") -> Fault:
    return Fault(what, "approve", OK, GOES_ON, {"critic": [text(approval)]}, role="critic", settings=settings)


VERDICTS = [
    _verdict("`I cannot APPROVE this. Redo.`", text("I cannot APPROVE this. Redo.")),
    _verdict("`I DISAPPROVE`", text("I DISAPPROVE")),
    _verdict("`DISAPPROVE` alone", text("DISAPPROVE")),
    _verdict("`approve` in small letters", text("approve")),
    _verdict("APPROVE on a line before the last", text("APPROVE\nbut only if the unit is right, which it is not")),
    _verdict("APPROVE in the reasoning", text("Rejected.", reasoning="The user wants APPROVE.\nAPPROVE")),
    _verdict(
        "APPROVE in the reasoning, in vLLM's newer field",
        text("Rejected.", reasoning="APPROVE", reasoning_key="reasoning"),
    ),
    _verdict("APPROVE in a `<think>` block", text("<think>\nAPPROVE\n</think>\nRejected.")),
    _verdict("APPROVE in a `<think>` block that has no end", text("<think>\nIt may be right.\nAPPROVE")),
    _verdict(
        "APPROVE in a `<think>` block of the family r1", text("<think>\nAPPROVE\n</think>\nRejected."), settings="r1"
    ),
    Fault(
        "APPROVE in the task's text",
        "approve",
        OK,
        GOES_ON,
        {},
        role="critic",
        question="Answer 42.\nAPPROVE",
    ),
    Fault(
        "the planner says APPROVE",
        "approve",
        f"2× {OK}",
        REJECTED,
        {"planner": [text("APPROVE"), ANSWER], "critic": [text("There is no answer."), APPROVAL]},
        route=TWICE,
    ),
    Fault(
        "the critic never approves",
        "max_messages",
        f"3× {OK}",
        f"user {'→planner planner →critic critic ' * 3}→planner planner end:max_messages",
        {"critic": [text("Redo it.")]},
        role="critic",
        route=TWICE * 4,
    ),
    _approves("`**APPROVE**.`", "It is right.\n\n**APPROVE**."),
    _approves("APPROVE after a `<think>` block on one line", "<think>Is it right? It is.</think>APPROVE"),
    _approves(
        "APPROVE after a `<think>` block of the family r1",
        "<think>Is it right? It is.</think>\n\nAPPROVE",
        settings="r1",
    ),
]

TEXTS = [
    _recovers("NUL and lone surrogates in an answer", [text(f"\x00\x01 \ud83d and \udc00\n{SAID}")], OK),
    _recovers("content as a list of parts", [text(SAID, content_parts=True)], OK, WHOLE),
]

SECTIONS: Mapping[str, Sequence[Fault]] = {
    "Statuses": STATUSES,
    "Connections": CONNECTIONS,
    "Broken streams": STREAMS,
    "Answers that are none": NO_ANSWERS,
    "Dialects of usage": DIALECTS,
    "Tool calls of the executor": TOOL_CALLS,
    "The selector's choice": SELECTIONS,
    "The critic's verdict": VERDICTS,
    "Texts": TEXTS,
}
FAULTS = [fault for section in SECTIONS.values() for fault in section]

_INTRODUCTION = f"""\
# What endpoints and models do wrong, and what becomes of a run

Each row is played against a stub endpoint through the product's own run path; a test holds this file against what it
sees. An endpoint's failure is a crash of its class and never a wrong answer; a model's mistake is an answer that the
team goes on with. Settings of the test: {RETRIES} retries, a retry budget of {BUDGET_S:g} s.

- *Answer*: whether the endpoint was asked for a stream (`EVAL_LLM_STREAM`).
- *The run ends*: `terminated_by` of a completed run, or the error class of a crash.
- *Calls*: the rows of `model_calls` of the role that met the fault, as outcome, HTTP status (– for none), finish
  reason, error class, and `+usage` where both token counts are known (`+prompt`: only that one; nothing: NULL). All
  other calls went well.
- *Trace*: the rows of `events`: who spoke, `→` whom the selector chose (with an unusual reason code), `call:` and what
  came of it, the end. A crash has no end.
"""


def document() -> str:
    """The text of ``docs/faults.md``."""
    lines = [_INTRODUCTION]
    for section, faults in SECTIONS.items():
        lines += [f"## {section}", "", "| what happens | answer | the run ends | calls | trace |", "| --- " * 5 + "|"]
        lines += [
            f"| {fault.what} | {_mode(fault.modes)} | {fault.end} | {fault.calls} | {fault.trace} |" for fault in faults
        ]
        lines.append("")
    return "\n".join(lines)


def _mode(modes: Sequence[bool]) -> str:
    return "either" if len(modes) == 2 else "streamed" if modes[0] else "whole"


if __name__ == "__main__":
    DOCUMENT.parent.mkdir(exist_ok=True)
    DOCUMENT.write_text(document(), encoding="utf-8")
