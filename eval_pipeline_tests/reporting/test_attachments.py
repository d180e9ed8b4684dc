"""Attachments are read whole, so that every line and cell of them can be kept out of a report."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import openpyxl
import pytest

from eval_pipeline.ids import TaskAttempt
from eval_pipeline.reporting import attachments as reading
from eval_pipeline.reporting.attachment_lines import read_lines
from eval_pipeline.reporting.attachments import AttachmentError, read_attachments
from eval_pipeline.reporting.material import Run
from eval_pipeline.reporting.protected import Attachments, protected_strings
from eval_pipeline.settings import Settings
from eval_pipeline.suites import LoadedSuite, Suite, load_suites, load_tasks
from eval_pipeline_tests.reporting.materials import material_of
from eval_pipeline_tests.reporting.test_rates import ended

pytestmark = pytest.mark.usefixtures("clean_environment")


def loaded(folder: Path, **files: str) -> LoadedSuite:
    """A suite of one task per file, named ``task-<name>``."""
    rows = [
        {"task_id": f"task-{name}", "Question": "?", "Level": 1, "Final answer": "7", "file_name": file}
        for name, file in files.items()
    ]
    (folder / "metadata.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    file = folder / "suites.yaml"
    file.write_text("suites: {mine: {benchmark: gaia, title: Mine, protect: [attachments]}}")
    settings = Settings(suites_file=file, gaia_dir=folder)
    suite: Suite = load_suites(settings)["mine"]
    assert suite.protect == ("attachments",)
    return load_tasks(suite, settings)


def runs_of(suite: LoadedSuite) -> list[Run]:
    return [
        replace(
            ended(task.task_id, True),
            cell=TaskAttempt(task.task_id, 1),
            file_name=task.attachment.file_name if task.attachment else None,
            file_sha256=task.attachment.sha256 if task.attachment else None,
        )
        for task in suite.tasks
    ]


def protected(found: Attachments) -> set[str]:
    return set(protected_strings((), material_of(), ("attachments",), found))


def test_cells_of_a_workbook_and_whole_rows_are_protected_beyond_what_a_tool_would_show(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    assert book.active is not None
    for number in range(3_000):
        book.active.append([f"부서 번호 {number:05}", number, "short", f"Employee Number {number}"])
    book.save(tmp_path / "staff.xlsx")
    suite = loaded(tmp_path, a="staff.xlsx")
    found = read_attachments(suite, runs_of(suite))
    assert found.unread == ()
    strings = protected(found)
    assert {"부서 번호 00000", "부서 번호 02999", "Employee Number 2999"} <= strings
    assert "부서 번호 00007 | 7 | short | Employee Number 7" in strings
    assert "short" not in strings
    assert not any(len(text) < 8 for text in strings)


def test_lines_and_cells_of_text_files_are_protected_in_any_encoding(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_bytes("이름;도시와 거리\n홍길동;서울특별시 종로구;12345678\n".encode("cp949"))
    (tmp_path / "notes.txt").write_text("A short diary line.\n--------------\n", encoding="utf-8")
    suite = loaded(tmp_path, a="table.csv", b="notes.txt")
    strings = protected(read_attachments(suite, runs_of(suite)))
    assert {"홍길동;서울특별시 종로구;12345678", "서울특별시 종로구", "12345678", "A short diary line."} <= strings
    # a ruler says nothing, and would be found everywhere
    assert not any(set(text) == {"-"} for text in strings)


def test_files_without_a_text_are_named_and_do_not_stop_the_others(tmp_path: Path) -> None:
    (tmp_path / "picture.png").write_bytes(b"\x89PNG")
    (tmp_path / "broken.xlsx").write_bytes(b"PK\x03\x04 no archive")
    (tmp_path / "good.txt").write_text("A line to be protected")
    suite = loaded(tmp_path, a="picture.png", b="broken.xlsx", c="good.txt")
    found = read_attachments(suite, runs_of(suite))
    assert found.unread == ("picture.png", "broken.xlsx")
    assert "A line to be protected" in protected(found)


def test_a_file_that_is_too_large_is_protected_as_far_as_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eval_pipeline.reporting.attachment_lines.MOST_CHARACTERS", 1_000)
    path = tmp_path / "long.txt"
    path.write_text("".join(f"line number {number}\n" for number in range(500)))
    lines, complete = read_lines(path)
    assert lines[0] == "line number 0"
    assert sum(map(len, lines)) <= 1_000
    assert not complete


def test_an_attachment_that_is_not_the_batchs_own_any_more_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("as it was")
    suite = loaded(tmp_path, a="notes.txt")
    (run,) = runs_of(suite)
    changed = replace(run, file_sha256=hashlib.sha256(b"something else").hexdigest())
    with pytest.raises(AttachmentError, match=r"suite 'mine': protect: the attachment of task task-a is not the one"):
        read_attachments(suite, [changed])


def test_reading_that_never_ends_is_refused_in_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "notes.txt").write_text("a line of some length")
    suite = loaded(tmp_path, a="notes.txt")
    monkeypatch.setattr(reading, "PATIENCE_S", 0.01)
    with pytest.raises(AttachmentError, match="took longer than 0 s"):
        read_attachments(suite, runs_of(suite))


def test_a_batch_without_attachments_starts_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "notes.txt").write_text("a line of some length")
    suite = loaded(tmp_path, a="notes.txt")
    monkeypatch.setattr(reading.subprocess, "run", None)
    runs = [replace(run, file_name=None, file_sha256=None) for run in runs_of(suite)]
    assert read_attachments(suite, runs) == Attachments()
