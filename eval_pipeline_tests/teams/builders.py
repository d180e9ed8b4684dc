"""Team files that tests write: a whole team without a parent, and children of it."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import yaml

SELECTOR = 'Members:\n{roles}\n\nSo far:\n{history}\n\nChoose from {participants}: {{"next": "planner"}}'

ROOT: dict[str, Any] = {
    "id": "root",
    "change": "A team of the user's own.",
    "answers": "line",
    "prompts": {
        "planner": "Plan, and use python_calc.\nEnd with FINAL ANSWER: 42",
        "executor": "Run read_attached_file or python_calc.",
        "critic": "Say APPROVE.",
        "selector": SELECTOR,
    },
    "descriptions": {"planner": "plans", "executor": "executes", "critic": "criticises"},
    "tools": ["read_attached_file.text", "python_calc"],
    "input": "question_only",
    "termination": "critic_approve_or_max_messages",
    "allow_repeated_speaker": False,
    "max_selector_attempts": 3,
}


def root(**fields: Any) -> dict[str, Any]:
    return copy.deepcopy(ROOT) | fields


def child(team_id: str, layer: str, changes: list[str], **fields: Any) -> dict[str, Any]:
    """A team that extends ``root`` (or what ``extends`` says)."""
    return {
        "id": team_id,
        "extends": "root",
        "layer": layer,
        "changes": changes,
        "change": "One thing is different.",
        **fields,
    }


def write(folder: Path, *teams: dict[str, Any]) -> Path:
    """One file per team, named after its id; returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for team in teams:
        text = yaml.safe_dump(team, allow_unicode=True, sort_keys=False)
        (folder / f"{team['id']}.yaml").write_text(text, encoding="utf-8")
    return folder
