"""``ask``: the everyday questions about runs and their events, listed or answered."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, select

from eval_pipeline import console
from eval_pipeline.commands.context import ready
from eval_pipeline.db import tables
from eval_pipeline.db.questions import About, Answer, answer, question, questions
from eval_pipeline.errors import IdError
from eval_pipeline.ids import BatchTeam, check_id, shown
from eval_pipeline.tracing.text import clean


@dataclass(frozen=True, slots=True)
class AskRequest:
    """What ``ask`` was asked; ``batch`` is a batch id or ``batch@team``."""

    name: str
    batch: str | None
    suite: str | None
    tool: str | None
    rows: int


def list_questions(*, as_json: bool) -> None:
    """Print every question with its name."""
    known = questions()
    if as_json:
        console.print_json([{"name": one.name, "asks": one.asks, "notes": one.notes} for one in known])
        return
    console.table("Questions", ("name", "asks"), [(one.name, one.asks) for one in known], left=2)


def ask_question(request: AskRequest, *, as_json: bool) -> None:
    """Answer one question.

    Raises:
        IdError: there is no such question, batch or suite.
    """
    asked = question(request.name)
    about = _about(request)
    _, database = ready()
    with database.connect() as connection:
        _refuse_unknown(connection, request, about)
        found = answer(connection, asked, about)
    if as_json:
        rows = [dict(row._mapping) for row in found.rows]
        console.print_json({"question": asked.name, "asks": asked.asks, "rows": rows})
        return
    if not found.rows:
        console.say(f"{asked.asks} None that the database knows of.")
        return
    header = [name.replace("_", " ") for name in found.columns]
    console.table(asked.asks, header, [_cells(found.columns, row) for row in found.rows], left=_texts(found))


def _about(request: AskRequest) -> About:
    batch, team = request.batch, None
    if batch is not None and "@" in batch:
        condition = BatchTeam.parse(batch, "--batch")
        batch, team = condition.batch, condition.team
    elif batch is not None:
        check_id(batch, "batch id", "--batch")
    # the names of tools are stored like that
    tool = clean(request.tool)[0] if request.tool is not None else None
    suite = clean(request.suite)[0] if request.suite is not None else None
    return About(batch, team, suite, tool, request.rows)


def _refuse_unknown(connection: Connection, request: AskRequest, about: About) -> None:
    """An answer of no rows must not come from a name that was mistyped."""
    batches = tables.batches
    for option, value, columns in (
        ("--batch", request.batch, {"batch_id": about.batch_id, "team_id": about.team_id}),
        ("--suite", request.suite, {"suite": about.suite}),
    ):
        narrowed = [batches.c[name] == wanted for name, wanted in columns.items() if wanted is not None]
        if narrowed and connection.execute(select(batches.c.batch_id).where(*narrowed).limit(1)).first() is None:
            raise IdError(f"{option}: there is no batch of {shown(value)}; eval-pipeline status lists those there are")


def _texts(found: Answer) -> int:
    """How many columns come before the first figure."""
    figures = [any(isinstance(row[at], int | float) for row in found.rows) for at in range(len(found.columns))]
    return figures.index(True) if True in figures else len(figures)


def _cells(columns: Sequence[str], row: Sequence[object]) -> tuple[str, ...]:
    return tuple(_cell(name, value) for name, value in zip(columns, row, strict=True))


def _cell(name: str, value: object) -> str:
    if value is None:
        return "–"
    if name.endswith("_share"):
        return console.percent(float(str(value)))
    if isinstance(value, int):
        return console.count(value)
    if isinstance(value, float) and math.isfinite(value):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return str(value)
