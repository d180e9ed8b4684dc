"""What differs between two versions, computed and shown."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from eval_pipeline.teams.differences import PARTS, Part, changed_parts, diff_text
from eval_pipeline.teams.registry import load_teams
from eval_pipeline.teams.spec import TeamSpec

BASE = load_teams(None)["v1-baseline"]


def with_prompt(role: str, text: str) -> dict[str, Any]:
    return {"prompts": {**BASE.prompts, role: text}}


EDITS: list[tuple[Part, dict[str, Any]]] = [
    ("prompt.planner", with_prompt("planner", BASE.prompts["planner"] + ".")),
    ("prompt.executor", with_prompt("executor", BASE.prompts["executor"].replace("e", "E", 1))),
    ("prompt.critic", with_prompt("critic", "APPROVE")),
    ("prompt.selector", with_prompt("selector", BASE.prompts["selector"] + "!")),
    ("descriptions", {"descriptions": {**BASE.descriptions, "critic": "another"}}),
    ("tools", {"tools": tuple(reversed(BASE.tools))}),
    ("input", {"input": "question_with_attachment"}),
    ("termination", {"termination": "another"}),
    ("selector", {"allow_repeated_speaker": True}),
    ("selector", {"max_selector_attempts": 4}),
    ("answers", {"answers": "text"}),
]


def edited(fields: dict[str, Any]) -> TeamSpec:
    return replace(BASE, team_id="other", parent=BASE.team_id, **fields)


def test_every_part_has_an_edit_here() -> None:
    assert {part for part, _ in EDITS} == set(PARTS)


@pytest.mark.parametrize(("part", "fields"), EDITS)
def test_an_edit_is_found_in_its_part_and_nowhere_else(part: Part, fields: dict[str, Any]) -> None:
    assert changed_parts(edited(fields), BASE) == (part,)


@pytest.mark.parametrize(("part", "fields"), EDITS)
def test_an_edit_changes_the_contract_hash(part: Part, fields: dict[str, Any]) -> None:
    spec = edited(fields)
    assert spec.contract_hash != BASE.contract_hash
    assert (spec.prompt_bundle_hash != BASE.prompt_bundle_hash) == part.startswith("prompt.")


def test_what_describes_a_team_is_no_part_of_it() -> None:
    spec = edited({"layer": "prompt", "change": "Another sentence.", "changes": ("tools",)})
    assert changed_parts(spec, BASE) == ()
    assert diff_text(spec, BASE) == "No difference."


@pytest.mark.parametrize(("part", "fields"), EDITS)
def test_a_diff_shows_the_part_with_both_versions(part: Part, fields: dict[str, Any]) -> None:
    text = diff_text(edited(fields), BASE)
    assert text.startswith(f"#### {part}\n\n```diff\n--- v1-baseline\n+++ other\n")
    assert text.endswith("\n```")
    assert re.search(r"^[+-](?![+-]{2})", text, re.MULTILINE)


def test_a_diff_of_a_team_without_a_parent_is_all_of_it() -> None:
    text = diff_text(BASE, None)
    assert [line[5:] for line in text.splitlines() if line.startswith("#### ")] == list(PARTS)
    assert "+read_attached_file.text" in text.splitlines()
    assert not re.search(r"^-(?!--)", text, re.MULTILINE)


def test_a_prompt_with_a_code_fence_does_not_end_the_diffs_own() -> None:
    text = diff_text(edited(with_prompt("critic", "````\nAPPROVE\n````")), BASE)
    opening = re.search(r"^(`+)diff$", text, re.MULTILINE)
    assert opening is not None
    assert len(opening[1]) == 5
    assert text.endswith("\n" + opening[1])
