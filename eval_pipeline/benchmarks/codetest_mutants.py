"""The pinned mutants of a codetest task: changes of a few lines to the module under test, read and applied.

A mutant is ``{"id", "operator", "line", "old", "new"}``: at ``line`` (from 1) stand the lines ``old``, in whose place
the mutant has ``new``; with ``"equivalent": true`` it is known to behave like the original and counts for nothing.
Making mutants is the business of ``scripts/mutants.py``, running tests on them that of
:mod:`~eval_pipeline.benchmarks.codetest`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from eval_pipeline.ids import shown
from eval_pipeline.jsontypes import JsonValue

Fate = Literal["killed", "timeout", "survived", "error", "equivalent"]
"""What tests made of a mutant; ``error``: it could not be tried, for reasons of ours."""

MOST_MUTANTS = 200
_OPERATOR = re.compile(r"[a-z][a-z_]{0,29}")
_KEYS = frozenset({"id", "operator", "line", "old", "new", "equivalent"})
_KILLED = frozenset({"killed", "timeout"})


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change to the source; ``operator`` is its kind, such as ``comparison``."""

    id: str
    operator: str
    line: int
    old: str
    new: str
    equivalent: bool = False

    def apply(self, source: str) -> str:
        """The whole source with this change.

        Raises:
            ValueError: the lines that it changes are not there.
        """
        lines, old = source.split("\n"), self.old.split("\n")
        start, stop = self.line - 1, self.line - 1 + len(old)
        if lines[start:stop] != old:
            raise ValueError(f"line {self.line} of the module is not {shown(self.old)}")
        return "\n".join([*lines[:start], *self.new.split("\n"), *lines[stop:]])


def mutation_score(fates: Sequence[Fate]) -> float | None:
    """Killed mutants, those that time out among them, over all that are not known to be equivalent.

    What could not be tried stays in the denominator. ``None`` where there is nothing to kill: the task is broken.
    """
    counted = [fate for fate in fates if fate != "equivalent"]
    return sum(fate in _KILLED for fate in counted) / len(counted) if counted else None


def suite_score(reference: Sequence[bool], fates: Sequence[Fate]) -> float | None:
    """The score of a test suite: nothing unless it passes on the reference every time, else its mutation score.

    ``reference`` says of each run on the unchanged module whether at least one test passed and none failed.
    """
    if not reference or not all(reference):
        return 0.0
    return mutation_score(fates)


def read_mutants(value: JsonValue, source: str) -> list[Mutant]:
    """The mutants of a task's row, each of which changes ``source`` into another program that reads.

    Raises:
        ValueError: it is no such list, has no mutant that counts, or one that does not apply; the message continues
            "field 'mutants' …".
    """
    if not isinstance(value, list) or not 1 <= len(value) <= MOST_MUTANTS:
        raise ValueError(f"must be a list of 1 to {MOST_MUTANTS} mutants, as scripts/mutants.py prints it")
    reference = _tree(source)
    mutants: list[Mutant] = []
    programs = {reference}
    for number, item in enumerate(value, 1):
        mutant = _mutant(item, number)
        if any(mutant.id == other.id for other in mutants):
            raise ValueError(f"has two mutants {shown(mutant.id)}; every id stands once")
        try:
            changed = _tree(mutant.apply(source))
        except ValueError as error:
            raise ValueError(f"has a mutant {shown(mutant.id)} that does not apply: {error}") from None
        if changed in programs:
            raise ValueError(f"has a mutant {shown(mutant.id)} that is the module itself, or another mutant; remove it")
        programs.add(changed)
        mutants.append(mutant)
    if all(mutant.equivalent for mutant in mutants):
        raise ValueError("has only equivalent mutants, which no test can kill; add others")
    return mutants


def as_json(mutants: Sequence[Mutant]) -> list[JsonValue]:
    """``mutants`` as they stand in a task's ``extra``."""
    return [{name: getattr(mutant, name) for name in Mutant.__dataclass_fields__} for mutant in mutants]


def from_json(value: JsonValue) -> list[Mutant]:
    """The mutants that :func:`as_json` made."""
    assert isinstance(value, list)
    return [_mutant(item, number) for number, item in enumerate(value, 1)]


def _mutant(item: JsonValue, number: int) -> Mutant:
    fields = item if isinstance(item, dict) else {}
    unknown = sorted(set(fields) - _KEYS)
    if unknown:
        raise ValueError(f"has in mutant {number} a field {shown(unknown[0])}, which is not known")
    match {"equivalent": False, **fields}:
        case {
            "id": str(name),
            "operator": str(operator),
            "line": int(line),
            "old": str(old),
            "new": str(new),
            "equivalent": bool(equivalent),
        } if not isinstance(line, bool):
            if not _OPERATOR.fullmatch(operator) or not name.isprintable() or not 1 <= len(name) <= 40:
                raise ValueError(f"has a mutant {shown(name)} of operator {shown(operator)}; use short plain words")
            return Mutant(name, operator, line, old, new, equivalent)
    raise ValueError(f"has as mutant {number} {shown(item)}; write id, operator, line, old and new")


def _tree(source: str) -> str:
    try:
        return ast.dump(ast.parse(source))
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError(f"it is no Python ({getattr(error, 'msg', None) or type(error).__name__})") from None
