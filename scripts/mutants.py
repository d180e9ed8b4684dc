"""Makes the mutants that a codetest task pins: ``python scripts/mutants.py module.py`` prints them as JSON.

The list goes into the field ``mutants`` of the task as it is, or thinned out by hand; a mutant that no test can tell
from the module gets ``"equivalent": true``. Mutants are pinned because every version of a mutator makes others.

Operators: ``comparison``, ``boolean``, ``arithmetic``, ``constant``, ``return`` and ``statement`` (deleted). Each
mutant changes one place. Two that come to the same program are one, and those that cannot be imported are left out.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, TypedDict

COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: (r"<", "<="),
    ast.LtE: (r"<=", "<"),
    ast.Gt: (r">", ">="),
    ast.GtE: (r">=", ">"),
    ast.Eq: (r"==", "!="),
    ast.NotEq: (r"!=", "=="),
    ast.In: (r"\bin\b", "not in"),
    ast.NotIn: (r"\bnot\s+in\b", "in"),
    ast.Is: (r"\bis\b", "is not"),
    ast.IsNot: (r"\bis\s+not\b", "is"),
}
ARITHMETIC: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: (r"\+", "-"),
    ast.Sub: (r"-", "+"),
    ast.Mult: (r"\*", "//"),
    ast.Div: (r"/", "*"),
    ast.FloorDiv: (r"//", "*"),
    ast.Mod: (r"%", "*"),
    ast.Pow: (r"\*\*", "*"),
    ast.BitAnd: (r"&", "|"),
    ast.BitOr: (r"\|", "&"),
}
DELETED = (ast.AugAssign, ast.Raise, ast.Break, ast.Continue)
_IMPORT_S = 5.0


class Mutant(TypedDict):
    """A mutant as a task holds it; see eval_pipeline/benchmarks/codetest_mutants.py."""

    id: str
    operator: str
    line: int
    old: str
    new: str


class Place(NamedTuple):
    """A stretch of the source: lines from 1, columns in bytes, as the syntax tree counts them."""

    line: int
    column: int
    last_line: int
    last_column: int


class Edit(NamedTuple):
    """What is put in the place of a stretch."""

    operator: str
    place: Place
    text: str


def mutants(source: str) -> list[Mutant]:
    """The mutants of the module ``source``, in the order of its lines.

    Raises:
        SyntaxError: it is no Python.
    """
    tree = ast.parse(source)
    seen = {ast.dump(tree)}
    found: list[Mutant] = []
    for edit in sorted(_edits(tree, source), key=lambda edit: (edit.place, edit.operator)):
        old, new = _lines(source, edit)
        changed = _replaced(source, edit.place, new)
        try:
            shape = ast.dump(ast.parse(changed))
        except SyntaxError:
            continue
        if shape not in seen and _can_be_imported(changed):
            seen.add(shape)
            mutant_id = f"m{len(found) + 1:02}"
            found.append(Mutant(id=mutant_id, operator=edit.operator, line=edit.place.line, old=old, new=new))
    return found


def _edits(tree: ast.Module, source: str) -> Iterator[Edit]:
    for node in _mutable(tree):
        match node:
            case ast.Compare(left, operations, comparators):
                operands = [left, *comparators]
                for index, operation in enumerate(operations):
                    pattern, new = COMPARISONS[type(operation)]
                    yield from _between("comparison", operands[index], operands[index + 1], pattern, new, source)
            case ast.BoolOp(operation, values):
                pattern, new = (r"\band\b", "or") if isinstance(operation, ast.And) else (r"\bor\b", "and")
                for left, right in pairwise(values):
                    yield from _between("boolean", left, right, pattern, new, source)
            case ast.UnaryOp(ast.Not(), operand):
                before = Place(node.lineno, node.col_offset, operand.lineno, operand.col_offset)
                yield Edit("boolean", before, re.sub(r"not\s*", "", _text(source, before), count=1))
            case ast.BinOp(left, operation, right) if type(operation) in ARITHMETIC:
                yield from _between("arithmetic", left, right, *ARITHMETIC[type(operation)], source)
            case ast.AugAssign(target, operation, value) if type(operation) in ARITHMETIC:
                yield from _between("arithmetic", target, value, *ARITHMETIC[type(operation)], source)
            case ast.Constant(value):
                if (new_value := _other(value)) is not None:
                    yield Edit("constant", _place(node), repr(new_value))
            case ast.Return(ast.expr() as value) if not (isinstance(value, ast.Constant) and value.value is None):
                yield Edit("return", _place(value), "None")
        if isinstance(node, DELETED) or _is_call(node) or _is_store(node):
            yield Edit("statement", _place(node), "pass")


def _mutable(node: ast.AST) -> Iterator[ast.AST]:
    """Every node below ``node`` that decides what the module does: no docstring, annotation or part of an f-string."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        children = value if isinstance(value, list) else [value]
        for index, child in enumerate(children):
            if not isinstance(child, ast.AST) or isinstance(child, ast.JoinedStr):
                continue
            if name == "body" and index == 0 and isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
                continue
            yield child
            yield from _mutable(child)


def _is_call(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)


def _is_store(node: ast.AST) -> bool:
    return isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute | ast.Subscript)


def _other(value: object) -> object:
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return "" if value else "XX"
    return None


def _between(operator: str, left: ast.expr, right: ast.expr, pattern: str, new: str, source: str) -> Iterator[Edit]:
    """The operator between two operands, exchanged; parentheses around them stay where they are."""
    assert left.end_lineno is not None
    assert left.end_col_offset is not None
    place = Place(left.end_lineno, left.end_col_offset, right.lineno, right.col_offset)
    old = _text(source, place)
    text = re.sub(pattern, new, old, count=1)
    if text != old:
        yield Edit(operator, place, text)


def _place(node: ast.AST) -> Place:
    return Place(*(getattr(node, name) for name in ("lineno", "col_offset", "end_lineno", "end_col_offset")))


def _text(source: str, place: Place) -> str:
    lines = [line.encode() for line in source.split("\n")[place.line - 1 : place.last_line]]
    lines[-1] = lines[-1][: place.last_column]
    lines[0] = lines[0][place.column :]
    return b"\n".join(lines).decode()


def _lines(source: str, edit: Edit) -> tuple[str, str]:
    """The whole lines that an edit touches, before and after."""
    place = edit.place
    lines = source.split("\n")[place.line - 1 : place.last_line]
    before = lines[0].encode()[: place.column].decode()
    after = lines[-1].encode()[place.last_column :].decode()
    return "\n".join(lines), f"{before}{edit.text}{after}"


def _replaced(source: str, place: Place, new: str) -> str:
    lines = source.split("\n")
    return "\n".join([*lines[: place.line - 1], new, *lines[place.last_line :]])


def _can_be_imported(source: str) -> bool:
    try:
        ended = subprocess.run(
            [sys.executable, "-I", "-c", "import sys; exec(compile(sys.stdin.read(), '<mutant>', 'exec'))"],
            input=source.encode(),
            capture_output=True,
            timeout=_IMPORT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False
    return ended.returncode == 0


if __name__ == "__main__":
    print(json.dumps(mutants(Path(sys.argv[1]).read_text(encoding="utf-8")), ensure_ascii=False))
