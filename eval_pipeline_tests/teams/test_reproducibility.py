"""The reproducibility guard against a real database: what is stored under a team id never changes."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, create_engine, delete, insert, select, update
from sqlalchemy.exc import DBAPIError

from eval_pipeline.db.embedded import Server
from eval_pipeline.db.tables import teams as teams_table
from eval_pipeline.errors import TeamConfigMismatchError
from eval_pipeline.teams.registry import load_teams, register_teams
from eval_pipeline.teams.spec import TeamSpec
from eval_pipeline_tests.conftest import Database, fresh_database, own_tables

TEAMS = load_teams(None)
V3 = TEAMS["v3-prompt-fix"]


def stored_ids(connection: Connection) -> set[str]:
    return set(connection.execute(select(teams_table.c.team_id)).scalars())


def one_letter_changed(spec: TeamSpec, role: str = "planner") -> TeamSpec:
    return replace(spec, prompts={**spec.prompts, role: spec.prompts[role].replace("e", "a", 1)})


def with_team(spec: TeamSpec) -> Mapping[str, TeamSpec]:
    return {**TEAMS, spec.team_id: spec}


def refused(connection: Connection, teams: Mapping[str, TeamSpec], **options: Any) -> str:
    with pytest.raises(TeamConfigMismatchError) as caught:
        register_teams(connection, teams, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture(scope="module")
def measured(postgres: Server, migrated_template: str) -> Iterator[Engine]:
    """A database that holds every shipped team; tests leave it as it is."""
    with fresh_database(postgres, migrated_template) as url:
        engine = create_engine(own_tables(url))
        with engine.begin() as connection:
            register_teams(connection, TEAMS)
        yield engine
        engine.dispose()


@pytest.fixture
def registered(measured: Engine) -> Iterator[Connection]:
    """A transaction that sees every shipped team stored, and is rolled back."""
    with measured.connect() as connection:
        yield connection
        connection.rollback()


@pytest.fixture
def empty(registered: Connection) -> Connection:
    """A transaction that sees no team stored, and is rolled back."""
    registered.execute(delete(teams_table))
    return registered


def test_every_team_is_stored_with_its_hashes_and_its_whole_content(registered: Connection) -> None:
    rows = {row.team_id: row for row in registered.execute(select(teams_table))}
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


def test_storing_the_same_teams_again_changes_nothing(registered: Connection) -> None:
    query = select(teams_table).order_by(teams_table.c.team_id)
    before = registered.execute(query).all()
    register_teams(registered, load_teams(None))
    assert registered.execute(query).all() == before


def test_only_the_teams_that_are_asked_for_and_their_ancestors_are_stored(empty: Connection) -> None:
    register_teams(empty, TEAMS, only=["v3-prompt-fix"])
    assert stored_ids(empty) == {"v1-baseline", "v2-attach-path", "v3-prompt-fix"}


def test_a_team_without_its_parent_at_hand_can_be_stored(empty: Connection) -> None:
    register_teams(empty, {V3.team_id: V3})
    assert stored_ids(empty) == {"v3-prompt-fix"}


@pytest.mark.parametrize("role", ["planner", "executor", "critic", "selector"])
def test_one_changed_letter_is_refused_with_the_prompt_that_changed(registered: Connection, role: str) -> None:
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
    registered: Connection, fields: dict[str, Any], part: str
) -> None:
    message = refused(registered, with_team(replace(V3, **fields)))
    assert f"contract_hash {V3.contract_hash[:12]}" in message
    assert f"(differs: {part})" in message


def test_every_changed_team_is_named_at_once(registered: Connection) -> None:
    changed = {team_id: one_letter_changed(TEAMS[team_id]) for team_id in ("v1-baseline", "v6-verify-gate")}
    message = refused(registered, {**TEAMS, **changed})
    assert "'v1-baseline'" in message
    assert "'v6-verify-gate'" in message
    assert "'v3-prompt-fix'" not in message


def test_nothing_is_stored_when_one_team_has_changed(registered: Connection) -> None:
    new = replace(V3, team_id="a-new-one")
    refused(registered, {"a-new-one": new, **with_team(one_letter_changed(V3))})
    assert "a-new-one" not in stored_ids(registered)


def test_a_changed_ancestor_stops_a_team_that_is_unchanged_itself(registered: Connection) -> None:
    message = refused(registered, with_team(one_letter_changed(TEAMS["v1-baseline"])), only=["v3-prompt-fix"])
    assert "'v1-baseline'" in message


def test_a_changed_team_that_is_not_asked_for_stops_nothing(registered: Connection) -> None:
    register_teams(registered, with_team(one_letter_changed(TEAMS["v6-verify-gate"])), only=["v3-prompt-fix"])


def test_the_changed_team_under_a_new_id_is_stored(registered: Connection) -> None:
    new = replace(one_letter_changed(V3), team_id="v3-prompt-fix-2")
    register_teams(registered, {**TEAMS, new.team_id: new})
    assert new.team_id in stored_ids(registered)


def test_another_sentence_or_declaration_is_no_other_team(registered: Connection) -> None:
    register_teams(registered, with_team(replace(V3, change="Better said.", changes=(), layer=None)))


@pytest.mark.parametrize("spec", [{}, {"prompts": 3}, {"prompts": {}, "team_id": "x"}])
def test_a_stored_form_that_cannot_be_read_is_still_a_mismatch(empty: Connection, spec: dict[str, Any]) -> None:
    row = {
        "team_id": V3.team_id,
        "changes": [],
        "change": "",
        "answers": "line",
        "prompt_bundle_hash": "0" * 64,
        "contract_hash": "1" * 64,
        "spec": spec,
    }
    empty.execute(insert(teams_table).values(row))
    assert "differs: in its stored form, which this version cannot read" in refused(empty, {V3.team_id: V3})


@pytest.mark.parametrize("column", ["prompt_bundle_hash", "contract_hash"])
def test_the_database_itself_refuses_another_hash(registered: Connection, column: str) -> None:
    changed = update(teams_table).where(teams_table.c.team_id == V3.team_id).values({column: "0" * 64})
    with pytest.raises(DBAPIError, match="give the changed team a new id"):
        registered.execute(changed)


@pytest.mark.parametrize(
    ("theirs", "first_commits", "refusals"),
    [
        pytest.param(V3, True, 0, id="same content"),
        pytest.param(one_letter_changed(V3), True, 1, id="other content"),
        pytest.param(one_letter_changed(V3), False, 0, id="the first gives up"),
    ],
)
def test_of_two_processes_that_store_one_team_at_once_the_second_goes_by_what_the_first_has_stored(
    database: Database, theirs: TeamSpec, first_commits: bool, refusals: int
) -> None:
    errors: list[TeamConfigMismatchError] = []
    started = threading.Event()

    def second() -> None:
        try:
            with database.engine.begin() as connection:
                started.set()
                register_teams(connection, {theirs.team_id: theirs})
        except TeamConfigMismatchError as error:
            errors.append(error)

    other = threading.Thread(target=second)
    with database.engine.connect() as connection:
        register_teams(connection, {V3.team_id: V3})
        other.start()
        assert started.wait(30)
        other.join(0.5)
        assert other.is_alive(), "the second sees no row yet and waits for the first"
        if first_commits:
            connection.commit()
        else:
            connection.rollback()
    other.join(30)
    assert not other.is_alive()
    assert len(errors) == refusals
    with database.engine.connect() as connection:
        row = connection.execute(select(teams_table)).one()
    assert row.prompt_bundle_hash == (V3 if first_commits else theirs).prompt_bundle_hash


def test_a_team_that_was_removed_from_the_database_is_stored_again(registered: Connection) -> None:
    registered.execute(delete(teams_table).where(teams_table.c.team_id == V3.team_id))
    register_teams(registered, TEAMS)
    assert V3.team_id in stored_ids(registered)
