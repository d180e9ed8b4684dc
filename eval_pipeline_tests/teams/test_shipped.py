"""The shipped teams are what the contract says of them, and stay so."""

from __future__ import annotations

import string

import pytest
import yaml

from eval_pipeline.teams import registry
from eval_pipeline.teams.differences import Part, changed_parts
from eval_pipeline.teams.registry import load_teams
from eval_pipeline.teams.spec import PROMPTS, ROLES, TeamSpec
from eval_pipeline.tools.registry import TOOLS

TEAMS = load_teams(None)
V1, V2, V3, V4, V5, V6, T1 = (
    TEAMS[team_id]
    for team_id in (
        "v1-baseline",
        "v2-attach-path",
        "v3-prompt-fix",
        "v4-prompt-fix",
        "v5-multitool",
        "v6-verify-gate",
        "t1-text",
    )
)
CHILDREN = [spec for spec in TEAMS.values() if spec.parent]

PROMPT_HASHES = {
    "v1-baseline": "58d2d2a54412116d",
    "v2-attach-path": "58d2d2a54412116d",
    "v3-prompt-fix": "a7d0ccec0431c0e7",
    "v4-prompt-fix": "cabdca0a87b629a1",
    "v5-multitool": "109d6cad71277d16",
    "v6-verify-gate": "b708d4f9ecb0901e",
    "t1-text": "763bff524d7998e6",
}


def added_and_removed(new: str, old: str) -> tuple[list[str], list[str]]:
    """Lines that stand in only one of two texts."""
    before, after = old.splitlines(), new.splitlines()
    return [line for line in after if line not in before], [line for line in before if line not in after]


def sentences(lines: list[str]) -> str:
    return " ".join(line.strip() for line in lines)


def test_exactly_these_teams_are_shipped() -> None:
    assert set(TEAMS) == {spec.team_id for spec in (V1, V2, V3, V4, V5, V6, T1)}


@pytest.mark.parametrize(
    ("spec", "parent", "layer", "parts"),
    [
        (V1, None, None, ()),
        (V2, "v1-baseline", "input", ("input",)),
        (V3, "v2-attach-path", "prompt", ("prompt.planner", "prompt.critic")),
        (V4, "v3-prompt-fix", "prompt", ("prompt.planner", "prompt.critic")),
        (V5, "v4-prompt-fix", "tools", ("prompt.planner", "prompt.executor", "tools")),
        (V6, "v1-baseline", "routing", ("prompt.selector",)),
        (T1, "v5-multitool", "prompt", ("prompt.planner", "prompt.critic", "answers")),
    ],
    ids=lambda value: value.team_id if isinstance(value, TeamSpec) else "",
)
def test_each_version_changes_exactly_what_the_table_says(
    spec: TeamSpec, parent: str | None, layer: str | None, parts: tuple[Part, ...]
) -> None:
    assert (spec.parent, spec.layer) == (parent, layer)
    assert (changed_parts(spec, TEAMS[parent]) if parent else ()) == parts
    assert spec.change.endswith(".")


@pytest.mark.parametrize("spec", CHILDREN, ids=lambda spec: spec.team_id)
def test_a_file_holds_nothing_that_its_parent_says_already(spec: TeamSpec) -> None:
    values = yaml.safe_load((registry.SHIPPED / f"{spec.team_id}.yaml").read_text(encoding="utf-8"))
    about = {"id", "extends", "layer", "changes", "change"}
    said = {f"prompt.{role}" for role in values.pop("prompts", {})} | (values.keys() - about)
    assert said == set(spec.changes)


@pytest.mark.parametrize("spec", TEAMS.values(), ids=lambda spec: spec.team_id)
def test_the_skeleton_is_the_same_for_all(spec: TeamSpec) -> None:
    assert tuple(spec.prompts) == PROMPTS
    assert tuple(spec.descriptions) == ROLES
    assert spec.termination == "critic_approve_or_max_messages"
    assert (spec.allow_repeated_speaker, spec.max_selector_attempts) == (False, 3)
    assert spec.answers == ("text" if spec is T1 else "line")


@pytest.mark.parametrize("spec", TEAMS.values(), ids=lambda spec: spec.team_id)
def test_the_prompts_name_the_teams_own_tools_and_no_others(spec: TeamSpec) -> None:
    own = {TOOLS[key].name for key in spec.tools}
    others = {tool.name for tool in TOOLS.values()} - own
    for role in ("planner", "executor"):
        assert all(name in spec.prompts[role] for name in own)
    assert not [name for name in others if any(name in text for text in spec.prompts.values())]


