"""Fenced blocks of Markdown in an answer, for the benchmarks whose answer is code.

Linear in the length of the text. Which block is the answer belongs to the benchmark.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_FENCE = re.compile(r"^[^\S\n]*+(`{3,}+|~{3,}+)([^\n]*+)$", re.MULTILINE)
_ONE_LINE = re.compile(r"(`{3,}+)(?:(?:sql|python)\s)?([^`\n]++)\1")


@dataclass(frozen=True, slots=True)
class Block:
    """What stands between two fences; ``label`` is the first word behind the opening one, in lower case."""

    label: str
    body: str


def fenced_blocks(text: str) -> list[Block]:
    """The blocks of ``text`` in their order; one that is not closed goes on to the end.

    A fence is closed by one of the same sign that is at least as long and has no label, so that a block inside a block
    is part of its body. The fence's own indentation is taken off the lines of the body.
    """
    blocks: list[Block] = []
    opening: re.Match[str] | None = None
    for fence in _FENCE.finditer(text):
        if opening is None:
            # a sign of the fence in its label: that is code within a line
            if fence[1][0] not in fence[2]:
                opening = fence
        elif fence[1].startswith(opening[1]) and not fence[2].strip():
            blocks.append(_block(text, opening, fence.start()))
            opening = None
    if opening is not None:
        blocks.append(_block(text, opening, len(text)))
    return blocks


def unfenced(text: str) -> str:
    """The body of ``text`` if the whole of it is one fenced block, else ``text``; white space around it is dropped."""
    text = text.strip()
    if one_line := _ONE_LINE.fullmatch(text):
        return one_line[2].strip()
    blocks = fenced_blocks(text) if text.startswith(("```", "~~~")) else []
    if len(blocks) == 1 and text.rstrip("`~").rstrip().endswith(blocks[0].body.rstrip()):
        return blocks[0].body.strip()
    return text


def _block(text: str, opening: re.Match[str], end: int) -> Block:
    body = text[opening.end() + 1 : end]
    indent = opening[0][: opening.start(1) - opening.start()]
    if indent and body:
        body = body.removeprefix(indent).replace(f"\n{indent}", "\n")
    label = opening[2].split(maxsplit=1)
    return Block(label[0].lower() if label else "", body)
