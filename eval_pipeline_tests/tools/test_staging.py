from __future__ import annotations

import hashlib
import multiprocessing
import os
import stat
import unicodedata
from pathlib import Path

import pytest

from eval_pipeline.benchmarks.base import Attachment
from eval_pipeline.errors import IdError, TaskDataError
from eval_pipeline.tools.staging import stage


def attachment(folder: Path, content: bytes = b"a,b\n1,2\n", name: str = "sales.csv") -> Attachment:
    source = folder / "source.bin"
    source.write_bytes(content)
    return Attachment(name, source, hashlib.sha256(content).hexdigest(), len(content))


def test_it_lies_alone_and_read_only_at_its_path(tmp_path: Path) -> None:
    staged = stage("task-1", attachment(tmp_path), tmp_path / "stage")

    assert staged == tmp_path / "stage" / "task-1" / "sales.csv"
    assert staged.read_bytes() == b"a,b\n1,2\n"
    assert stat.S_IMODE(staged.stat().st_mode) == 0o444
    assert [entry.name for entry in staged.parent.iterdir()] == ["sales.csv"]
    assert list((tmp_path / "stage" / ".incoming").iterdir()) == []


def test_the_path_is_absolute_and_the_same_in_every_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = attachment(tmp_path)

    first, second = stage("task-1", file, Path("stage")), stage("task-1", file, Path("stage"))

    assert first == second
    assert first.is_absolute()


def test_what_is_there_already_is_left_as_it_is(tmp_path: Path) -> None:
    file = attachment(tmp_path)
    before = stage("task-1", file, tmp_path / "stage").stat()

    after = stage("task-1", file, tmp_path / "stage").stat()

    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


@pytest.mark.parametrize("found", [b"a,b\n9,9\n", b"", b"a,b\n1,2\n3,4\n"])
def test_other_content_is_replaced(tmp_path: Path, found: bytes) -> None:
    file = attachment(tmp_path)
    staged = stage("task-1", file, tmp_path / "stage")
    staged.unlink()
    staged.write_bytes(found)

    assert stage("task-1", file, tmp_path / "stage").read_bytes() == b"a,b\n1,2\n"


def test_whatever_else_lies_there_is_removed(tmp_path: Path) -> None:
    old = stage("task-1", attachment(tmp_path, name="old.csv"), tmp_path / "stage")
    (old.parent / "folder").mkdir()
    (old.parent / "folder" / "key.json").write_text("42")
    (old.parent / "link").symlink_to(tmp_path)

    staged = stage("task-1", attachment(tmp_path, name="new.csv"), tmp_path / "stage")

    assert list(staged.parent.iterdir()) == [staged]
    assert (tmp_path / "source.bin").exists()


def test_a_link_in_its_place_is_replaced_and_not_followed(tmp_path: Path) -> None:
    file = attachment(tmp_path)
    target = tmp_path / "stage" / "task-1" / "sales.csv"
    target.parent.mkdir(parents=True)
    target.symlink_to(file.path)

    staged = stage("task-1", file, tmp_path / "stage")

    assert not staged.is_symlink()
    assert staged.read_bytes() == b"a,b\n1,2\n"


def test_a_folder_in_its_place_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "stage" / "task-1" / "sales.csv" / "x").mkdir(parents=True)

    assert stage("task-1", attachment(tmp_path), tmp_path / "stage").is_file()


def test_a_folder_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "stage").mkdir()
    (tmp_path / "stage" / "task-1").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(TaskDataError, match=r"task-1.* is a link"):
        stage("task-1", attachment(tmp_path), tmp_path / "stage")


@pytest.mark.parametrize(
    "name", ["../key.json", "/etc/passwd", "a/b", "..", ".", "", "a\0b", "a\nb", "\ud800", "a\\b", "가" * 86]
)
def test_a_name_that_is_not_a_plain_file_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(TaskDataError, match=r"task task-1: .* is no file name") as error:
        stage("task-1", attachment(tmp_path, name=name), tmp_path / "stage")

    assert "\n" not in str(error.value)
    str(error.value).encode()


@pytest.mark.parametrize("task_id", ["../task", "..", "", "a/b", ".incoming", "a b", "x\0"])
def test_a_task_id_that_leads_elsewhere_is_refused(tmp_path: Path, task_id: str) -> None:
    with pytest.raises(IdError):
        stage(task_id, attachment(tmp_path), tmp_path / "stage")


def test_a_hangul_name_is_composed(tmp_path: Path) -> None:
    name = unicodedata.normalize("NFD", "카페 매출.xlsx")

    assert stage("task-1", attachment(tmp_path, name=name), tmp_path / "stage").name == "카페 매출.xlsx"


def test_a_source_that_changed_since_it_was_loaded_is_refused(tmp_path: Path) -> None:
    file = attachment(tmp_path)
    file.path.write_bytes(b"edited!!")

    with pytest.raises(TaskDataError, match="has changed since the suite was loaded"):
        stage("task-1", file, tmp_path / "stage")
    assert list((tmp_path / "stage" / "task-1").iterdir()) == []
    assert list((tmp_path / "stage" / ".incoming").iterdir()) == []


def test_a_source_that_is_gone_is_one_line(tmp_path: Path) -> None:
    file = attachment(tmp_path)
    file.path.unlink()

    with pytest.raises(TaskDataError, match=r"task task-1: .*No such file") as error:
        stage("task-1", file, tmp_path / "stage")
    assert "\n" not in str(error.value)


def test_a_stage_folder_that_cannot_be_made_names_the_setting(tmp_path: Path) -> None:
    (tmp_path / "stage").write_text("a file")

    with pytest.raises(TaskDataError, match="check the file and EVAL_STAGE_DIR"):
        stage("task-1", attachment(tmp_path), tmp_path / "stage")


def test_processes_that_stage_one_task_at_once_all_see_it_whole(tmp_path: Path) -> None:
    content = os.urandom(300_000)
    source = attachment(tmp_path, content).path
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_stage, args=(source, content, tmp_path / "stage")) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)

    assert [worker.exitcode for worker in workers] == [0] * 4


def _stage(source: Path, content: bytes, stage_dir: Path) -> None:
    file = Attachment("sales.csv", source, hashlib.sha256(content).hexdigest(), len(content))
    for _ in range(50):
        assert stage("task-1", file, stage_dir).read_bytes() == content
