"""What is said of runs whose traces are archived: where they are, and nothing that only looks as if."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import Connection, select, text

from eval_pipeline.db import tables
from eval_pipeline.db.accounting import accounting
from eval_pipeline.db.archived import archived_traces, refuse_archived
from eval_pipeline.db.checks import run_checks
from eval_pipeline.db.views import refresh_all, tool_summary
from eval_pipeline.export.archive import archive
from eval_pipeline.export.restore import restore
from eval_pipeline.reporting.reading import read_material
from eval_pipeline.reporting.transcripts import pack
from eval_pipeline.run_ids import Month
from eval_pipeline_tests.commands.running import command
from eval_pipeline_tests.conftest import Database
from eval_pipeline_tests.export.planted import everything, plant
from eval_pipeline_tests.played import V1, V5

pytest.importorskip("pyarrow")
CELL = f"{V5.key}|sample-cafe-food-total#1"


@pytest.fixture
def month(played: Database) -> Month:
    """The month in which the batches were played."""
    with played.engine.connect() as connection:
        found = Month.of_run(connection.scalars(select(tables.runs.c.run_id).limit(1)).one())
    assert found is not None
    return found


@pytest.fixture
def away(played: Database, month: Month, tmp_path: Path) -> Iterator[Path]:
    """The folder that the traces of all that was played are in, some time later."""
    archive(played.engine, month.next(), tmp_path / "archive", now=_after(month))
    yield tmp_path / "archive" / str(month)


def _after(month: Month) -> datetime:
    later = month.next()
    return datetime(later.year, later.month, 1, tzinfo=UTC)


def _figures(connection: Connection) -> dict[str, list[str]]:
    names = ("v_batch_totals", "mv_batch_summary", "mv_passk", "mv_tool_summary", "v_failure_signals", "v_run_metrics")
    return {
        name: sorted(repr(row) for row in connection.execute(text(f"select * from {name}")))  # noqa: S608
        for name in names
    }


def test_verdicts_figures_and_summaries_stay(played: Database, month: Month, tmp_path: Path) -> None:
    command("failures", "--batch", V1.key)
    with played.engine.connect() as connection:
        before, accounts = _figures(connection), accounting(connection, V5)
        rows = everything(connection)
    assert before["mv_tool_summary"]
    assert before["v_failure_signals"]
    archive(played.engine, month.next(), tmp_path, now=_after(month))
    refresh_all(played.engine)
    with played.engine.connect() as connection:
        assert _figures(connection) == before
        assert accounting(connection, V5) == accounts
        assert tool_summary(connection, V5)
    assert all(result.passed for result in run_checks(played.engine))
    restore(played.engine, tmp_path / str(month))
    refresh_all(played.engine)
    with played.engine.connect() as connection:
        assert everything(connection) == rows
        assert _figures(connection) == before
        assert accounting(connection, V5) == accounts
        assert connection.execute(select(tables.archived_accounting)).all() == []


def test_a_tool_summary_that_was_overtaken_is_renewed_before_its_traces_go(
    played: Database, month: Month, tmp_path: Path
) -> None:
    with played.engine.begin() as connection:
        before = tool_summary(connection, V5)
        connection.execute(text("delete from stored_tool_summary"))
        connection.execute(text("update runs set turns = turns + 1"))
    archive(played.engine, month.next(), tmp_path, now=_after(month))
    with played.engine.connect() as connection:
        assert tool_summary(connection, V5) == before


def test_trace_says_where_it_is(played: Database, month: Month, away: Path) -> None:
    said = command("trace", CELL)
    assert "FINAL" not in said.out
    assert f"the trace of 1 run is archived in {away}; eval-pipeline archive --restore {away} brings" in said.out
    told = command("trace", CELL, "--json").json
    assert told["archived"] == {"month": str(month), "folder": str(away)}
    assert (told["events"], told["run"]["final_answer"]) == ([], "89706.00")
    assert f"{month}: " in command("archive", "--restore", str(away)).out
    said = command("trace", CELL)
    assert "archived" not in said.out
    assert "the end: approve" in said.out
    assert command("trace", CELL, "--json").json["archived"] is None


def test_a_report_says_where_the_traces_are(played: Database, month: Month, away: Path) -> None:
    material = read_material(played.engine, V5)
    tries = [one for run in material.runs for one in run.tries]
    assert {one.archived for one in tries} == {f"{month} in {away}"}
    assert material.tools
    assert material.accounting.roles
    assert f"{month} in {away}" in pack(material.runs).json
    page = command("report", "--batch", V5.key, "--output", str(away.parent.parent / "reports"))
    assert page.error is None
    (written,) = (away.parent.parent / "reports").rglob("*.html")
    html = written.read_text(encoding="utf-8")
    assert "This trace is archived: " in html
    assert str(away) in html


def test_check_finds_nothing_wrong_with_archived_traces(played: Database, away: Path) -> None:
    assert [result.check.name for result in run_checks(played.engine) if not result.passed] == []


@pytest.mark.parametrize("form", ["jsonl", "otlp"])
def test_export_says_what_is_not_in_its_files(played: Database, away: Path, tmp_path: Path, form: str) -> None:
    said = command("export", "--batch", V5.key, "--format", form, "--output", str(tmp_path / "out"))
    assert f"{V5.key}: the traces of 5 runs are archived in {away}" in said.notes
    assert "5 rows" in said.out


@pytest.mark.parametrize("what", ["rescore", "ground"])
def test_what_is_scored_from_traces_is_not_scored_without(played: Database, away: Path, what: str) -> None:
    with played.engine.connect() as connection:
        before = connection.execute(select(tables.runs.c.run_id, tables.runs.c.success)).all()
    error = command(what, "--batch", V5.key).error
    assert error is not None
    assert error.startswith(f"{V5.key}: the traces of 5 runs are archived in {away}; eval-pipeline archive --restore")
    with played.engine.connect() as connection:
        assert connection.execute(select(tables.runs.c.run_id, tables.runs.c.success)).all() == before


def test_rules_do_not_look_at_traces_that_are_away(played: Database, month: Month, tmp_path: Path) -> None:
    found = command("failures", "--batch", V1.key, "--json").json
    flags = command("contamination", "--batch", V1.key, "--json").json
    archive(played.engine, month.next(), tmp_path, now=_after(month))
    assert command("failures", "--batch", V1.key, "--again", "--json").json == found
    assert command("contamination", "--batch", V1.key, "--again", "--json").json == flags


def test_a_batch_without_archived_traces_is_left_alone(played: Database) -> None:
    with played.engine.connect() as connection:
        assert archived_traces(connection, V5) == []
        refuse_archived(connection, V5)


def test_the_command_archives_lists_and_restores(database: Database, tmp_path: Path) -> None:
    with database.engine.begin() as connection:
        plant(connection)
        before = everything(connection)
    assert command("archive").out.startswith("no month is archived")
    assert command("archive", "--json").json == []
    kept = command("archive", "--before", "2025-02", "--to", str(tmp_path / "kept"), "--keep").out
    assert f"2025-01: 87 events, 9 model calls and 3 texts are also in {tmp_path}/kept/2025-01" in " ".join(
        kept.split()
    )
    told = command("archive", "--before", "2025-03", "--json").json
    assert [(one["month"], one["dropped"]) for one in told] == [("2025-01", True), ("2025-02", True)]
    home = Path(told[0]["folder"]).parent
    assert home.parts[-2:] == (".eval_pipeline", "archive")
    listed = command("archive").out
    assert "in files only" in listed
    assert [one["month"] for one in command("archive", "--json").json] == ["2025-01", "2025-02"]
    assert command("archive", "--before", "2025-03").out == "no month before 2025-03 has traces in the database\n"
    for one in told:
        assert "are back in the database" in command("archive", "--restore", one["folder"]).out
    assert "in files and in the database" in command("archive").out
    with database.engine.connect() as connection:
        assert everything(connection) == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--before", "soon"], "--before: 'soon' is not a month"),
        (["--before", "../../2025-01"], "is not a month"),
        (["--before", "2099-01"], "is in the future"),
        (["--keep"], "--before is missing"),
        (["--to", "x"], "--before is missing"),
        (["--restore", "x", "--before", "2025-01"], "--restore stands alone"),
        (["--restore", "/nowhere"], "cannot be read"),
    ],
)
def test_a_mistake_is_one_line(database: Database, arguments: list[str], said: str) -> None:
    outcome = command("archive", *arguments)
    assert said in (outcome.error or "")
