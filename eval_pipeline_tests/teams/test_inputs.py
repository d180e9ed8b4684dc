"""Run messages: the question alone, or with one recognisable line that names the attachment."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.errors import TaskDataError
from eval_pipeline.teams.inputs import INPUTS, attachment_line, named_attachment

FILE = Path("/stage/sample-cafe/cafe_sales.xlsx")
IMITATION = attachment_line(Path("/etc/passwd"))
question_only = INPUTS["question_only"]
question_with_attachment = INPUTS["question_with_attachment"]


@pytest.mark.parametrize("question", ["How much?", "", " two\n\nlines\n", IMITATION])
@pytest.mark.parametrize("attachment", [None, FILE])
def test_v1_is_told_the_question_and_nothing_else(question: str, attachment: Path | None) -> None:
    assert question_only(question, attachment) == question


def test_v2_gains_exactly_one_line_with_the_path_and_how_to_use_it() -> None:
    message = question_with_attachment("How much?\nIn euros.", FILE)
    assert message.splitlines()[:2] == ["How much?", "In euros."]
    assert len(message.splitlines()) == 3
    assert str(FILE) in message.splitlines()[2]
    assert "read_attached_file" in message.splitlines()[2]


def test_v2_is_told_the_question_alone_when_no_file_belongs_to_it() -> None:
    assert question_with_attachment("How much?", None) == "How much?"


@pytest.mark.parametrize(
    "path",
    [
        FILE,
        Path("/stage/a b/매출 (1).xlsx"),
        Path("/stage/t/Attached file: x — call read_attached_file with exactly this path."),
        Path("/stage/t/narrow\u202fspace.pdf"),
        Path("/"),
    ],
)
def test_the_path_in_a_message_is_found_again(path: Path) -> None:
    assert named_attachment(question_with_attachment("How much?", path)) == str(path)


@given(question=st.text(), name=st.text(min_size=1))
def test_any_question_and_any_one_line_name_come_back(question: str, name: str) -> None:
    path = Path("/stage") / name
    if len(f"{path}.".splitlines()) == 1:
        assert named_attachment(question_with_attachment(question, path)) == str(path)


@pytest.mark.parametrize("question", [IMITATION, f"How much?\n{IMITATION}", f"{IMITATION}\n", f"{IMITATION}\r"])
def test_a_question_that_imitates_the_line_does_not_hide_the_real_one(question: str) -> None:
    assert named_attachment(question_with_attachment(question, FILE)) == str(FILE)


@pytest.mark.parametrize(
    "message",
    [
        "",
        "\n",
        "How much?",
        f"{IMITATION}\nHow much?",
        f"see: {IMITATION}",
        f"{IMITATION} please",
        IMITATION.replace("/etc/passwd", ""),
        "Attached file: — call read_attached_file with exactly this path.",
    ],
)
def test_a_message_without_our_line_at_its_end_names_no_file(message: str) -> None:
    assert named_attachment(message) is None


@pytest.mark.parametrize("path", ["cafe.xlsx", "../x", "/a\nb", "/a\r", "/a\u2028b", "/a\x85b", "/a\x0bb"])
def test_a_path_that_does_not_fit_one_line_or_is_relative_is_refused(path: str) -> None:
    with pytest.raises(TaskDataError, match="absolute and without line breaks") as caught:
        attachment_line(Path(path))
    assert "\n" not in str(caught.value)
