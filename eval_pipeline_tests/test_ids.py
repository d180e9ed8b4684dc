"""Ids and keys: what is taken, what is refused, and that a key reads back as what it was made of."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.errors import IdError
from eval_pipeline.ids import ID_PATTERN, BatchTeam, TaskAttempt, check_id, shown

IDS = st.from_regex(ID_PATTERN, fullmatch=True).filter(lambda text: "..." not in text)


@pytest.mark.parametrize("value", ["a", "v5-multitool", "c61d22de-5f6c-4958-a7f6-5e9707bd3466", "A.b_~:9", "x" * 120])
def test_an_id_of_allowed_characters_is_taken_as_it_is(value: str) -> None:
    assert check_id(value, "task id", "here") is value


@pytest.mark.parametrize(
    "value",
    [
        "", " ", "a b", "-a", ".a", "_a", "~", "a|b", "a...b", "a@b", "a#b", "a/b", "../a", "a\\b", "a\n", "\na", "a\0",
        "é", "가", "x" * 121, "\ud800", None, 7, True, ["a"], b"a",
    ],
)  # fmt: skip
def test_any_other_value_is_refused_in_one_line(value: object) -> None:
    with pytest.raises(IdError) as caught:
        check_id(value, "task id", "metadata.jsonl line 3")
    message = str(caught.value)
    assert message.startswith("metadata.jsonl line 3: task id ")
    assert message.isprintable()
    assert len(message) < 400


@given(IDS, IDS)
def test_a_batch_team_key_reads_back(batch: str, team: str) -> None:
    assert BatchTeam.parse(BatchTeam(batch, team).key) == BatchTeam(batch, team)


@given(IDS, st.integers(1, 9999))
def test_a_task_attempt_key_reads_back(task_id: str, attempt: int) -> None:
    assert TaskAttempt.parse(TaskAttempt(task_id, attempt).key) == TaskAttempt(task_id, attempt)


@pytest.mark.parametrize("key", ["", "a", "@", "a@", "@b", "a@b@c", "a@b c", "a|b@c", "a@b\n", "a#1"])
def test_a_wrong_batch_team_key_is_refused(key: str) -> None:
    with pytest.raises(IdError, match="batch_team: ") as caught:
        BatchTeam.parse(key)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    "key", ["", "a", "#1", "a#", "a#0", "a#01", "a#-1", "a#x", "a#10000", "a#1#2", "a#1\n", "a#１", "a b#1", "a@b"]
)
def test_a_wrong_task_attempt_key_is_refused(key: str) -> None:
    with pytest.raises(IdError, match="task_attempt: ") as caught:
        TaskAttempt.parse(key)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("value", ["a\nb", "\x1b[31m", "\ud800", "\0", "x" * 10_000, ["a\nb"], {"k": "\x07"}, 10**50])
def test_any_value_is_shown_in_one_short_printable_line(value: object) -> None:
    text = shown(value)
    assert text.isprintable()
    assert 0 < len(text) <= 82


def test_readable_text_is_shown_as_it_is() -> None:
    assert shown("서울") == "'서울'"
