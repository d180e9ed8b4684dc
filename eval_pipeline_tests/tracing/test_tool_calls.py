from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from eval_pipeline.tracing.tool_calls import CallIds


def test_an_id_of_the_models_own_is_kept() -> None:
    ids = CallIds()
    call = ids.opened("call_9", "calc", "executor", 4)
    assert call.call_id == "call_9"
    assert ids.closed("call_9", "calc", "executor", 5) == call


def test_an_id_that_every_call_has_is_told_apart_and_paired_in_order() -> None:
    ids = CallIds()
    calls = [ids.opened("call_0", "calc", "executor", seq) for seq in range(3)]
    assert [call.call_id for call in calls] == ["call_0", "call_0~2", "call_0~3"]
    assert [ids.closed("call_0", "calc", "executor", 9).call_id for _ in range(3)] == ["call_0", "call_0~2", "call_0~3"]


def test_of_two_calls_with_one_id_a_result_takes_the_one_of_its_tool() -> None:
    ids = CallIds()
    ids.opened("x", "read", "executor", 0)
    ids.opened("x", "calc", "executor", 1)
    assert ids.closed("x", "calc", "executor", 2).call_id == "x~2"
    assert ids.closed("x", "anything", "executor", 3).call_id == "x"


def test_a_call_without_an_id_is_named_after_its_row_and_found_by_its_tool() -> None:
    ids = CallIds()
    first = ids.opened("", "read", "executor", 4)
    second = ids.opened(" ", "calc", "executor", 5)
    assert (first.call_id, second.call_id) == ("call-4", "call-5")
    assert ids.closed("", "read", "executor", 6) == first
    assert ids.take_open() == [second]
    assert ids.take_open() == []


def test_a_result_that_belongs_to_no_call_belongs_to_nobody_else_either() -> None:
    ids = CallIds()
    call = ids.opened("x", "read", "executor", 0)
    assert ids.closed("x", "read", "executor", 1) == call
    again = ids.closed("x", "read", "executor", 2)
    stranger = ids.closed("y", "read", "executor", 3)
    nameless = ids.closed("", "read", "executor", 4)
    assert [again.call_id, stranger.call_id, nameless.call_id] == ["x~2", "y", "call-4"]


def test_a_made_id_gives_way_to_one_that_a_model_has_used() -> None:
    ids = CallIds()
    ids.opened("call-1", "read", "executor", 0)
    assert ids.opened("", "read", "executor", 1).call_id == "call-1~2"
    assert ids.opened("call-1~2", "read", "executor", 2).call_id != "call-1~2"


def test_very_long_ids_stay_short_and_apart() -> None:
    ids = CallIds()
    made = [ids.opened("x" * 10_000 + str(number), "read", "executor", number).call_id for number in range(50)]
    assert len(set(made)) == 50
    assert max(map(len, made)) <= 200


STEPS = st.lists(st.tuples(st.booleans(), st.sampled_from(["", "a", "a~2", "call-1"]), st.sampled_from(["x", "y"])))


@settings(deadline=None)
@given(STEPS)
def test_no_stored_id_has_two_calls_or_two_results(steps: list[tuple[bool, str, str]]) -> None:
    ids = CallIds()
    opened: list[str] = []
    closed: list[str] = []
    for seq, (is_call, given_id, name) in enumerate(steps):
        into, act = (opened, ids.opened) if is_call else (closed, ids.closed)
        into.append(act(given_id, name, "executor", seq).call_id)
    left = [call.call_id for call in ids.take_open()]
    assert len(set(opened)) == len(opened)
    assert len(set(closed)) == len(closed)
    assert set(opened) - set(closed) == set(left)
