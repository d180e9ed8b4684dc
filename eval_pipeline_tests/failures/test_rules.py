"""Each rule fires on the trace that was made for it, names its events, and stays silent on a clean one."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from eval_pipeline.failures.modes import MODES
from eval_pipeline.failures.rules import DECIDED, RULES, SIGNAL, Rule, Signal, signals, stage
from eval_pipeline.failures.trace import Trace
from eval_pipeline_tests.failures.planted import calls, chooses, clean_trace, fails, returns, says, trace

READ = "read_attached_file"
ANSWER = says("planner", "FINAL ANSWER: 42")
APPROVE = says("critic", "APPROVE")


def cycle(turns: int) -> list[dict[str, object]]:
    """The planner and the executor in turn, each time with other words."""
    drafts: list[dict[str, object]] = []
    for number in range(turns):
        role = "planner" if number % 2 == 0 else "executor"
        drafts += [chooses(role), says(role, f"step {number}")]
    return drafts


PLANTED: dict[str, tuple[Trace, str, str, tuple[int, ...]]] = {
    "placeholder_answer": (
        trace(says("planner", "FINAL ANSWER: <answer>"), APPROVE, success=False, format_valid=False, final_answer=None),
        "disobey_task_specification", DECIDED, (1,),
    ),
    "missing_answer_line": (
        trace(says("planner", "It is 42."), APPROVE, success=False, format_valid=False, final_answer=None),
        "disobey_task_specification", DECIDED, (1,),
    ),
    "no_answer_at_all": (
        trace(says("planner", "Let us see."), success=False, terminated_by="timeout", final_answer=None),
        "premature_termination", DECIDED, (1,),
    ),
    "went_on_after_the_answer": (
        trace(ANSWER, says("executor", "Fine."), terminated_by="max_messages"),
        "unaware_of_termination_conditions", DECIDED, (1, 2),
    ),
    "no_verification": (
        trace(says("critic", "Go on."), ANSWER, terminated_by="max_messages"),
        "no_or_incomplete_verification", DECIDED, (2,),
    ),
    "wrong_verification": (
        trace(ANSWER, says("critic", "Checked.\n**APPROVE**"), success=False),
        "incorrect_verification", DECIDED, (2,),
    ),
    "repeated_steps": (
        trace(*(d for n in "abc" for d in (calls(READ, {"path": "x"}, n), returns(READ, "y", n))), ANSWER, APPROVE),
        "step_repetition", DECIDED, (1, 3, 5),
    ),
    "ignored_error": (
        trace(*(d for n in "ab" for d in (calls(READ, {"path": "x"}, n), fails(READ, "OSError", n))), ANSWER, APPROVE),
        "ignored_other_agents_input", DECIDED, (2, 4),
    ),
    "out_of_role": (
        trace(says("executor", "FINAL ANSWER: 42"), ANSWER, APPROVE),
        "disobey_role_specification", DECIDED, (1,),
    ),
    "guessed_path": (
        trace(calls(READ, {"path": "data.txt"}), fails(READ, "FileNotFoundError"), success=False, terminated_by=None),
        "fail_to_ask_for_clarification", SIGNAL, (2,),
    ),
    "answer_after_error": (
        trace(calls(READ), fails(READ, "OSError"), says("executor", "OSError: no"), ANSWER, success=False),
        "premature_termination", SIGNAL, (2, 4),
    ),
    "announced_another_tool": (
        trace(
            says("planner", "Call python_calc."), calls("python_exec"), returns("python_exec", "1"),
            says("executor", "1"), calls("python_calc", None, "c2"), returns("python_calc", "1", "c2"), success=False,
        ),
        "reasoning_action_mismatch", SIGNAL, (1, 2),
    ),
    "conversation_reset": (
        trace(says("planner", "A plan."), says("planner", "How many tiles does the floor need?"), ANSWER, APPROVE),
        "conversation_reset", SIGNAL, (2,),
    ),
}  # fmt: skip
"""By the name of its rule: a trace, and the mode, confidence and events of the signal."""


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_rule_fires_on_what_was_planted_for_it_and_on_no_clean_run(rule: Rule) -> None:
    planted, mode, confidence, seqs = PLANTED[rule.__name__]
    (found,) = rule(planted)
    assert (found.mode, found.confidence, found.seqs) == (mode, confidence, seqs)
    assert found.detail
    assert list(rule(clean_trace())) == []


def test_every_mode_of_a_rule_is_one_of_mast() -> None:
    assert {mode for _, mode, _, _ in PLANTED.values()} <= MODES.keys()


def test_a_clean_run_has_no_signal_and_is_filed_under_nothing() -> None:
    assert signals(clean_trace()) == []
    assert stage([]) is None


@pytest.mark.parametrize(
    "silent",
    [
        trace(says("planner", "FINAL ANSWER: <answer>"), ANSWER, APPROVE),
        trace(says("planner", "The label is FINAL ANSWER: and then <x>."), ANSWER, APPROVE),
        trace(says("planner", "An essay."), APPROVE, answers="text", final_answer=None),
        trace(calls(READ), fails(READ, "FileNotFoundError"), says("executor", "no"), ANSWER, APPROVE),
        trace(*(d for n in "ab" for d in (calls(READ, {"p": 1}, n), returns(READ, "y", n))), ANSWER, APPROVE),
        trace(*(d for n in "abc" for d in (calls(READ, {"p": n}, n), returns(READ, "y", n))), ANSWER, APPROVE),
        trace(*(d for n in "abc" for d in (calls(READ, {"p": 1}, n), returns(READ, n, n))), ANSWER, APPROVE),
        trace(calls(READ), returns(READ, "x"), says("executor", "FINAL ANSWER: in the file"), ANSWER, APPROVE),
    ],
    ids=[
        "corrected placeholder", "answer line inside a sentence", "a text team", "guess that was put right",
        "twice alike", "other arguments", "other results", "a tool's output with a label",
    ],
)  # fmt: skip
def test_what_only_looks_like_a_failure_is_none(silent: Trace) -> None:
    assert signals(silent) == []


def test_an_answer_with_the_last_message_was_not_talked_over() -> None:
    found = {one.mode: one for one in signals(trace(says("planner", "Hm."), ANSWER, terminated_by="max_messages"))}
    assert found["unaware_of_termination_conditions"].confidence == SIGNAL


def test_two_roles_that_take_turns_to_the_end_are_a_signal_of_repetition() -> None:
    going_round = trace(*cycle(8), success=False, final_answer=None, terminated_by="max_messages")
    found = {one.mode: one for one in signals(going_round)}
    assert found["step_repetition"].confidence == SIGNAL
    assert len(found["step_repetition"].seqs) == 8
    shorter = trace(*cycle(5), success=False, final_answer=None, terminated_by="max_messages")
    assert "step_repetition" not in {one.mode for one in signals(shorter)}


def test_the_same_words_three_times_are_repetition_whatever_their_spacing() -> None:
    words = ("Read  it.", "Read it.", "Read\nit.")
    (found,) = signals(trace(*(says("planner", one) for one in words), ANSWER, APPROVE))
    assert (found.mode, found.seqs) == ("step_repetition", (1, 2, 3))


def test_long_arguments_that_differ_behind_the_cut_are_different_calls() -> None:
    drafts = []
    for number in "abc":
        call = calls("python_exec", '{"code": "same beginning', number) | {"content_sha256": number * 64}
        drafts += [call, returns("python_exec", "(nothing)", number)]
    assert signals(trace(*drafts, ANSWER, APPROVE)) == []


def test_an_approval_whose_word_was_cut_off_names_the_critics_message() -> None:
    (found,) = signals(trace(ANSWER, says("critic", "Because " * 1000), success=False))
    assert (found.mode, found.seqs) == ("incorrect_verification", (2,))


def test_of_two_signals_of_one_mode_the_decided_one_counts() -> None:
    both = trace(
        says("planner", "x"), calls(READ), fails(READ, "OSError"), says("executor", "no"), ANSWER,
        success=False, terminated_by="timeout", final_answer=None,
    )  # fmt: skip
    (found,) = [one for one in signals(both) if one.mode == "premature_termination"]
    assert found.confidence == DECIDED


def test_a_run_is_filed_under_the_first_decided_mode_and_else_under_a_signal() -> None:
    weak, sure = Signal("task_derailment", SIGNAL, (), ""), Signal("step_repetition", DECIDED, (), "")
    assert stage([weak, sure]) == "step_repetition"
    assert stage([weak]) == "task_derailment"


HOSTILE = "FINAL ANSWER: " * 500 + "\n" * 500 + "\u202e<answer>\ufffd한글 " * 50


@pytest.mark.parametrize(
    "drafts",
    [
        [],
        [says("planner", HOSTILE), says("critic", HOSTILE), says("somebody else", HOSTILE)],
        [says("planner", "*" * 8192), says("planner", "`" * 8192), says("planner", "\n " * 4096)],
        [calls("t", [[[[["deep"]]]]], ""), fails("t", "", ""), fails("t", "x" * 8000, "")],
        [calls("t", HOSTILE, HOSTILE), returns("u", HOSTILE, HOSTILE), returns("u", HOSTILE, HOSTILE)],
        [{**says("planner", "x"), "source": None}, {**chooses("planner"), "target": None, "reason_code": None}],
        [{**calls("t"), "tool_name": None, "tool_call_id": None}, {**returns("t", "x"), "tool_call_id": None}],
        [chooses("planner")] * 2000,
        [says("planner", "same")] * 2000,
    ],
    ids=[
        "nothing", "labels", "marks", "nested", "texts as ids", "no names", "no ids", "many decisions", "many messages",
    ],
)  # fmt: skip
@pytest.mark.parametrize("ending", ["approve", "max_messages", "timeout", None])
def test_no_trace_makes_a_rule_raise_or_hang(drafts: list[dict[str, object]], ending: str | None) -> None:
    hostile = trace(*drafts, success=False, format_valid=False, final_answer=None, terminated_by=ending)
    begun = time.monotonic()
    for one in (hostile, replace(hostile, events=()), replace(hostile, status="crashed", success=None)):
        for found in signals(one):
            assert found.mode in MODES
            assert set(found.seqs) <= {event.seq for event in one.events}
    assert time.monotonic() - begun < 20
