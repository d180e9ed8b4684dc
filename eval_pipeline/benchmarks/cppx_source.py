"""A C++ source tree as an index of its names: which ones its code has, on which lines, and which are nested in which.

Read with tree-sitter, so without a compiler: templates, macros and broken code are no obstacle. Names that stand only
in a comment are kept apart, since they are no code.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import tree_sitter_cpp
from tree_sitter import Language, Node, Parser

from eval_pipeline.benchmarks.base import Material

SUFFIXES = frozenset({".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".hxx", ".inl", ".ipp", ".tpp"})
"""Files whose names are indexed; of other files only the lines are counted."""

_NAMES = frozenset(
    {
        "identifier",
        "field_identifier",
        "type_identifier",
        "namespace_identifier",
        "statement_identifier",
        "operator_name",
    }
)
_SCOPES = frozenset(
    {"class_specifier", "struct_specifier", "union_specifier", "enum_specifier", "namespace_definition"}
)
_DECLARES = frozenset(
    {"field_declaration", "function_definition", "declaration", "enumerator", "alias_declaration", "type_definition"}
) | _SCOPES  # fmt: skip
_COMPOUND_NAMES = frozenset({"qualified_identifier", "destructor_name", "template_function"})
_WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file: its number of lines, and the lines that each name of its code stands on, in order."""

    lines: int
    names: Mapping[str, Sequence[int]]


@dataclass(frozen=True, slots=True)
class SourceIndex:
    """A source tree. ``nested`` are pairs of a scope and a name in it, by declaration or as ``scope::name``."""

    files: Mapping[str, SourceFile]
    code: frozenset[str]
    comments: frozenset[str]
    nested: frozenset[tuple[str, str]]

    def named(self, path: str) -> list[SourceFile]:
        """The files that ``path`` can mean: exactly, else those whose path ends so."""
        path = path.removeprefix("./")
        if path in self.files:
            return [self.files[path]]
        return [file for name, file in self.files.items() if name.endswith(f"/{path}")]


def index_of(contents: Iterable[tuple[str, bytes]]) -> SourceIndex:
    """The index of files, given as pairs of path and content."""
    files: dict[str, SourceFile] = {}
    reading = _Reading()
    for name, content in contents:
        reading.names = defaultdict(list)
        if Path(name).suffix.lower() in SUFFIXES:
            reading.read(content)
        files[name] = SourceFile(_lines(content), dict(reading.names))
    code = frozenset().union(*(file.names for file in files.values()))
    return SourceIndex(files, code, frozenset(reading.comments), frozenset(reading.nested))


def index_of_materials(materials: Sequence[Material]) -> SourceIndex:
    """The index of a task's source tree; kept for the next answer to the same task.

    Raises:
        ValueError: a file cannot be read, or is no longer what was loaded.
    """
    return _index_of_materials(tuple((material.name, material.path, material.sha256) for material in materials))


@lru_cache(maxsize=32)
def _index_of_materials(materials: tuple[tuple[str, Path, str], ...]) -> SourceIndex:
    contents = []
    for name, path, sha256 in materials:
        try:
            content = path.read_bytes()
        except OSError as error:
            raise ValueError(f"source file {name} cannot be read ({error.strerror}); load the suite again") from error
        if hashlib.sha256(content).hexdigest() != sha256:
            raise ValueError(f"source file {name} has changed since it was loaded; load the suite again")
        contents.append((name, content))
    return index_of(contents)


def _lines(content: bytes) -> int:
    return content.count(b"\n") + (not content.endswith(b"\n") and bool(content))


class _Reading:
    """What is gathered from one file after the other; ``names`` are those of the present one."""

    def __init__(self) -> None:
        self._parser = Parser(Language(tree_sitter_cpp.language()))
        self.names: dict[str, list[int]] = defaultdict(list)
        self.comments: set[str] = set()
        self.nested: set[tuple[str, str]] = set()

    def read(self, content: bytes) -> None:
        pending: list[tuple[Node, str]] = [(self._parser.parse(content).root_node, "")]
        while pending:
            node, scope = pending.pop()
            if node.type in _NAMES:
                self._add(_text(node), node.start_point[0] + 1)
            elif node.type == "comment":
                self.comments |= set(_WORD.findall(_text(node)))
                continue
            elif node.type == "preproc_arg":
                # the body of a macro is not parsed
                for line, text in enumerate(_text(node).split("\n"), node.start_point[0] + 1):
                    for word in _WORD.findall(text):
                        self._add(word, line)
            elif node.type == "qualified_identifier":
                parts = list(_parts(node))
                self.nested.update(pairwise(parts))
            inside = self._declared(node, scope)
            # in reverse, so that lines come in order
            pending.extend((child, inside) for child in reversed(node.children))

    def _declared(self, node: Node, scope: str) -> str:
        """Note what ``node`` declares in ``scope``; the scope of what is inside it."""
        if node.type not in _DECLARES:
            # what a function declares belongs to no scope that could be named
            return "" if node.type == "compound_statement" else scope
        declared = [list(_parts(name)) for name in _declared_names(node)]
        if scope:
            self.nested.update((scope, parts[0]) for parts in declared if parts)
        if node.type in _SCOPES:
            for parts in declared:
                self.nested.update(pairwise(parts))
            return next((parts[-1] for parts in declared if parts), scope)
        return scope

    def _add(self, name: str, line: int) -> None:
        self.names[name].append(line)


def _declared_names(node: Node) -> Iterator[Node]:
    """The nodes with the names that a declaration declares."""
    name = node.child_by_field_name("name")
    if name is not None:
        yield name
        return
    for declarator in node.children_by_field_name("declarator"):
        found = _innermost(declarator)
        if found is not None:
            yield found


def _innermost(declarator: Node) -> Node | None:
    """The name inside of a declarator such as ``(*name)[3]``."""
    node: Node | None = declarator
    while node is not None and node.type not in _NAMES | _COMPOUND_NAMES:
        below = node.child_by_field_name("declarator")
        # these have no field for what they wrap
        wraps = below is None and node.type in ("reference_declarator", "parenthesized_declarator")
        node = next(iter(node.named_children), None) if wraps else below
    return node


def _parts(node: Node) -> Iterator[str]:
    """The parts of a name, template arguments left out: ``a``, ``B`` and ``c`` of ``a::B<int>::c``."""
    if node.type in _NAMES:
        yield _text(node)
    elif node.type == "destructor_name":
        yield "".join(_text(node).split())
    elif node.type == "nested_namespace_specifier":
        for child in node.named_children:
            yield from _parts(child)
    elif node.type == "qualified_identifier":
        for field in ("scope", "name"):
            part = node.child_by_field_name(field)
            if part is not None:
                yield from _parts(part)
    elif (name := node.child_by_field_name("name")) is not None:
        yield from _parts(name)


def _text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")
