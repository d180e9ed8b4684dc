"""A report is written whole or not at all, and what it must keep out never takes the results with it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import SecretStr

from eval_pipeline.db.views import refresh_all
from eval_pipeline.ids import BatchTeam
from eval_pipeline.reporting import publish as publishing
from eval_pipeline.reporting.attachments import AttachmentError
from eval_pipeline.reporting.leak_guard import LeakError, LeakGuard
from eval_pipeline.reporting.page import render
from eval_pipeline.reporting.publish import Report, ReportError, publish
from eval_pipeline.settings import Settings, load_settings
from eval_pipeline_tests.conftest import Database
from eval_pipeline_tests.reporting.batches import BASE, CHANGED, Batches, large_batch, rows_of
from eval_pipeline_tests.reporting.pages import Page

GOLD = "Lantern Pier"
KEY = "sk-Zq83jd92kk10XX"


@pytest.fixture
def batch(database: Database) -> Iterator[Batches]:
    """One completed run whose model wrote the gold answer."""
    with database.engine.connect() as connection:
        rows = Batches(connection)
        rows.teams()
        rows.task("t1", gold=GOLD, question="To which place has the launch moved?")
        rows.under(BASE)
        run_id = rows.ended(BASE, "t1", final_answer=GOLD)
        rows.said(run_id, "Plan", f"The notes say {GOLD}.\nFINAL ANSWER: {GOLD}")
        connection.commit()
        yield rows


def made(database: Database, folder: Path, settings: Settings | None = None, **more: object) -> Report:
    return publish(database.engine, settings or load_settings(), BASE, folder, **more)  # type: ignore[arg-type]


def suites(home: Path, fields: str = "") -> None:
    (home / "suites.yaml").write_text(
        f"suites: {{sample: {{benchmark: gaia, title: Sample, data: package{fields}}}}}", encoding="utf-8"
    )


def test_the_page_lies_under_its_conditions_name_and_is_the_only_file(
    batch: Batches, database: Database, tmp_path: Path
) -> None:
    report = made(database, tmp_path / "new" / "folder")
    assert report.path == tmp_path / "new" / "folder" / "b1@v1.html"
    assert [path.name for path in report.path.parent.iterdir()] == ["b1@v1.html"]
    assert report.path.stat().st_size == report.size_bytes
    assert GOLD in Page(report.path.read_bytes()).text
    assert report.replaced.total() == 0


def test_an_older_page_is_replaced(batch: Batches, database: Database, tmp_path: Path) -> None:
    (tmp_path / "b1@v1.html").write_text("old")
    made(database, tmp_path)
    assert GOLD in (tmp_path / "b1@v1.html").read_text()


def test_a_baselines_page_is_linked_once_it_is_there(batch: Batches, database: Database, tmp_path: Path) -> None:
    batch.under(CHANGED)
    batch.ended(CHANGED, "t1", success=False)
    batch.connection.commit()
    publish(database.engine, load_settings(), CHANGED, tmp_path)
    assert not Page((tmp_path / "b1@v2.html").read_bytes()).all("a", class_="before-link")
    made(database, tmp_path)
    publish(database.engine, load_settings(), CHANGED, tmp_path)
    (link,) = Page((tmp_path / "b1@v2.html").read_bytes()).all("a", class_="before-link")
    assert link["href"] == "b1@v1.html#run/t1/1"


def test_a_folder_that_cannot_be_written_is_one_line(batch: Batches, database: Database, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ReportError, match=r"cannot be written .*; check EVAL_REPORT_DIR, the results are kept"):
        made(database, tmp_path / "file")


class TestProtecting:
    def test_golds_are_kept_out_on_request_and_counted(
        self, batch: Batches, database: Database, tmp_path: Path
    ) -> None:
        report = made(database, tmp_path, protect=("golds",))
        page = report.path.read_text()
        assert GOLD not in page
        assert "[gold answer withheld]" in page
        # the answer and twice in a message; the gold answer itself is not there at all
        assert report.replaced == {"gold answer": 3}
        assert "Gold answer" not in Page(page.encode()).text
        assert all("g" not in run for run in Page(page.encode()).traces["runs"])

    def test_a_suite_can_ask_for_it(
        self, batch: Batches, database: Database, tmp_path: Path, clean_environment: Path
    ) -> None:
        suites(clean_environment, ", protect: [golds]")
        assert GOLD not in made(database, tmp_path).path.read_text()
        suites(clean_environment)
        assert GOLD in made(database, tmp_path).path.read_text()

    def test_of_a_suite_that_is_declared_no_more_the_golds_are_kept_out(
        self, batch: Batches, database: Database, tmp_path: Path, clean_environment: Path
    ) -> None:
        (clean_environment / "suites.yaml").write_text("suites: {other: {benchmark: gaia, title: T, data: package}}")
        assert GOLD not in made(database, tmp_path).path.read_text()

    def test_a_gold_answer_that_is_a_part_of_an_id_does_not_make_the_report_impossible(
        self, batch: Batches, database: Database, tmp_path: Path
    ) -> None:
        batch.task("t-completed-baseline", gold="baseline")
        batch.task("t-2", gold="completed")
        batch.task("t-3", gold="2026-11-30")
        for task_id in ("t-completed-baseline", "t-2", "t-3"):
            batch.ended(BASE, task_id, final_answer="no idea")
        batch.connection.commit()
        page = Page(made(database, tmp_path, protect=("golds",)).path.read_bytes())
        assert "t-completed-baseline#1" in page.rows

    def test_keys_are_always_kept_out(self, batch: Batches, database: Database, tmp_path: Path) -> None:
        run_id = batch.ended(BASE, "t1", 2)
        batch.said(run_id, f"Authorization: Bearer {KEY}")
        batch.connection.commit()
        settings = load_settings().model_copy(update={"llm_api_key": SecretStr(KEY)})
        report = made(database, tmp_path, settings)
        assert KEY not in report.path.read_text()
        assert report.replaced == {"key": 1}

    def test_attachments_that_cannot_be_read_any_more_stop_the_report_in_a_line(
        self, batch: Batches, database: Database, tmp_path: Path, clean_environment: Path
    ) -> None:
        suites(clean_environment, ", protect: [attachments]")
        batch.task("with-file", file_name="gone.xlsx", file_sha256="f" * 64, file_size=1)
        batch.ended(BASE, "with-file")
        batch.connection.commit()
        with pytest.raises(AttachmentError, match="suite 'sample': protect: the attachment of task with-file"):
            made(database, tmp_path)
        assert not list(tmp_path.glob("*.html"))


class TestLastCheck:
    """Leaks planted behind the replacement, in each of the ways that a mistake of ours could take."""

    def refused(self, database: Database, folder: Path, settings: Settings | None = None) -> str:
        (folder / "b1@v1.html").write_text("the page of yesterday")
        before = rows_of_all(database)
        with pytest.raises(LeakError) as caught:
            made(database, folder, settings, protect=("golds",))
        assert (folder / "b1@v1.html").read_text() == "the page of yesterday"
        assert {path.name for path in folder.iterdir()} - {"home"} == {"b1@v1.html"}
        assert rows_of_all(database) == before
        assert GOLD not in str(caught.value)
        return str(caught.value)

    def test_a_text_that_the_guard_did_not_reach(
        self, batch: Batches, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(LeakGuard, "replace", lambda self, value: value)
        assert "report b1@v1.html is not published" in self.refused(database, tmp_path)

    @pytest.mark.parametrize("written", [GOLD, "Lantern&#32;Pier", "Lantern%20Pier", "\\u004cantern Pier"])
    def test_a_page_that_says_it_whatever_it_is_given(
        self, batch: Batches, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str
    ) -> None:
        monkeypatch.setattr(publishing, "render", lambda *given: render(*given) + written.encode())
        assert "(gold answer: 1)" in self.refused(database, tmp_path)

    def test_a_summary_that_says_it(
        self, batch: Batches, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(publishing, "report_markdown", lambda material: f"answer: {GOLD}")
        self.refused(database, tmp_path)

    def test_a_key_that_the_page_itself_brings_in(
        self, batch: Batches, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings = load_settings().model_copy(update={"llm_api_key": SecretStr(KEY)})
        monkeypatch.setattr(publishing, "render", lambda *given: render(*given) + KEY.encode())
        assert "(key: 1)" in self.refused(database, tmp_path, settings)

    def test_a_key_that_is_a_part_of_an_id(self, batch: Batches, database: Database, tmp_path: Path) -> None:
        key = BatchTeam(f"night-{KEY}", "v1")
        batch.under(key)
        batch.connection.commit()
        settings = load_settings().model_copy(update={"llm_api_key": SecretStr(KEY)})
        with pytest.raises(LeakError, match="a part of an id has to be changed"):
            publish(database.engine, settings, key, tmp_path)

    def test_the_report_of_another_batch_can_be_made_all_the_same(
        self, batch: Batches, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        batch.under(CHANGED)
        batch.ended(CHANGED, "t1")
        batch.connection.commit()
        with monkeypatch.context() as broken:
            broken.setattr(LeakGuard, "replace", lambda self, value: value)
            self.refused(database, tmp_path)
        assert publish(database.engine, load_settings(), CHANGED, tmp_path, protect=("golds",)).path.is_file()


def rows_of_all(database: Database) -> dict[str, int]:
    with database.engine.connect() as connection:
        return {name: rows_of(connection, name) for name in ("runs", "events", "texts", "plan", "batches")}


def test_165_tasks_in_3_attempts_make_a_page_below_10_megabytes(database: Database, tmp_path: Path) -> None:
    with database.engine.begin() as connection:
        Batches(connection).teams()
        large_batch(connection, CHANGED, tasks=165, attempts=3)
    refresh_all(database.engine)
    begun = time.monotonic()
    report = publish(database.engine, load_settings(), CHANGED, tmp_path)
    assert time.monotonic() - begun < 120
    assert report.size_bytes < 10_000_000
    page = Page(report.path.read_bytes())
    assert len(page.rows) == 495
    traces = page.traces
    assert sum(len(one["E"]) for run in traces["runs"] for one in run["y"]) == 495 * 29
    # most of a text of the usual length is there
    assert sorted(map(len, traces["texts"]))[-100] >= 1_200


def test_a_page_is_made_from_what_it_is_given_and_from_nothing_else(
    batch: Batches, database: Database, tmp_path: Path
) -> None:
    report = made(database, tmp_path)
    note = publishing.GuardNote()
    assert render(report.material, note) == render(replace(report.material), note)
