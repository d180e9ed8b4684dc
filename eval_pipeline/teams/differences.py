"""In which parts two versions of a team differ, for the guards and for people. Pure.

Whether a difference is allowed belongs to :mod:`eval_pipeline.teams.guards`.
"""

from __future__ import annotations

import difflib
import re
from typing import Literal, get_args

from eval_pipeline.teams.spec import TeamSpec

Part = Literal[
    "prompt.planner",
    "prompt.executor",
    "prompt.critic",
    "prompt.selector",
    "descriptions",
    "tools",
    "input",
    "termination",
    "selector",
    "answers",
]
"""A piece of a team that can differ from another's; ``selector`` is the two settings of the selector."""
Layer = Literal["input", "prompt", "tools", "routing", "termination"]
"""Where a version makes its one change; what each layer may touch is in :mod:`eval_pipeline.teams.guards`."""
PARTS: tuple[Part, ...] = get_args(Part)


def _value(spec: TeamSpec, part: Part) -> str | list[str] | dict[str, str]:
    name = part.removeprefix("prompt.")
    if name != part:
        return spec.prompts[name]
    if part == "descriptions":
        return spec.descriptions
    if part == "tools":
        return list(spec.tools)
    if part == "selector":
        return {
            "allow_repeated_speaker": str(spec.allow_repeated_speaker).lower(),
            "max_selector_attempts": str(spec.max_selector_attempts),
        }
    return {"input": spec.input, "termination": spec.termination, "answers": spec.answers}[part]


def changed_parts(spec: TeamSpec, parent: TeamSpec) -> tuple[Part, ...]:
    """The parts in which the contents differ, in the order of :data:`PARTS`; declarations are not read."""
    return tuple(part for part in PARTS if _value(spec, part) != _value(parent, part))


def diff_text(spec: TeamSpec, parent: TeamSpec | None) -> str:
    """Markdown: one unified diff for each part that differs from ``parent``; all parts without a parent."""
    parts = PARTS if parent is None else changed_parts(spec, parent)
    return "\n\n".join(_part_diff(spec, parent, part) for part in parts) or "No difference."


def _part_diff(spec: TeamSpec, parent: TeamSpec | None, part: Part) -> str:
    before = _lines(parent, part) if parent else []
    names = parent.team_id if parent else "nothing", spec.team_id
    body = "\n".join(difflib.unified_diff(before, _lines(spec, part), *names, lineterm=""))
    # a prompt may itself hold a fence; ours has to be longer than any run of backticks inside
    fence = "`" * max([2, *map(len, re.findall("`+", body))]) + "`"
    return f"#### {part}\n\n{fence}diff\n{body}\n{fence}"


def _lines(spec: TeamSpec, part: Part) -> list[str]:
    value = _value(spec, part)
    if isinstance(value, dict):
        return [f"{key}: {text}" for key, text in value.items()]
    return value if isinstance(value, list) else value.split("\n")
