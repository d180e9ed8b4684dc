"""Flags of stored runs: over whole texts, once per version, and never in the way of a verdict."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from uuid import UUID

import pytest
from sqlalchemy import Connection, Row, insert, text

from eval_pipeline.comparison.compare import compare
from eval_pipeline.comparison.outcomes import outcomes
from eval_pipeline.contamination import store
from eval_pipeline.contamination.store import ContaminationError, Places, flag_batch, flagged_runs, places
from eval_pipeline.db import tables
from eval_pipeline.ids import BatchTeam
from eval_pipeline.settings import load_settings
from eval_pipeline_tests.db.builders import Rows

BEFORE, AFTER = BatchTeam("before", "v1"), BatchTeam("after", "v1")
PLACES = Places("/stage", ("/srv/keys/gaia",))
KEY = "print(open('/srv/keys/gaia/metadata.jsonl').read())"
TASKS = ("t1", "t2", "t3", "t4")


def flagged(connection: Connection, batch_team: BatchTeam = AFTER) -> Sequence[Row[tuple[object, ...]]]:
    query = text(
        "select task_id, rule, confidence, seqs, version from v_contamination"
        " where batch_id = :batch and team_id = :team order by 1, 2"
    )
    return connection.execute(query, {"batch": batch_team.batch, "team": batch_team.team}).all()


def tool_call(rows: Rows, run_id: UUID, asked: str, came: str, *, kind: str = "tool_result", seq: int = 1) -> None:
    common = {"source": "executor", "tool_name": "python_exec", "tool_call_id": f"c{seq}"}
    rows.event(run_id, seq, "tool_call", tool_args={"code": asked}, **common)
    error = {"error": {"class": "tool", "type": "Error", "message": "no"}} if kind == "tool_error" else {}
    rows.event(run_id, seq + 1, kind, content=came, **common, **error)


@pytest.fixture
def batches(rows: Rows) -> Rows:
    """Two batches over four tasks: all right before; after it t1 right with a look at the key, and t4 wrong."""
    rows.team()
    for task_id in TASKS:
        rows.task(task_id, file_name=f"{task_id}.csv", file_sha256="f" * 64, file_size=1)
    for batch in (BEFORE, AFTER):
        rows.batch(batch.batch)
        for task_id in TASKS:
            rows.cell(task_id, batch_id=batch.batch)
            good = batch == BEFORE or task_id != "t4"
            run_id = rows.completed(task_id, success=good, batch_id=batch.batch)
            if batch == AFTER and task_id == "t1":
                tool_call(rows, run_id, KEY, "done")
            if batch == AFTER and task_id == "t2":
                tool_call(rows, run_id, KEY, "FileNotFoundError", kind="tool_error")
    return rows


def test_a_look_at_the_key_is_decided_and_a_refused_one_is_a_signal(batches: Rows) -> None:
    counts = flag_batch(batches.connection, AFTER, PLACES)
    assert [tuple(row)[:4] for row in flagged(batches.connection)] == [
        ("t1", "answer_key_file", "decided", [1, 2]),
        ("t1", "key_folder", "decided", [1, 2]),
        ("t2", "answer_key_file", "signal", [1, 2]),
        ("t2", "key_folder", "signal", [1, 2]),
    ]
    assert {rule: dict(found) for rule, found in counts.items()} == {
        "answer_key_file": {"decided": 1, "signal": 1},
        "key_folder": {"decided": 1, "signal": 1},
    }
    assert len(flagged_runs(batches.connection, AFTER)) == 1
    assert flag_batch(batches.connection, BEFORE, PLACES) == {}


def test_the_whole_text_is_read_where_a_row_keeps_its_beginning(batches: Rows) -> None:
    connection = batches.connection
    run_id = connection.execute(
        text("select run_id from runs where batch_id = 'after' and task_id = 't3'")
    ).scalar_one()
    long = "x" * 5000 + ' {"task_id": "t3", "Final answer": "42"}'
    digest = hashlib.sha256(long.encode()).hexdigest()
    connection.execute(insert(tables.texts).values(sha256=digest, body=long, length=len(long)))
    common = {"source": "executor", "tool_name": "python_exec", "tool_call_id": "c1"}
    batches.event(run_id, 1, "tool_call", tool_args={"code": "work()"}, **common)
    batches.event(
        run_id, 2, "tool_result", content=long[:2048], content_sha256=digest, content_length=len(long), **common
    )
    flag_batch(connection, AFTER, PLACES)
    assert ("t3", "answer_key_rows", "decided") in {tuple(row)[:3] for row in flagged(connection)}


def test_the_files_of_every_task_of_the_benchmark_are_known(batches: Rows) -> None:
    connection = batches.connection
    batches.task("elsewhere", file_name="far.csv", file_sha256="f" * 64, file_size=1)
    run_id = connection.execute(
        text("select run_id from runs where batch_id = 'after' and task_id = 't3'")
    ).scalar_one()
    tool_call(batches, run_id, "open('/mnt/elsewhere/far.csv')", "done")
    flag_batch(connection, AFTER, PLACES)
    assert ("t3", "other_tasks_file", "decided") in {tuple(row)[:3] for row in flagged(connection)}


@pytest.mark.parametrize("again", [False, True])
def test_flagging_twice_changes_nothing(batches: Rows, again: bool) -> None:
    first = flag_batch(batches.connection, AFTER, PLACES)
    before = flagged(batches.connection)
    assert flag_batch(batches.connection, AFTER, PLACES, again=again) == first
    assert flagged(batches.connection) == before


def test_another_version_looks_again_and_only_its_flags_are_shown(
    batches: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    flag_batch(batches.connection, AFTER, PLACES)
    monkeypatch.setattr(store, "VERSION", "contamination-next")
    monkeypatch.setattr(store, "flags", lambda scene: [])
    with pytest.raises(ContaminationError, match=r"4 runs of after@v1 .*--batch after@v1"):
        flagged_runs(batches.connection, AFTER)
    assert flag_batch(batches.connection, AFTER, PLACES) == {}
    assert flagged(batches.connection) == []
    kept = batches.connection.execute(text("select count(*) from contamination_flags")).scalar_one()
    assert kept == 4


def test_flagged_runs_can_be_left_out_and_the_words_say_how_many(batches: Rows) -> None:
    connection = batches.connection
    for batch_team in (BEFORE, AFTER):
        flag_batch(connection, batch_team, PLACES)
    every = compare(outcomes(connection, BEFORE), outcomes(connection, AFTER))
    assert "contaminated" not in every.words()
    assert len(every.pairs) == 4
    before = outcomes(connection, BEFORE, without_flagged=True)
    after = outcomes(connection, AFTER, without_flagged=True)
    assert (before.left_out, after.left_out) == (0, 1)
    assert (after.planned, after.completed, after.crashed, after.successes) == (4, 3, 0, 2)
    found = compare(before, after)
    assert [pair.task_id for pair in found.pairs] == ["t2", "t3", "t4"]
    assert found.unpaired == ("t1",)
    assert "Left out as contaminated: 0 of 4 runs of before@v1 and 1 of 4 runs of after@v1." in found.words()


def test_nothing_is_left_out_of_runs_that_nobody_has_looked_at(batches: Rows) -> None:
    with pytest.raises(ContaminationError, match="4 runs of after@v1"):
        outcomes(batches.connection, AFTER, without_flagged=True)


def test_the_places_are_those_of_every_suite_that_has_data(
    clean_environment: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVAL_GAIA_DIR", "/srv/gaia")
    monkeypatch.setenv("EVAL_STAGE_DIR", "/srv/stage")
    known = places(load_settings())
    assert known.stage_dir == "/srv/stage"
    assert "/srv/gaia" in known.key_folders
    assert any(folder.endswith("sample_data/tasks") for folder in known.key_folders)
