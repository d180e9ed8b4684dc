"""Ids and partition keys: what a batch, team or task may be called, and how two ids make a key.

Dagster validates none of the dynamic keys it is given and silently drops those with ``|``, so every id is checked
here, when it is loaded or typed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from eval_pipeline.errors import IdError

ID_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~:-]{0,119}")
_ATTEMPT_PATTERN = re.compile(r"[1-9][0-9]{0,3}")
_SHOWN = 80


def shown(value: object) -> str:
    """``value`` as it may stand in a one-line message: quoted, escaped, at most 80 characters."""
    text = ascii(value) if not isinstance(value, str) or not value.isprintable() else repr(value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…'"


def check_id(value: object, what: str, where: str) -> str:
    """Return ``value`` if it can be a batch, team or task id.

    ``what`` ("task id") and ``where`` ("metadata.jsonl line 3") stand in the message.

    Raises:
        IdError: not a text, or it breaks the pattern; ``...`` inside would break Dagster's range syntax.
    """
    if not isinstance(value, str) or not ID_PATTERN.fullmatch(value) or "..." in value:
        raise IdError(
            f"{where}: {what} {shown(value)} cannot be used; an id is 1 to 120 of A-Z a-z 0-9 . _ ~ : - , "
            "starts with a letter or digit and has no '...'"
        )
    return value


@dataclass(frozen=True, slots=True, order=True)
class BatchTeam:
    """One condition: a batch under one team. Its key is ``batch@team``."""

    batch: str
    team: str

    @property
    def key(self) -> str:
        return f"{self.batch}@{self.team}"

    @classmethod
    def parse(cls, key: str, where: str = "batch_team") -> BatchTeam:
        """Read a key such as ``nightly-2026-11-30@v5-multitool``.

        Raises:
            IdError: not exactly one ``@``, or one of the two ids is wrong.
        """
        batch, at, team = key.partition("@")
        if not at or "@" in team:
            raise IdError(f"{where}: {shown(key)} is not of the form batch@team, such as first@v5-multitool")
        return cls(check_id(batch, "batch id", where), check_id(team, "team id", where))


@dataclass(frozen=True, slots=True, order=True)
class TaskAttempt:
    """One repetition of a task. Its key is ``task#attempt``, with attempts counted from 1."""

    task_id: str
    attempt: int

    @property
    def key(self) -> str:
        return f"{self.task_id}#{self.attempt}"

    @classmethod
    def parse(cls, key: str, where: str = "task_attempt") -> TaskAttempt:
        """Read a key such as ``sample-cafe#1``.

        Raises:
            IdError: no ``#``, a wrong task id, or an attempt that is not 1 to 9999.
        """
        task_id, hash_sign, attempt = key.partition("#")
        if not hash_sign or not _ATTEMPT_PATTERN.fullmatch(attempt):
            raise IdError(f"{where}: {shown(key)} is not of the form task#attempt, such as sample-cafe#1")
        return cls(check_id(task_id, "task id", where), int(attempt))
