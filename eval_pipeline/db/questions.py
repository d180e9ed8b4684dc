"""The everyday questions in ``sql/questions/``: finding one by its name and having the database answer it.

The question itself is the first line of its file. Printing an answer belongs to the command line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection, Row, Text, bindparam, text

from eval_pipeline.db import sqlfiles
from eval_pipeline.db.lookups import expect_lookups
from eval_pipeline.errors import DatabaseError, IdError
from eval_pipeline.ids import shown

_COMMENT = "-- "
MOST_ROWS = 10_000


@dataclass(frozen=True, slots=True)
class Question:
    """One file: ``asks`` is the question as a sentence, ``notes`` what else its comment says, ``sql`` the whole file.

    ``takes`` are the names of the parameters that narrow it down.
    """

    name: str
    asks: str
    notes: str
    sql: str
    takes: frozenset[str]


@dataclass(frozen=True, slots=True)
class About:
    """What a question is about; ``None`` is no restriction. ``rows``: so many at most, the most telling first."""

    batch_id: str | None = None
    team_id: str | None = None
    suite: str | None = None
    tool: str | None = None
    rows: int = 20

    def bound(self) -> Mapping[str, str | int | None]:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Answer:
    """The rows that answer a question; there may be none."""

    question: Question
    columns: Sequence[str]
    rows: Sequence[Row[tuple[object, ...]]] = field(repr=False)


def questions() -> tuple[Question, ...]:
    """Every question, by name.

    Raises:
        DatabaseError: a file cannot be read, or does not begin with its question.
    """
    return tuple(_question(file) for file in sqlfiles.questions())


def question(name: str) -> Question:
    """The question of that name; hyphens are as good as underscores.

    Raises:
        IdError: there is none.
        DatabaseError: as :func:`questions`.
    """
    known = {one.name: one for one in questions()}
    found = known.get(name.replace("-", "_"))
    if found is None:
        raise IdError(f"there is no question {shown(name)}; there are {', '.join(known)}")
    return found


def answer(connection: Connection, asked: Question, about: About) -> Answer:
    """What the database says now; the rest of the connection's transaction is planned for looking rows up.

    Raises:
        IdError: ``about.rows`` is not 1 to 10 000, or a restriction is not one of this question.
    """
    if not 1 <= about.rows <= MOST_ROWS:
        raise IdError(f"rows: {about.rows} cannot be shown; give 1 to {MOST_ROWS}")
    if about.tool is not None and "tool" not in asked.takes:
        raise IdError(f"tool: {asked.name} is about all tools; leave it out, or ask tool_calls")
    # a parameter that is only ever compared with null has no type of its own
    narrowed = [bindparam(name, type_=Text) for name in asked.takes - {"rows"}]
    statement = text(asked.sql).bindparams(*narrowed)
    expect_lookups(connection)
    result = connection.execute(statement, {name: about.bound()[name] for name in asked.takes})
    return Answer(asked, tuple(result.keys()), result.all())


def _question(file: sqlfiles.SqlFile) -> Question:
    lines = file.text.splitlines()
    comment = []
    for line in lines:
        if not line.startswith(_COMMENT):
            break
        comment.append(line.removeprefix(_COMMENT).strip())
    if not comment or not comment[0].endswith("?"):
        raise DatabaseError(f"{file.path}: does not begin with its question; begin it with a comment that asks")
    takes = frozenset(text(file.text)._bindparams)
    return Question(file.path.stem, comment[0], " ".join(comment[1:]), file.text, takes)
