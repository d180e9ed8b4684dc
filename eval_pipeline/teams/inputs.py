"""The input builders: what a team is told at the start of a run. Pure; staging belongs elsewhere.

A builder is named in a team's file by its key in :data:`INPUTS`. The source of this module enters the
contract hash of every team, so whatever stands here is fixed together with the teams that were measured with
it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from eval_pipeline.errors import TaskDataError
from eval_pipeline.ids import shown

InputBuilder = Callable[[str, Path | None], str]
"""(question, staged attachment or none) → run message. A benchmark's format block is part of the question."""

_BEFORE = "Attached file: "
_AFTER = " — call read_attached_file with exactly this path."
_LINE = re.compile(f"{re.escape(_BEFORE)}(.+){re.escape(_AFTER)}")


def attachment_line(path: Path) -> str:
    """The one line that names the staged attachment, without a line break.

    Raises:
        TaskDataError: the path is relative, or its name holds a line break and would not fit one line.
    """
    line = f"{_BEFORE}{path}{_AFTER}"
    if not path.is_absolute() or line.splitlines() != [line]:
        raise TaskDataError(
            f"attachment {shown(str(path))} cannot be named in the run message: "
            "the path has to be absolute and without line breaks; rename the file"
        )
    return line


def named_attachment(message: str) -> str | None:
    """The path that :func:`attachment_line` put into ``message``, or ``None``.

    Only the last line counts: ours is put after everything else, so that a question which quotes such a
    line, or makes one up, cannot hide the real one. Whether a file belongs to the task at all is not decided
    by this.
    """
    lines = message.splitlines()
    named = _LINE.fullmatch(lines[-1]) if lines else None
    return named[1] if named else None


def question_only(question: str, attachment: Path | None) -> str:
    """The question and nothing else, whether or not a file belongs to it."""
    del attachment
    return question


def question_with_attachment(question: str, attachment: Path | None) -> str:
    """The question and, if a file belongs to it, one more line that names the file's absolute path."""
    if attachment is None:
        return question
    separator = "" if question.endswith("\n") else "\n"
    return f"{question}{separator}{attachment_line(attachment)}"


INPUTS: Mapping[str, InputBuilder] = {
    "question_only": question_only,
    "question_with_attachment": question_with_attachment,
}
