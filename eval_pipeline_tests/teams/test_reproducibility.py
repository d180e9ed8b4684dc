"""The reproducibility guard against a real database: what is stored under a team id never changes."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, delete, insert, select, update
from sqlalchemy.exc import DBAPIError

from eval_pipeline.db.tables import teams as teams_table
from eval_pipeline.errors import TeamConfigMismatchError
from eval_pipeline.teams.registry import load_teams, register_teams
from eval_pipeline.teams.spec import TeamSpec

TEAMS = load_teams(None)
V3 = TEAMS["v3-prompt-fix"]


def stored_ids(connection: Connection) -> set[str]:
    return set(connection.execute(select(teams_table.c.team_id)).scalars())


def one_letter_changed(spec: TeamSpec, role: str = "planner") -> TeamSpec:
    return replace(spec, prompts={**spec.prompts, role: spec.prompts[role].replace("e", "a", 1)})


def with_team(spec: TeamSpec) -> Mapping[str, TeamSpec]:
    return {**TEAMS, spec.team_id: spec}


def refused(database: Engine, teams: Mapping[str, TeamSpec], **options: Any) -> str:
    with pytest.raises(TeamConfigMismatchError) as caught, database.begin() as connection:
        register_teams(connection, teams, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture
def registered(database: Engine) -> Engine:
    """The database with every shipped team in it."""
    with database.begin() as connection:
        register_teams(connection, TEAMS)
    return database


def test_every_team_is_stored_with_its_hashes_and_its_whole_content(registered: Engine) -> None:
    with registered.connect() as connection:
        rows = {row.team_id: row for row in connection.execute(select(teams_table))}
    assert rows.keys() == TEAMS.keys()
    for team_id, spec in TEAMS.items():
        row = rows[team_id]
        assert (row.parent_id, row.layer, row.change, row.answers) == (
            spec.parent,
            spec.layer,
            spec.change,
            spec.answers,
        )
        assert row.changes == list(spec.changes)
        assert (row.prompt_bundle_hash, row.contract_hash) == (spec.prompt_bundle_hash, spec.contract_hash)
        assert row.spec["prompts"] == spec.prompts
        assert row.spec["tools"] == list(spec.tools)
        assert row.spec["source_hashes"] == spec.source_hashes
        assert row.registered_at is not None


def test_storing_the_same_teams_again_changes_nothing(registered: Engine) -> None:
    def rows() -> list[Any]:
        with registered.connect() as connection:
            return list(connection.execute(select(teams_table).order_by(teams_table.c.team_id)))

    before = rows()
    with registered.begin() as connection:
        register_teams(connection, load_teams(None))
    assert rows() == before


def test_only_the_teams_that_are_asked_for_and_their_ancestors_are_stored(database: Engine) -> None:
    with database.begin() as connection:
        register_teams(connection, TEAMS, only=["v3-prompt-fix"])
        assert stored_ids(connection) == {"v1-baseline", "v2-attach-path", "v3-prompt-fix"}


def test_a_team_without_its_parent_at_hand_can_be_stored(database: Engine) -> None:
    with database.begin() as connection:
        register_teams(connection, {V3.team_id: V3})
        assert stored_ids(connection) == {"v3-prompt-fix"}


@pytest.mark.parametrize("role", ["planner", "executor", "critic", "selector"])
def test_one_changed_letter_is_refused_with_the_prompt_that_changed(registered: Engine, role: str) -> None:
    changed = one_letter_changed(V3, role)
    message = refused(registered, with_team(changed))
    assert "team 'v3-prompt-fix'" in message
    assert f"prompt_bundle_hash {V3.prompt_bundle_hash[:12]} " in message
    assert changed.prompt_bundle_hash[:12] in message
    assert f"(differs: prompt.{role})" in message
    assert "give the changed team a new id" in message


@pytest.mark.parametrize(
    ("fields", "part"),
    [
        ({"tools": ("python_calc",)}, "tools"),
        ({"input": "question_only"}, "input"),
        ({"termination": "another"}, "termination"),
        ({"answers": "text"}, "answers"),
        ({"descriptions": {**V3.descriptions, "critic": "another"}}, "descriptions"),
        ({"allow_repeated_speaker": True}, "selector"),
        ({"max_selector_attempts": 4}, "selector"),
        ({"source_hashes": {**V3.source_hashes, "python_calc": "0" * 64}}, "source of python_calc"),
        ({"source_hashes": {**V3.source_hashes, V3.input: "0" * 64}}, "source of question_with_attachment"),
    ],
)
def test_any_other_change_of_content_is_refused_by_the_contract_hash(
    registered: Engine, fields: dict[str, Any], part: str
) -> None:
    message = refused(registered, with_team(replace(V3, **fields)))
    assert f"contract_hash {V3.contract_hash[:12]}" in message
    assert f"(differs: {part})" in message


def test_every_changed_team_is_named_at_once(registered: Engine) -> None:
    changed = {team_id: one_letter_changed(TEAMS[team_id]) for team_id in ("v1-baseline", "v6-verify-gate")}
    message = refused(registered, {**TEAMS, **changed})
    assert "'v1-baseline'" in message
    assert "'v6-verify-gate'" in message
    assert "'v3-prompt-fix'" not in message


def test_nothing_is_stored_when_one_team_has_changed(registered: Engine) -> None:
    new = replace(V3, team_id="a-new-one")
    with registered.connect() as connection:
        with pytest.raises(TeamConfigMismatchError):
            register_teams(connection, {"a-new-one": new, **with_team(one_letter_changed(V3))})
        assert "a-new-one" not in stored_ids(connection)


def test_a_changed_ancestor_stops_a_team_that_is_unchanged_itself(registered: Engine) -> None:
    message = refused(registered, with_team(one_letter_changed(TEAMS["v1-baseline"])), only=["v3-prompt-fix"])
    assert "'v1-baseline'" in message


def test_a_changed_team_that_is_not_asked_for_stops_nothing(registered: Engine) -> None:
    with registered.begin() as connection:
        register_teams(
            connection, with_team(one_letter_changed(TEAMS["v6-verify-gate"])), only=["v3-prompt-fix"]
        )


def test_the_changed_team_under_a_new_id_is_stored(registered: Engine) -> None:
    new = replace(one_letter_changed(V3), team_id="v3-prompt-fix-2")
    with registered.begin() as connection:
        register_teams(connection, {**TEAMS, new.team_id: new})
        assert new.team_id in stored_ids(connection)


def test_another_sentence_or_declaration_is_no_other_team(registered: Engine) -> None:
    with registered.begin() as connection:
        register_teams(connection, with_team(replace(V3, change="Better said.", changes=(), layer=None)))


@pytest.mark.parametrize("spec", [{}, {"prompts": 3}, {"prompts": {}, "team_id": "x"}])
def test_a_stored_form_that_cannot_be_read_is_still_a_mismatch(
    database: Engine, spec: dict[str, Any]
) -> None:
    row = {
        "team_id": V3.team_id,
        "changes": [],
        "change": "",
        "answers": "line",
        "prompt_bundle_hash": "0" * 64,
        "contract_hash": "1" * 64,
        "spec": spec,
    }
    with database.begin() as connection:
        connection.execute(insert(teams_table).values(row))
    assert "differs: in its stored form, which this version cannot read" in refused(
        database, {V3.team_id: V3}
    )


@pytest.mark.parametrize("column", ["prompt_bundle_hash", "contract_hash"])
def test_the_database_itself_refuses_another_hash(registered: Engine, column: str) -> None:
    changed = update(teams_table).where(teams_table.c.team_id == V3.team_id).values({column: "0" * 64})
    with pytest.raises(DBAPIError, match="give the changed team a new id"), registered.begin() as connection:
        connection.execute(changed)


@pytest.mark.parametrize("same", [True, False], ids=["same content", "other content"])
def test_two_processes_that_store_one_team_at_once_agree_or_one_is_told(database: Engine, same: bool) -> None:
    mine, theirs = V3, V3 if same else one_letter_changed(V3)
    errors: list[BaseException] = []
    started = threading.Event()

    def second() -> None:
        try:
            with database.begin() as connection:
                # sees no row, and then waits for the other's transaction to end
                started.set()
                register_teams(connection, {theirs.team_id: theirs})
        except TeamConfigMismatchError as error:
            errors.append(error)

    other = threading.Thread(target=second)
    with database.begin() as connection:
        register_teams(connection, {mine.team_id: mine})
        other.start()
        assert started.wait(30)
        other.join(0.5)
        assert other.is_alive(), "the second waits for the first"
    other.join(30)
    assert not other.is_alive()
    assert [type(error) for error in errors] == ([] if same else [TeamConfigMismatchError])
    with database.connect() as connection:
        row = connection.execute(select(teams_table)).one()
    assert row.prompt_bundle_hash == mine.prompt_bundle_hash


def test_a_process_whose_rival_gives_up_stores_the_team_itself(database: Engine) -> None:
    with database.connect() as connection:
        register_teams(connection, {V3.team_id: V3})
        connection.rollback()
    with database.begin() as connection:
        register_teams(connection, {V3.team_id: V3})
        assert stored_ids(connection) == {V3.team_id}


def test_a_team_that_was_removed_from_the_database_is_stored_again(registered: Engine) -> None:
    with registered.begin() as connection:
        connection.execute(delete(teams_table).where(teams_table.c.team_id == V3.team_id))
        register_teams(connection, TEAMS)
        assert V3.team_id in stored_ids(connection)
