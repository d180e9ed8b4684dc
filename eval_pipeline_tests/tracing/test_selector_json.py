from __future__ import annotations

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_pipeline.tracing.selector_json import SelectorDecision, parse_selector

ANSWER = '{"next": "planner", "reason_code": "NEEDS_PLANNING", "summary": "go on"}'
READ = SelectorDecision("planner", "NEEDS_PLANNING", "go on")


@pytest.mark.parametrize(
    "text",
    [
        ANSWER,
        f"  \n{ANSWER}\n",
        f"```json\n{ANSWER}\n```",
        f"```\n{ANSWER}\n```",
        f"```json {ANSWER}```",
        f"```json\n{ANSWER}",
        f"Sure, here it is:\n```json\n{ANSWER}\n```\nTell me {{if}} it helps.",
        f"The next speaker is {ANSWER} as you see.",
        f"<think>executor? {{maybe}}</think>{ANSWER}",
        f"executor or critic? {{hm}}\n</think>\n```json\n{ANSWER}\n```",
        f"[{ANSWER}]",
        ANSWER.replace('"planner"', '"critic", "next": " planner "'),
    ],
)
def test_the_answer_is_found_in_what_models_wrap_around_it(text: str) -> None:
    assert parse_selector(text) == READ


def test_hangul_and_a_closing_tag_inside_the_summary_survive() -> None:
    answer = {"next": "critic", "reason_code": "NEEDS_VERIFICATION", "summary": "답이 있다 </think> {x}"}
    assert parse_selector(json.dumps(answer, ensure_ascii=False)).summary == "답이 있다 </think> {x}"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "planner",
        "{",
        "}{",
        "```",
        "null",
        "[]",
        '"planner"',
        "{}",
        '{"next": null}',
        '{"next": ""}',
        '{"next": "  "}',
        '{"next": ["planner"]}',
        '{"next": 1}',
        '{"Next": "planner"}',
        json.dumps({"next": "p" * 201}),
        '{"next": "planner"} and {"next": "critic"}',
        f"<think>{ANSWER}",
        f"<think>{ANSWER}</think> planner",
        "[" * 100_000,
        '{"next":' * 50_000,
        '{"next": 1' + "0" * 5000 + "}",
        "\0\ud800",
    ],
)
def test_what_names_nobody_is_a_parse_failure(text: str) -> None:
    decision = parse_selector(text)
    assert decision == SelectorDecision(None, "PARSE_FAILED", text[:500])


@pytest.mark.parametrize(
    ("code", "kept"),
    [
        ('"NEEDS_REVISION"', "NEEDS_REVISION"),
        ('" NEEDS_REVISION "', "NEEDS_REVISION"),
        ('"OTHER_REASON"', "OTHER_REASON"),
        ('"' + "A" * 40 + '"', "A" * 40),
        ('"' + "A" * 41 + '"', "PARSE_FAILED"),
        ('"needs_revision"', "PARSE_FAILED"),
        ('"NEEDS REVISION"', "PARSE_FAILED"),
        ('"PARSE_FAILED"', "PARSE_FAILED"),
        ('""', "PARSE_FAILED"),
        ("null", "PARSE_FAILED"),
        ("7", "PARSE_FAILED"),
        ('["NEEDS_REVISION"]', "PARSE_FAILED"),
    ],
)
def test_a_reason_code_is_kept_if_it_looks_like_one(code: str, kept: str) -> None:
    decision = parse_selector(f'{{"next": "planner", "reason_code": {code}, "summary": 3}}')
    assert decision == SelectorDecision("planner", kept, "")


def test_a_model_cannot_pretend_to_be_autogens_fallback() -> None:
    assert parse_selector('{"next": "critic", "reason_code": "FALLBACK"}').reason_code == "PARSE_FAILED"


@settings(deadline=None)
@given(st.one_of(st.text(), st.recursive(st.none() | st.text(), st.lists).map(json.dumps)))
def test_no_text_makes_it_raise(text: str) -> None:
    decision = parse_selector(text)
    assert (decision.next is None) <= (decision.reason_code == "PARSE_FAILED")


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(["next", "reason_code", "summary"]), st.none() | st.text() | st.integers()))
def test_no_object_makes_it_raise(answer: dict[str, object]) -> None:
    decision = parse_selector(json.dumps(answer))
    assert decision.next is None or decision.next == str(answer["next"]).strip()


@pytest.mark.parametrize("piece", ["`", "{", "}", "<think>", "</think>", "```", '{"next": "a', "\\"])
def test_ten_megabytes_do_not_hang_it(piece: str) -> None:
    start = time.monotonic()
    parse_selector(piece * (10_000_000 // len(piece)))
    assert time.monotonic() - start < 20


def test_something_that_is_no_text_is_a_parse_failure() -> None:
    assert parse_selector(None) == SelectorDecision(None, "PARSE_FAILED", "")  # type: ignore[arg-type]
