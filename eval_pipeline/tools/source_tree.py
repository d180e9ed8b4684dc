"""``list_source``, ``read_source`` and ``search_source``: a task's source tree, to be read and never changed.

The tree is the folder with a task's materials. A regular expression is searched for in a process of its own
(:mod:`~eval_pipeline.tools.source_grep`), since one from a model may take for ever.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from eval_pipeline.tools.errors import ToolError, ToolTimeoutError

MOST_FILES = 500
MOST_LINES = 400
MOST_CHARACTERS = 20_000
MOST_HITS = 100
SEARCH_S = 5.0
"""Seconds that a search may take, its process's start included."""

_LONGEST_LINE = 300
_LONGEST_PATTERN = 500
_MOST_BYTES = 8 * 2**20
"""Of one file; the rest of a longer one is not there for the tools."""


@dataclass(frozen=True, slots=True)
class Tree:
    """The text files of a staged folder by their paths below it, each as its lines."""

    lines: dict[str, tuple[str, ...]]

    def named(self, path: str) -> str:
        """The path of the file that ``path`` means: exact, or its end where only one file has it.

        Raises:
            FileNotFoundError: there is none.
            ToolError: several files end so.
        """
        name = unicodedata.normalize("NFC", path.strip()).removeprefix("./")
        if name in self.lines:
            return name
        ending = [known for known in self.lines if known.endswith(f"/{name}")] if name else []
        if len(ending) > 1:
            raise ToolError(f"several files are called {name[:100]}: {', '.join(ending[:5])}")
        if not ending:
            raise FileNotFoundError(f"there is no file {path[:100]!r} in the source tree; list_source shows the files")
        return ending[0]


def listing(folder: Path | None) -> str:
    """Every file with its number of lines, in the order of the paths.

    Raises:
        ToolError: the task has no source tree.
    """
    tree = _opened(folder)
    shown = [f"{path} ({len(lines)} lines)" for path, lines in list(tree.lines.items())[:MOST_FILES]]
    more = [f"and {len(tree.lines) - MOST_FILES} more files"] if len(tree.lines) > MOST_FILES else []
    return "\n".join([*shown, *more])


def read(path: str, first_line: int, last_line: int | None, folder: Path | None) -> str:
    """The lines ``first_line`` to ``last_line`` of a file, each behind its number; at most :data:`MOST_LINES`.

    Raises:
        FileNotFoundError: no such file.
        ToolError: no source tree, an ambiguous path, or lines that the file does not have.
    """
    tree = _opened(folder)
    name = tree.named(path)
    lines = tree.lines[name]
    last = min(len(lines), last_line if last_line is not None else len(lines))
    if not 1 <= first_line <= last:
        asked = f"{first_line} to {last_line if last_line is not None else 'the end'}"
        raise ToolError(f"{name} has {len(lines)} lines; there are no lines {asked}")
    shown: list[str] = []
    size = 0
    for number in range(first_line, min(last, first_line + MOST_LINES - 1) + 1):
        line = f"{number:>5}| {_short(lines[number - 1])}"
        size += len(line) + 1
        if size > MOST_CHARACTERS:
            break
        shown.append(line)
    end = first_line + len(shown) - 1
    more = [f"(cut; {name} goes on at line {end + 1})"] if end < last else []
    return "\n".join([f"{name}, lines {first_line}-{end} of {len(lines)}", *shown, *more])


def search(pattern: str, regex: bool, folder: Path | None) -> str:
    """Every line with ``pattern``, as ``path:line: text``; at most :data:`MOST_HITS`.

    A literal pattern is looked for as it stands, a regular expression is one of Python's.

    Raises:
        ToolError: no source tree, an empty or too long pattern, or one that is no regular expression.
        ToolTimeoutError: the expression takes too long.
    """
    tree = _opened(folder)
    if not pattern or "\n" in pattern or len(pattern) > _LONGEST_PATTERN:
        raise ToolError(f"a pattern is 1 to {_LONGEST_PATTERN} characters in one line")
    if regex:
        hits = _searched_apart(pattern, tree)
    else:
        found = (
            (path, number)
            for path, lines in tree.lines.items()
            for number, line in enumerate(lines, 1)
            if pattern in line
        )
        hits = [hit for hit, _ in zip(found, range(MOST_HITS + 1), strict=False)]
    if not hits:
        return f"no line has {pattern!r}"
    shown = [f"{path}:{number}: {_short(tree.lines[path][number - 1].strip())}" for path, number in hits[:MOST_HITS]]
    more = [f"(cut at {MOST_HITS} lines; search for something rarer)"] if len(hits) > MOST_HITS else []
    return "\n".join([*shown, *more])


def _searched_apart(pattern: str, tree: Tree) -> list[tuple[str, int]]:
    """The hits of a regular expression, found by a process that is killed after :data:`SEARCH_S` seconds."""
    script = str(files("eval_pipeline").joinpath("tools/source_grep.py"))
    question = json.dumps({"pattern": pattern, "most": MOST_HITS + 1, "lines": tree.lines})
    environment = {"PATH": os.defpath, "PYTHONUTF8": "1"}
    with subprocess.Popen(
        [sys.executable, "-I", "-S", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(question.encode(), timeout=SEARCH_S)
        except subprocess.TimeoutExpired:
            raise ToolTimeoutError(
                f"the regular expression took longer than {SEARCH_S:g} s; write a simpler one, or a literal text"
            ) from None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    try:
        answer = json.loads(output)
    except ValueError:
        raise ToolError(
            "the regular expression needs more memory than a search may have; write a simpler one"
        ) from None
    if "error" in answer:
        raise ToolError(f"{pattern!r} is no regular expression of Python: {answer['error']}")
    return [(path, number) for path, number in answer["hits"]]


def _opened(folder: Path | None) -> Tree:
    if folder is None:
        raise ToolError("this task has no source tree")
    return _tree(folder)


@lru_cache(maxsize=8)
def _tree(folder: Path) -> Tree:
    """The tree of a staged folder, whose name changes with its content."""
    found: dict[str, tuple[str, ...]] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                text = file.read(_MOST_BYTES).decode("utf-8", "replace")
            name = unicodedata.normalize("NFC", path.relative_to(folder).as_posix())
            found[name] = tuple(text.replace("\0", "\ufffd").removesuffix("\n").split("\n"))
    return Tree(found)


def _short(line: str) -> str:
    line = line.rstrip("\r")
    return line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}…"
