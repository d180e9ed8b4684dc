"""All teams together: inheritance, order, the user's own folder, and what makes a set of files wrong."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest

from eval_pipeline.errors import EvalPipelineError, IdError, SettingsError, TeamFileError
from eval_pipeline.teams import registry
from eval_pipeline.teams.registry import lineage, load_teams, team
from eval_pipeline.tools.registry import TOOLS
from eval_pipeline_tests.teams.builders import ROOT, child, root, write

KID = child("kid", "prompt", ["prompt.critic"], prompts={"critic": "Say APPROVE, or why not."})


def refused(folder: Path, error: type[EvalPipelineError] = TeamFileError) -> str:
    with pytest.raises(error) as caught:
        load_teams(folder)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_child_inherits_all_that_it_does_not_say(tmp_path: Path) -> None:
    teams = load_teams(write(tmp_path, root(), KID))
    kid, parent = teams["kid"], teams["root"]
    assert kid.prompts == {**ROOT["prompts"], "critic": "Say APPROVE, or why not."}
    assert kid.descriptions == parent.descriptions
    assert kid.tools == parent.tools == ("read_attached_file.text", "python_calc")
    assert (kid.parent, kid.layer, kid.changes) == ("root", "prompt", ("prompt.critic",))
    assert parent.prompts == ROOT["prompts"], "the parent is not touched"
    assert kid.contract_hash != parent.contract_hash


def test_a_users_team_may_extend_a_shipped_one(tmp_path: Path) -> None:
    korean = KID | {
        "id": "mine",
        "extends": "v4-prompt-fix",
        "prompts": {"critic": "검토하고 APPROVE 라고 쓰세요."},
    }
    teams = load_teams(write(tmp_path, korean))
    assert teams["mine"].prompts["critic"] == "검토하고 APPROVE 라고 쓰세요."
    assert teams["mine"].prompts["planner"] == teams["v4-prompt-fix"].prompts["planner"]


def test_parents_stand_before_their_children_whatever_the_file_names(tmp_path: Path) -> None:
    last = child("a-last", "input", ["input"], extends="kid", input="question_with_attachment")
    ids = list(load_teams(write(tmp_path, root(), KID, last)))
    assert ids[-3:] == ["root", "kid", "a-last"]
    assert ids[:-3] == list(load_teams(None)), "shipped teams come first"


def test_every_named_tool_and_builder_has_its_source_in_the_contract(tmp_path: Path) -> None:
    spec = load_teams(write(tmp_path, root()))["root"]
    assert set(spec.source_hashes) == {"read_attached_file.text", "python_calc", "question_only"}
    assert spec.source_hashes["python_calc"] == TOOLS["python_calc"].source_hash
    assert all(len(value) == 64 for value in spec.source_hashes.values())


def test_another_source_of_a_tool_is_another_contract(tmp_path: Path) -> None:
    before = load_teams(write(tmp_path, root()))["root"]
    after = load_teams(write(tmp_path, root(tools=["read_attached_file.text", "python_exec"])))["root"]
    assert before.contract_hash != after.contract_hash
    assert before.prompt_bundle_hash == after.prompt_bundle_hash


def test_line_ends_and_unicode_forms_of_a_checkout_do_not_change_a_hash(tmp_path: Path) -> None:
    plain = root(prompts={**ROOT["prompts"], "critic": "첫째 줄\n둘째 줄: café\nAPPROVE"})
    expected = load_teams(write(tmp_path / "plain", plain))["root"]
    text = (tmp_path / "plain" / "root.yaml").read_text(encoding="utf-8")
    other = tmp_path / "other" / "root.yaml"
    other.parent.mkdir()
    other.write_bytes(unicodedata.normalize("NFD", text).replace("\n", "\r\n").encode())
    found = load_teams(other.parent)["root"]
    assert found.prompts == expected.prompts
    assert found.contract_hash == expected.contract_hash


def test_shipped_teams_hash_equal_from_a_checkout_with_windows_line_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = {team_id: spec.contract_hash for team_id, spec in load_teams(None).items()}
    for path in registry.SHIPPED.glob("*.yaml"):
        (tmp_path / path.name).write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    monkeypatch.setattr(registry, "SHIPPED", tmp_path)
    assert {team_id: spec.contract_hash for team_id, spec in load_teams(None).items()} == expected


def test_hidden_and_other_files_are_passed_over(tmp_path: Path) -> None:
    write(tmp_path, root())
    (tmp_path / "._root.yaml").write_bytes(b"\x00\x05\x16\x07")
    (tmp_path / "README.md").write_text("notes")
    assert "root" in load_teams(tmp_path)


def test_a_file_named_yml_is_read_too(tmp_path: Path) -> None:
    write(tmp_path, root())
    (tmp_path / "root.yaml").rename(tmp_path / "root.yml")
    assert "root" in load_teams(tmp_path)


def test_a_users_team_with_a_shipped_id_is_refused(tmp_path: Path) -> None:
    message = refused(write(tmp_path, root(id="v1-baseline")))
    assert "the id 'v1-baseline' is taken by" in message
    assert str(tmp_path / "v1-baseline.yaml") in message


def test_two_files_of_one_id_are_refused(tmp_path: Path) -> None:
    write(tmp_path, root())
    (tmp_path / "root.yml").write_bytes((tmp_path / "root.yaml").read_bytes())
    assert "is taken by" in refused(tmp_path)


def test_an_unknown_parent_is_named(tmp_path: Path) -> None:
    message = refused(write(tmp_path, KID))
    assert "kid.yaml: extends 'root', which is no team; choose from t1-text, v1-baseline" in message
    assert "kid" not in message.partition("choose from")[2]


@pytest.mark.parametrize("length", [1, 2, 3])
def test_a_circle_of_parents_is_shown(tmp_path: Path, length: int) -> None:
    ids = [f"ring{number}" for number in range(length)]
    for number, team_id in enumerate(ids):
        write(tmp_path, KID | {"id": team_id, "extends": ids[(number + 1) % length]})
    write(tmp_path, KID | {"id": "a-outside", "extends": "ring0"})
    message = refused(tmp_path)
    assert "extends goes in a circle: " + " → ".join([*ids, ids[0]]) in message


def test_an_undeclared_change_is_refused_with_the_file(tmp_path: Path) -> None:
    message = refused(write(tmp_path, root(), KID | {"changes": ["prompt.planner"]}))
    assert message.startswith(f"{tmp_path / 'kid.yaml'}: declares changes prompt.planner")


def test_one_wrong_file_of_the_user_is_named_and_nothing_is_loaded(tmp_path: Path) -> None:
    (write(tmp_path, root()) / "broken.yaml").write_text("id: [")
    assert refused(tmp_path).startswith(f"{tmp_path / 'broken.yaml'}: is not valid YAML")


@pytest.mark.parametrize("name", ["missing", "file.txt", "nul\x00"])
def test_a_folder_that_is_none_is_refused_with_the_variable(tmp_path: Path, name: str) -> None:
    (tmp_path / "file.txt").write_text("x")
    assert refused(tmp_path / name, SettingsError).startswith("EVAL_TEAMS_DIR: ")


def test_an_empty_folder_adds_nothing(tmp_path: Path) -> None:
    assert list(load_teams(tmp_path)) == list(load_teams(None))


def test_an_unknown_team_is_refused_with_what_there_is() -> None:
    with pytest.raises(IdError, match=r"^there is no team 'v9'; choose from v1-baseline, v2-attach-path"):
        team(load_teams(None), "v9")


def test_lineage_begins_with_the_first_ancestor() -> None:
    teams = load_teams(None)
    assert [spec.team_id for spec in lineage(teams, "v4-prompt-fix")] == [
        "v1-baseline",
        "v2-attach-path",
        "v3-prompt-fix",
        "v4-prompt-fix",
    ]
    assert lineage(teams, "v1-baseline") == (teams["v1-baseline"],)


def test_a_long_line_of_ancestors_is_followed(tmp_path: Path) -> None:
    write(tmp_path, root())
    for number in range(150):
        parent = f"n{number - 1}" if number else "root"
        write(
            tmp_path,
            KID | {"id": f"n{number}", "extends": parent, "prompts": {"critic": f"{number} APPROVE"}},
        )
    assert len(lineage(load_teams(tmp_path), "n149")) == 151
