"""Markdown for the Dagster UI, from values that may hold anything. Nothing here knows what a row means."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def cell_text(value: object, longest: int = 200) -> str:
    """A value as one table cell: one line, no pipe, no HTML, at most ``longest`` characters."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1 else f"{value:,.2f}".rstrip("0").rstrip(".")
    text = " ".join(str(value).split())
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace("|", "\\|").replace("`", "'")
    return text if len(text) <= longest else text[: longest - 1] + "…"


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(header) + " |", "|" + " --- |" * len(header)]
    lines += ["| " + " | ".join(cell_text(value) for value in row) + " |" for row in rows]
    return "\n".join(lines)


def fenced(text: str, language: str = "") -> str:
    """``text`` in a fence that nothing inside can close."""
    longest = max((len(run) for run in _runs_of_backticks(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _runs_of_backticks(text: str) -> Iterable[str]:
    run = ""
    for character in text:
        if character == "`":
            run += character
        else:
            if run:
                yield run
            run = ""
    if run:
        yield run
