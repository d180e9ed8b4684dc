"""A finished page as a test reads it: its elements, what it says, its data, what it refers to."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import Any

_VOID = frozenset({"meta", "link", "input", "br", "wbr", "img", "hr"})


class Page(HTMLParser):
    """Parsed once; ``text`` leaves out scripts and styles and has single spaces."""

    def __init__(self, page: bytes) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self._texts: list[str] = []
        self.scripts: list[str] = []
        self.styles: list[str] = []
        self.feed(page.decode())
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"</{tag}> closes another element"

    def handle_data(self, data: str) -> None:
        inside = self.open[-1] if self.open else ""
        (self.scripts if inside == "script" else self.styles if inside == "style" else self._texts).append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self._texts).split())

    @property
    def traces(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.scripts[0])
        return found

    def all(self, tag: str, **attributes: str) -> list[dict[str, str]]:
        """The attributes of every element of a kind that has these; ``class_`` asks for one class of several."""
        wanted = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
        return [
            found
            for name, found in self.elements
            if name == tag
            and all(
                value in found.get(key, "").split() if key == "class" else found.get(key) == value
                for key, value in wanted.items()
            )
        ]

    @property
    def rows(self) -> dict[str, dict[str, str]]:
        """The attributes of the rows of the table of runs, by cell."""
        return {found["data-run"]: found for found in self.all("tr") if "data-run" in found}
