"""Reading one team file: every wrong value is one line with file, field and value."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from eval_pipeline.errors import TeamFileError
from eval_pipeline.teams.files import MAX_LINE, MAX_PROMPT, normalised, read_team_file
from eval_pipeline_tests.teams.builders import ROOT, SELECTOR, child, root, write


def refusal(path: Path) -> str:
    """The message with which the file is refused; it is one line and names the file."""
    with pytest.raises(TeamFileError) as caught:
        read_team_file(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    assert len(message) < 600
    return message.removeprefix(f"{path}: ")


def refused(folder: Path, team: dict[str, Any]) -> str:
    write(folder, team)
    return refusal(folder / f"{team['id']}.yaml")


def with_prompt(role: str, text: object) -> dict[str, Any]:
    return root(prompts={**ROOT["prompts"], role: text})


def without(field: str) -> dict[str, Any]:
    team = root()
    *parents, last = field.split(".")
    holder = team
    for parent in parents:
        holder = holder[parent]
    del holder[last]
    return team


def test_a_whole_team_is_read_as_it_is_written(tmp_path: Path) -> None:
    write(tmp_path, root())
    file = read_team_file(tmp_path / "root.yaml")
    assert file.prompts.given() == ROOT["prompts"]
    assert file.descriptions.given() == ROOT["descriptions"]
    assert file.tools == ROOT["tools"]
    assert (file.extends, file.layer, file.changes) == (None, None, [])


def test_a_child_says_only_what_it_changes(tmp_path: Path) -> None:
    write(tmp_path, child("kid", "input", ["input"], input="question_with_attachment"))
    file = read_team_file(tmp_path / "kid.yaml")
    assert file.prompts.given() == {}
    assert file.tools is None
    assert file.input == "question_with_attachment"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"colour": "red"}, "the key 'colour' is not known; the keys are id, extends, layer"),
        ({"prompt": {}}, "the key 'prompt' is not known"),
        (
            {"prompts": {**ROOT["prompts"], "writer": "x"}},
            "the key 'prompts.writer' is not known; the keys are planner",
        ),
        (
            {"descriptions": {**ROOT["descriptions"], "selector": "x"}},
            "the key 'descriptions.selector' is not known",
        ),
        ({"prompts": "x"}, "prompts 'x' is not a mapping"),
        ({"prompts": ["x"]}, "prompts ['x'] is not a mapping"),
        ({"tools": "python_calc"}, "tools 'python_calc' is not a list"),
        ({"tools": ["python_magic"]}, "tools[0] 'python_magic' is no tool; choose from "),
        ({"tools": ["python_calc", 7]}, "tools[1] 7 is not a text"),
        ({"tools": ["python_calc", "python_calc"]}, "names one twice"),
        ({"tools": ["read_attached_file.text", "read_attached_file.multi"]}, "call by the same name"),
        ({"input": "telepathy"}, "input 'telepathy' is no input builder; choose from question_only"),
        ({"termination": "never"}, "termination 'never' is no termination; choose from critic_approve"),
        ({"termination": True}, "termination True is not a text"),
        ({"answers": "poem"}, "answers 'poem' is not one of"),
        ({"change": 3}, "change 3 is not a text"),
        ({"change": "two\nlines"}, "change 'two\\nlines' must be one line"),
        ({"change": "x" * (MAX_LINE + 1)}, "must be one line of at most"),
        ({"allow_repeated_speaker": "no"}, "allow_repeated_speaker 'no' is not true or false"),
        ({"allow_repeated_speaker": 1}, "is not true or false"),
        ({"max_selector_attempts": "3"}, "max_selector_attempts '3' is not a whole number"),
        ({"max_selector_attempts": True}, "is not a whole number"),
        ({"max_selector_attempts": 0}, "max_selector_attempts 0 is less than 1"),
        ({"max_selector_attempts": 11}, "is more than 10"),
        ({"extends": 7}, "extends 7 is not a text"),
        ({"extends": None}, "extends is empty"),
        ({"tools": None}, "tools is empty; give it a value or leave the key out"),
        ({"layer": "prompt"}, "layer is a difference to a parent"),
        ({"changes": ["tools"]}, "changes is a difference to a parent"),
    ],
)
def test_a_wrong_value_is_refused_with_field_and_value(tmp_path: Path, fields: dict[str, Any], expected: str) -> None:
    assert expected in refused(tmp_path, root(**fields))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "prompts.critic '' is empty"),
        (" \n\t ", "is empty"),
        (None, "prompts.critic is empty"),
        (42, "prompts.critic 42 is not a text"),
        ("x" * (MAX_PROMPT + 1), "has 20,001 characters; a prompt has at most 20,000"),
        ("a\x00b", "holds the character U+0000 at position 1"),
        ("a\x1b[31m", "holds the character U+001B"),
        ("\ud800", "holds the character U+D800"),
    ],
)
def test_a_prompt_that_cannot_be_used_is_refused(tmp_path: Path, text: object, expected: str) -> None:
    path = tmp_path / "root.yaml"
    # ASCII with escapes, as a person would have to write such characters
    path.write_text(yaml.safe_dump(with_prompt("critic", text)), encoding="ascii")
    assert expected in refusal(path)


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        (SELECTOR.replace("{history}", ""), "lacks the field {history}"),
        (SELECTOR.replace("{roles}", ""), "lacks the field {roles}"),
        (SELECTOR.replace("{participants}", "{{participants}}"), "lacks the field {participants}"),
        (
            SELECTOR.replace("{{", "{").replace("}}", "}"),
            "that nothing fills in; write literal braces double",
        ),
        (SELECTOR + " {", "has unbalanced braces"),
        (SELECTOR + " }", "has unbalanced braces"),
        (SELECTOR + " {}", "has the field '{}'"),
        (SELECTOR + " {0}", "has the field '{0}'"),
        (SELECTOR + " {task}", "has the field '{task}'"),
        (SELECTOR + " {history.__class__}", "has the field '{history.__class__}'"),
        (SELECTOR + " {roles[0]}", "has the field"),
        (SELECTOR + " {roles:>99999999999}", "has the field"),
        (SELECTOR + " {roles!r}", "has the field"),
    ],
)
def test_a_selector_prompt_that_autogen_could_not_fill_in_is_refused(
    tmp_path: Path, template: str, expected: str
) -> None:
    message = refused(tmp_path, with_prompt("selector", template))
    assert message.startswith("prompts.selector ")
    assert expected in message


def test_braces_in_the_other_prompts_are_free(tmp_path: Path) -> None:
    write(tmp_path, with_prompt("planner", 'Write {"a": 1} or {x}.'))
    assert read_team_file(tmp_path / "root.yaml").prompts.planner == 'Write {"a": 1} or {x}.'


@pytest.mark.parametrize(
    "field",
    [
        "prompts.planner",
        "prompts.executor",
        "prompts.critic",
        "prompts.selector",
        "descriptions.critic",
        "answers",
        "tools",
        "input",
        "termination",
        "allow_repeated_speaker",
        "max_selector_attempts",
    ],
)
def test_a_team_without_a_parent_has_to_say_everything(tmp_path: Path, field: str) -> None:
    assert refused(tmp_path, without(field)).startswith(f"{field} is missing; a team without 'extends'")


def test_every_team_has_a_sentence_for_people(tmp_path: Path) -> None:
    assert refused(tmp_path, without("change")) == "change is missing"


@pytest.mark.parametrize("field", ["layer", "changes"])
def test_a_team_with_a_parent_has_to_declare_its_change(tmp_path: Path, field: str) -> None:
    team = child("kid", "input", ["input"], input="question_with_attachment")
    del team[field]
    assert refused(tmp_path, team).startswith(f"{field} is missing")


@pytest.mark.parametrize(
    ("layer", "changes", "expected"),
    [
        ("colour", ["input"], "layer 'colour' is not one of"),
        ("input", ["weather"], "changes[0] 'weather' is not one of"),
        ("input", ["input", "input"], "names one twice"),
        ("input", [], "changes is missing"),
    ],
)
def test_a_declaration_in_unknown_words_is_refused(
    tmp_path: Path, layer: str, changes: list[str], expected: str
) -> None:
    team = child("kid", layer, changes, input="question_with_attachment")
    assert expected in refused(tmp_path, team)


@pytest.mark.parametrize("team_id", ["root@2", "a b", "a...b", "-a", "x" * 121, "팀"])
def test_an_id_that_could_be_no_key_is_refused(tmp_path: Path, team_id: str) -> None:
    assert "cannot be used" in refused(tmp_path, root(id=team_id))


def test_an_id_is_the_name_of_its_file(tmp_path: Path) -> None:
    write(tmp_path, root())
    path = (tmp_path / "root.yaml").rename(tmp_path / "other.yaml")
    assert refusal(path) == "id 'root' must be the name of its file, 'other'"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "holds no keys and values"),
        (b"- a\n- b\n", "holds no keys and values"),
        (b"just text", "holds no keys and values"),
        (b"id: \xff\xfe", "is not UTF-8"),
        (b"id: a: b", "is not valid YAML"),
        (b"id: root\nid: root\n", "stands twice"),
        (b"a: &a [x]\nb: [*a, *a]\n", "alias"),
        (b"#" * 300_000, "larger than"),
    ],
)
def test_what_is_no_team_file_at_all_is_refused(tmp_path: Path, content: bytes, expected: str) -> None:
    path = tmp_path / "root.yaml"
    path.write_bytes(content)
    assert expected in refusal(path)


def test_a_path_with_a_line_break_stays_one_line(tmp_path: Path) -> None:
    path = tmp_path / "a\nb.yaml"
    path.write_text("")
    with pytest.raises(TeamFileError) as caught:
        read_team_file(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("\u1112\u1161\u11ab cafe\u0301", "\ud55c caf\u00e9"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("\n  a \n\n", "a"),
        ("a\tb", "a\tb"),
    ],
)
def test_text_is_normalised_to_nfc_and_plain_line_ends(written: str, kept: str) -> None:
    assert normalised(written) == kept