@pytest.mark.parametrize("spec", TEAMS.values(), ids=lambda spec: spec.team_id)
def test_the_critic_is_told_to_write_approve_alone_at_the_end(spec: TeamSpec) -> None:
    lines = spec.prompts["critic"].splitlines()
    assert lines[-1] == "APPROVE"
    assert sum("APPROVE" in line for line in lines) == 1


@pytest.mark.parametrize("spec", TEAMS.values(), ids=lambda spec: spec.team_id)
def test_the_selector_prompt_is_filled_in_as_autogen_does_it(spec: TeamSpec) -> None:
    text = spec.prompts["selector"].format(roles="ROLES", participants="NAMES", history="HISTORY {x}")
    assert all(word in text for word in ("ROLES", "NAMES", "HISTORY {x}"))
    example = text[text.index('{"next"') :]
    assert yaml.safe_load(example).keys() == {"next", "reason_code", "summary"}
    codes = ("NEEDS_PLANNING", "NEEDS_EXECUTION", "NEEDS_VERIFICATION", "NEEDS_REVISION")
    assert all(code in text for code in codes)
    assert {field for _, field, _, _ in string.Formatter().parse(spec.prompts["selector"]) if field} == {
        "roles",
        "participants",
        "history",
    }


def test_v1_is_told_the_question_only_and_has_the_two_simple_tools() -> None:
    assert V1.input == "question_only"
    assert V1.tools == V2.tools == V3.tools == V4.tools == V6.tools == ("read_attached_file.text", "python_calc")


def test_v2_leaves_every_prompt_alone_so_that_its_prompt_hash_is_v1s() -> None:
    assert V2.prompt_bundle_hash == V1.prompt_bundle_hash
    assert V2.contract_hash != V1.contract_hash
    assert V2.input == "question_with_attachment"


def test_v1_shows_a_placeholder_where_v3_shows_real_values() -> None:
    added, removed = added_and_removed(V3.prompts["planner"], V1.prompts["planner"])
    assert "FINAL ANSWER: <answer>" in sentences(removed)
    for value in ("42", "Paris", "cat, dog, fish"):
        assert f"FINAL ANSWER: {value}" in [line.strip() for line in added]
    assert "<answer>" not in V3.prompts["planner"]


def test_v3_tells_the_planner_that_python_calc_takes_arithmetic_only() -> None:
    added, _ = added_and_removed(V3.prompts["planner"], V2.prompts["planner"])
    assert "python_calc" in sentences(added)
    assert "arithmetic only" in sentences(added)


def test_v3_has_the_critic_reject_a_leftover_placeholder_by_one_added_rule() -> None:
    added, removed = added_and_removed(V3.prompts["critic"], V2.prompts["critic"])
    assert removed == []
    assert len(added) == 1
    assert "placeholder" in added[0] and "<answer>" in added[0] and "Reject" in added[0]


@pytest.mark.parametrize(
    ("role", "words"),
    [
        ("planner", ("one word", "FINAL ANSWER:")),
        ("critic", ("FINAL ANSWER:", "missing", "Reject", "whatever the length")),
    ],
)
def test_v4_adds_one_rule_to_the_planner_and_one_to_the_critic(role: str, words: tuple[str, ...]) -> None:
    added, removed = added_and_removed(V4.prompts[role], V3.prompts[role])
    assert removed == []
    assert len(added) == 1
    assert added[0].startswith("- ")
    assert all(word in added[0] for word in words)


def test_v5_has_the_reader_of_many_formats_and_a_python_program_instead_of_arithmetic() -> None:
    assert V5.tools == ("read_attached_file.multi", "python_exec")
    for rule in added_and_removed(V4.prompts["planner"], V3.prompts["planner"])[0]:
        assert rule in V5.prompts["planner"], "v5 keeps what v4 has learned"


def test_v6_only_adds_the_gate_to_v1s_selector() -> None:
    added, removed = added_and_removed(V6.prompts["selector"], V1.prompts["selector"])
    assert removed == []
    gate = sentences(added)
    for words in ("mandatory gate", "only after the critic's APPROVE", "starts with FINAL ANSWER:"):
        assert words in gate
    assert "the critic is next with NEEDS_VERIFICATION" in gate
    assert "the planner is next with NEEDS_REVISION" in gate


def test_the_text_team_asks_for_no_answer_line() -> None:
    assert all("FINAL ANSWER" not in text for text in T1.prompts.values())


def test_the_prompts_of_a_shipped_team_never_change() -> None:
    """People have measured with these texts. A new wording is a new team with a new id."""
    assert {spec.team_id: spec.prompt_bundle_hash[:16] for spec in TEAMS.values()} == PROMPT_HASHES
