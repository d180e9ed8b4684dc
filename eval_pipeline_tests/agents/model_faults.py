"""What models do wrong: tool calls, choices of a speaker, verdicts and texts."""

from __future__ import annotations

from collections.abc import Sequence

from eval_pipeline_tests.agents.faults import BOTH, GOES_ON, OK, SAID, STREAMED, WHOLE, Fault, recovers
from eval_pipeline_tests.agents.scenes import ANSWER, APPROVAL, COMPUTE, LONG, choose
from eval_pipeline_tests.stub_openai import Call, Reply, text, tool_calls

TOOL_GOES_ON = "user →planner planner →executor call:{} {} executor →planner planner →critic critic end:approve"
REJECTED = "user →planner planner →critic critic →planner planner →critic critic end:approve"
TWICE = ("planner", "critic", "planner", "critic")


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
    recovers("NUL and lone surrogates in an answer", [text(f"\x00\x01 \ud83d and \udc00\n{SAID}")], OK),
    recovers("content as a list of parts", [text(SAID, content_parts=True)], OK, WHOLE),
]
