"""A run as the rules of contamination see it: its task, what is foreign to it, and its tool calls with whole results.

What a call means is for :mod:`eval_pipeline.contamination.rules` to say.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from uuid import UUID

from sqlalchemy import Connection, RowMapping, func, select

from eval_pipeline.db import tables
from eval_pipeline.jsontypes import JsonValue

LONGEST = 200_000
"""Characters of a result or of arguments that are looked at; the tools of this product return far less."""
_ONE_WORD = re.compile(r"[^\s\"'`/,;()<>\[\]{}=|]+")
_OUTCOMES = ("tool_result", "tool_error")


def plain(text: str) -> str:
    """``text`` in one spelling: NFC, lower case, white space as single spaces, ``\\`` as ``/``."""
    composed = unicodedata.normalize("NFC", text[:LONGEST])
    return " ".join(composed.casefold().replace("\\", "/").split())


@dataclass(frozen=True)
class Call:
    """One tool call and how it ended. ``returned`` is false for an error and for a call without an outcome."""

    seq: int
    outcome_seq: int | None
    tool: str
    arguments: str
    result: str
    returned: bool

    @cached_property
    def asked(self) -> str:
        """What was asked for, in one spelling."""
        return plain(self.arguments)

    @cached_property
    def came(self) -> str:
        """What came back, in one spelling; of an error, its text."""
        return plain(self.result)

    @property
    def seqs(self) -> tuple[int, ...]:
        return (self.seq,) if self.outcome_seq is None else (self.seq, self.outcome_seq)


@dataclass(frozen=True)
class World:
    """What surrounds the runs of a batch: where keys and attachments lie, and which tasks there are with their files.

    Folders are absolute paths in one spelling; so are the ids and names in ``files``, ``None`` for a task without one.
    """

    benchmark: str
    stage_dir: str
    key_folders: tuple[str, ...]
    files: Mapping[str, str | None]

    @cached_property
    def owners(self) -> Mapping[str, frozenset[str]]:
        """The tasks that have a file of this name."""
        owners: dict[str, set[str]] = {}
        for task_id, name in self.files.items():
            if name:
                owners.setdefault(name, set()).add(task_id)
        return {name: frozenset(ids) for name, ids in owners.items()}

    @cached_property
    def spaced_names(self) -> frozenset[str]:
        """The file names that are more than one word to whoever splits a text at white space and brackets."""
        return frozenset(name for name in self.owners if not _ONE_WORD.fullmatch(name))


@dataclass(frozen=True)
class Scene:
    """One try: the task that it may know, and its calls in order. ``task_id`` and ``file_name`` are in one spelling."""

    run_id: UUID
    world: World
    task_id: str
    file_name: str | None
    question: str
    gold: str
    calls: tuple[Call, ...]


def world(connection: Connection, benchmark: str, stage_dir: str, key_folders: Iterable[str]) -> World:
    """What surrounds the runs of ``benchmark``: every task of it that was ever stored."""
    tasks = tables.tasks
    query = select(tasks.c.task_id, tasks.c.file_name).where(tasks.c.benchmark == benchmark).distinct()
    files: dict[str, str | None] = {}
    for task_id, file_name in connection.execute(query):
        key = plain(task_id)
        files[key] = plain(file_name) if file_name else files.get(key)
    return World(benchmark, plain(stage_dir).rstrip("/"), tuple(plain(one).rstrip("/") for one in key_folders), files)


def scenes(connection: Connection, surroundings: World, run_ids: Sequence[UUID]) -> Iterator[Scene]:
    """The scenes of these tries."""
    runs, tasks, events, texts = tables.runs, tables.tasks, tables.events, tables.texts
    by_run: dict[UUID, list[RowMapping]] = {run_id: [] for run_id in run_ids}
    query = (
        select(
            events.c.run_id,
            events.c.seq,
            events.c.message_type,
            events.c.tool_name,
            events.c.tool_call_id,
            events.c.tool_args,
            func.left(func.coalesce(texts.c.body, events.c.content), LONGEST).label("text"),
        )
        .outerjoin(texts, texts.c.sha256 == events.c.content_sha256)
        .where(events.c.run_id.in_(run_ids), events.c.message_type.in_(("tool_call", *_OUTCOMES)))
        .order_by(events.c.run_id, events.c.seq)
    )
    for row in connection.execute(query).mappings():
        by_run[row["run_id"]].append(row)
    heads = (
        select(runs.c.run_id, tasks.c.task_id, tasks.c.file_name, tasks.c.question, tasks.c.gold)
        .join(tasks, (tasks.c.task_id == runs.c.task_id) & (tasks.c.content_hash == runs.c.task_hash))
        .where(runs.c.run_id.in_(run_ids))
    )
    for head in connection.execute(heads):
        yield Scene(
            run_id=head.run_id,
            world=surroundings,
            task_id=plain(head.task_id),
            file_name=plain(head.file_name) if head.file_name else None,
            question=head.question,
            gold=head.gold,
            calls=tuple(_calls(by_run[head.run_id])),
        )


def _calls(rows: Sequence[RowMapping]) -> Iterator[Call]:
    outcomes: dict[str, RowMapping] = {}
    for row in rows:
        if row["message_type"] in _OUTCOMES:
            outcomes.setdefault(row["tool_call_id"], row)
    for row in rows:
        if row["message_type"] != "tool_call":
            continue
        outcome = outcomes.get(row["tool_call_id"])
        yield Call(
            seq=row["seq"],
            outcome_seq=outcome["seq"] if outcome else None,
            tool=row["tool_name"] or "",
            arguments=_argument_text(row),
            result=(outcome["text"] or "") if outcome else "",
            returned=outcome is not None and outcome["message_type"] == "tool_result",
        )


def _argument_text(row: RowMapping) -> str:
    """Every text in a call's arguments, one under the other: inside JSON's own text quotes and lines are escaped."""
    value: JsonValue = row["tool_args"]
    if row["text"] is not None:
        # what was cut is kept as the JSON text of the whole, of which more may be missing than a parser takes
        try:
            value = json.loads(row["text"])
        except ValueError:
            return str(row["text"])
    return "\n".join(_texts(value))


def _texts(value: JsonValue) -> Iterator[str]:
    left: list[JsonValue] = [value]
    while left:
        one = left.pop()
        match one:
            case str():
                yield one
            case list():
                left.extend(reversed(one))
            case dict():
                left.extend(reversed(list(one.values())))
            case None:
                pass
            case _:
                yield str(one)
