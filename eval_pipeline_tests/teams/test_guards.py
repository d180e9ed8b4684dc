"""The one-variable guard: what a file declares is what its content changes, within one layer."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest

from eval_pipeline.errors import TeamFileError
from eval_pipeline.teams.differences import PARTS, Layer, Part
from eval_pipeline.teams.registry import load_teams
from eval_pipeline_tests.teams.builders import ROOT, SELECTOR, child, root, write

# how a child of ``root`` changes each part; the prompts of the roles name a tool, before and after
EDITS: dict[Part, dict[str, Any]] = {
    "prompt.planner": {"prompts": {"planner": "Plan for python_calc. FINAL ANSWER: 42"}},
    "prompt.executor": {"prompts": {"executor": "Run python_calc, or read_attached_file."}},
    "prompt.critic": {"prompts": {"critic": "Mistrust python_calc. APPROVE"}},
    "prompt.selector": {"prompts": {"selector": SELECTOR + "\nBe brief."}},
    "descriptions": {"descriptions": {"critic": "another"}},
    "tools": {"tools": ["read_attached_file.text", "python_exec"]},
    "input": {"input": "question_with_attachment"},
    "selector": {"max_selector_attempts": 2},
    "answers": {"answers": "text"},
}
# the one part that has no second value to choose yet, so that no file can change it
ONLY_ONE_VALUE: set[Part] = {"termination"}
ALONE: dict[Layer, set[Part]] = {
    "input": {"input"},
    "prompt": {"prompt.planner", "prompt.executor", "prompt.critic"},
    "tools": {"tools"},
    "routing": {"prompt.selector", "selector", "descriptions"},
    "termination": {"termination"},
}


def fields(*parts: Part) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for part in parts:
        for key, value in EDITS[part].items():
            merged[key] = {**merged.get(key, {}), **value} if isinstance(value, dict) else value
    return merged


def load_child(folder: Path, layer: str, declared: list[Part], changed: list[Part], **more: Any) -> None:
    load_teams(write(folder, root(), child("kid", layer, list(declared), **{**fields(*changed), **more})))


def refused(folder: Path, layer: str, declared: list[Part], changed: list[Part], **more: Any) -> str:
    with pytest.raises(TeamFileError) as caught:
        load_child(folder, layer, declared, changed, **more)
    message = str(caught.value)
    assert message.startswith(f"{folder / 'kid.yaml'}: declares ")
    assert "\n" not in message
    return message


def test_every_part_is_edited_here() -> None:
    assert EDITS.keys() | ONLY_ONE_VALUE == set(PARTS)
    assert ALONE.keys() == set(get_args(Layer))


@pytest.mark.parametrize("part", EDITS)
@pytest.mark.parametrize("layer", ALONE)
def test_a_layer_may_change_its_own_parts_and_no_other(tmp_path: Path, layer: Layer, part: Part) -> None:
    if part in ALONE[layer]:
        load_child(tmp_path, layer, [part], [part])
    else:
        message = refused(tmp_path, layer, [part], [part])
        assert f"declares layer {layer}" in message
        assert f"its content changes {part};" in message


@pytest.mark.parametrize("hidden", EDITS)
@pytest.mark.parametrize(("layer", "declared"), [("input", "input"), ("prompt", "prompt.critic"), ("tools", "tools")])
def test_a_change_that_is_not_declared_is_found(tmp_path: Path, layer: str, declared: Part, hidden: Part) -> None:
    if hidden == declared:
        return
    message = refused(tmp_path, layer, [declared], [declared, hidden])
    found = [part for part in PARTS if part in (declared, hidden)]
    assert f"declares changes {declared}, but against root its content changes {', '.join(found)};" in message


@pytest.mark.parametrize("missing", EDITS)
def test_a_declared_change_that_is_not_there_is_found(tmp_path: Path, missing: Part) -> None:
    other: Part = "input" if missing != "input" else "tools"
    message = refused(tmp_path, "input", [other, missing], [other])
    assert f"its content changes {other};" in message


def test_a_file_that_repeats_its_parents_values_changes_nothing(tmp_path: Path) -> None:
    message = refused(tmp_path, "prompt", ["prompt.critic"], [], prompts={"critic": f"\n{ROOT['prompts']['critic']}\n"})
    assert "declares changes prompt.critic, but against root its content changes nothing" in message


def test_several_prompts_of_roles_are_one_layer(tmp_path: Path) -> None:
    parts: list[Part] = ["prompt.planner", "prompt.executor", "prompt.critic", "answers"]
    load_child(tmp_path, "prompt", parts, parts)


def test_routing_covers_the_selectors_prompt_its_settings_and_what_it_is_told_of_the_roles(
    tmp_path: Path,
) -> None:
    parts: list[Part] = ["descriptions", "selector", "prompt.selector"]
    load_child(tmp_path, "routing", parts, parts)


@pytest.mark.parametrize(
    ("layer", "parts"),
    [
        ("prompt", ["prompt.planner", "prompt.selector"]),
        ("prompt", ["prompt.planner", "input"]),
        ("prompt", ["prompt.planner", "tools"]),
        ("routing", ["prompt.selector", "prompt.critic"]),
        ("tools", ["tools", "input"]),
        ("tools", ["tools", "answers"]),
        ("tools", ["tools", "descriptions"]),
        ("tools", ["tools", "prompt.selector"]),
        ("input", ["input", "prompt.planner"]),
    ],
)
def test_two_layers_at_once_are_refused_even_when_declared(tmp_path: Path, layer: str, parts: list[Part]) -> None:
    assert "split it into two teams" in refused(tmp_path, layer, parts, parts)


@pytest.mark.parametrize("role", ["prompt.planner", "prompt.executor", "prompt.critic"])
def test_a_change_of_tools_takes_along_the_prompts_that_name_them(tmp_path: Path, role: Part) -> None:
    load_child(tmp_path, "tools", ["tools", role], ["tools", role])


@pytest.mark.parametrize(
    ("critic", "allowed"),
    [
        ("Be strict. APPROVE", False),
        ("Mistrust read_attached_file. APPROVE", False),
        ("Mistrust my_python_exec and python_execs. APPROVE", False),
        ("Mistrust python_exec. APPROVE", True),
        ("Mistrust python_calc. APPROVE", True),
    ],
)
def test_a_change_of_tools_takes_along_no_prompt_that_names_none_of_them(
    tmp_path: Path, critic: str, allowed: bool
) -> None:
    parts: list[Part] = ["tools", "prompt.critic"]
    if allowed:
        load_child(tmp_path, "tools", parts, parts, prompts={"critic": critic})
    else:
        message = refused(tmp_path, "tools", parts, parts, prompts={"critic": critic})
        assert "prompt.critic, which names no tool that is added or removed (python_calc, python_exec)" in message


def test_a_prompt_that_named_a_removed_tool_may_drop_it(tmp_path: Path) -> None:
    parts: list[Part] = ["tools", "prompt.executor"]
    tools = ["read_attached_file.text"]
    load_child(tmp_path, "tools", parts, [], tools=tools, prompts={"executor": "Run read_attached_file."})


def test_another_reader_under_the_same_name_is_a_change_of_that_tool(tmp_path: Path) -> None:
    parts: list[Part] = ["tools", "prompt.executor"]
    tools = ["read_attached_file.multi", "python_calc"]
    load_child(tmp_path, "tools", parts, [], tools=tools, prompts={"executor": "read_attached_file reads PDF."})


def test_another_order_of_the_same_tools_gives_no_occasion_to_reword_a_prompt(tmp_path: Path) -> None:
    tools = ["python_calc", "read_attached_file.text"]
    load_child(tmp_path / "order", "tools", ["tools"], [], tools=tools)
    message = refused(tmp_path / "both", "tools", ["tools", "prompt.planner"], ["prompt.planner"], tools=tools)
    assert "names no tool that is added or removed (nothing)" in message
