"""Whatever an endpoint sends is read as an answer or refused with a class; nothing else comes of it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_pipeline.agents.answers import Parts, whole_of_body
from eval_pipeline.agents.completion import Completion, ModelFailure, Progress
from eval_pipeline.agents.tool_arguments import executable
from eval_pipeline.errors import ErrorClass

SCALARS = st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False) | st.text(max_size=8)
ANYTHING = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner)
)


def _or_anything(usual: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.one_of(usual, usual, usual, ANYTHING)


FUNCTION = _or_anything(st.fixed_dictionaries({}, optional={"name": ANYTHING, "arguments": ANYTHING}))
CALL = _or_anything(
    st.fixed_dictionaries({}, optional={"id": ANYTHING, "type": ANYTHING, "index": ANYTHING, "function": FUNCTION})
)
MESSAGE = _or_anything(
    st.fixed_dictionaries(
        {},
        optional={
            "role": ANYTHING,
            "content": ANYTHING,
            "reasoning": ANYTHING,
            "reasoning_content": ANYTHING,
            "tool_calls": _or_anything(st.lists(CALL, max_size=3)),
        },
    )
)
CHOICE = _or_anything(
    st.fixed_dictionaries(
        {}, optional={"message": MESSAGE, "delta": MESSAGE, "finish_reason": ANYTHING, "index": ANYTHING}
    )
)
USAGE = _or_anything(st.fixed_dictionaries({}, optional={"prompt_tokens": ANYTHING, "completion_tokens": ANYTHING}))
ANSWER = st.fixed_dictionaries(
    {},
    optional={
        "id": ANYTHING,
        "model": ANYTHING,
        "error": ANYTHING,
        "usage": USAGE,
        "choices": _or_anything(st.lists(CHOICE, max_size=2)),
    },
)


def _is_sound(completion: Completion) -> None:
    assert isinstance(completion.content, str | list)
    if isinstance(completion.content, list):
        calls = executable(completion.content, "answer")
        assert len({call.id for call in calls}) == len(calls)
        assert all(isinstance(text, str) for call in calls for text in (call.id, call.name, call.arguments))
    for word in (completion.finish_reason, completion.model, completion.thought):
        assert word is None or isinstance(word, str)


@settings(max_examples=100, deadline=None)
@given(body=ANSWER, split=st.booleans())
def test_any_json_is_an_answer_or_a_failure_with_a_class(body: dict[str, object], split: bool) -> None:
    try:
        completion = whole_of_body(json.dumps(body).encode(), split_reasoning=split)
    except ModelFailure as failure:
        assert isinstance(failure.error_class, ErrorClass)
        assert "\n" not in str(failure)
    else:
        _is_sound(completion)


@settings(max_examples=100, deadline=None)
@given(chunks=st.lists(ANSWER, max_size=4), split=st.booleans())
def test_any_chunks_are_an_answer_or_a_failure_with_a_class(chunks: list[dict[str, object]], split: bool) -> None:
    parts = Parts(Progress())
    try:
        for chunk in chunks:
            parts.add(chunk)
        completion = parts.completion(split_reasoning=split)
    except ModelFailure as failure:
        said_so = any(chunk.get("error") for chunk in chunks)
        assert said_so or failure.error_class is ErrorClass.BAD_RESPONSE
    else:
        _is_sound(completion)


@pytest.mark.parametrize("body", [b"", b"\xff\xfe", b"nul", b"[" * 100_000, b'"text"', b"<html>\n</html>", b"1e999"])
def test_what_is_no_json_object_is_refused(body: bytes) -> None:
    with pytest.raises(ModelFailure, match="without a completion") as caught:
        whole_of_body(body, split_reasoning=False)
    assert caught.value.error_class is ErrorClass.BAD_RESPONSE
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("said", "thought", "content"),
    [
        ("<think>why</think>because", "why", "because"),
        ("why\n</think>\n\nbecause", "why", "because"),
        ("<think>one</think> and <think>two</think> then", "one</think> and <think>two", "then"),
        ("<think>never ends", "never ends", ""),
        ("no thought at all", None, "no thought at all"),
        ("a < think > is no block", None, "a < think > is no block"),
    ],
)
def test_reasoning_is_split_off_where_the_family_has_it(said: str, thought: str | None, content: str) -> None:
    body = json.dumps({"choices": [{"message": {"content": said}, "finish_reason": "stop"}]}).encode()
    split = whole_of_body(body, split_reasoning=True)
    assert (split.thought, split.content) == (thought, content)
    whole = whole_of_body(body, split_reasoning=False)
    assert (whole.thought, whole.content) == (None, said)
