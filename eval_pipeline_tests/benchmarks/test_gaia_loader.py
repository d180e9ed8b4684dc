"""GAIA's files: what is read, what is left out, and what is refused in one line."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import unicodedata
from collections.abc import Mapping
from pathlib import Path

import pytest

from eval_pipeline.benchmarks.attachments import check_file_name
from eval_pipeline.benchmarks.gaia import Gaia
from eval_pipeline.benchmarks.rows import MAX_LINE_BYTES
from eval_pipeline.errors import EvalPipelineError, TaskDataError

ROW: Mapping[str, object] = {
    "task_id": "c61d22de-5f6c-4958-a7f6-5e9707bd3466",
    "Question": "How many?",
    "Level": 1,
    "Final answer": "7",
    "file_name": "",
    "Annotator Metadata": {"Steps": "1. Count", "Tools": "None"},
}


def row(**changes: object) -> dict[str, object]:
    """A good row with other values; a value of ``...`` takes the field away."""
    fields = {name.replace("_answer", " answer").replace("Annotator_", "Annotator "): v for name, v in changes.items()}
    return {name: value for name, value in {**ROW, **fields}.items() if value is not ...}


def write(folder: Path, *rows: object, name: str = "metadata.jsonl") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("".join(json.dumps(each) + "\n" for each in rows), encoding="utf-8")
    return folder


def error_of(folder: Path) -> str:
    with pytest.raises(EvalPipelineError) as caught:
        Gaia().load(folder)
    message = str(caught.value)
    assert message.isprintable()
    assert len(message) < 800
    return message


def test_a_row_becomes_a_task_with_its_texts_untouched(tmp_path: Path) -> None:
    question = "  몇 명?\n둘째 줄  "
    [task] = Gaia().load(write(tmp_path, row(Question=question, Level="3", Final_answer=" 1,234 ")))
    assert (task.task_id, task.benchmark, task.level) == (ROW["task_id"], "gaia", 3)
    assert (task.question, task.gold) == (question, " 1,234 ")
    assert (task.attachment, task.requires_web, task.extra) == (None, False, {})


def test_tasks_come_in_the_order_of_the_file(tmp_path: Path) -> None:
    ids = ["b", "a", "c"]
    assert [task.task_id for task in Gaia().load(write(tmp_path, *(row(task_id=i) for i in ids)))] == ids


@pytest.mark.parametrize("layout", [".", "validation", "2023/validation"])
def test_the_usual_layouts_are_found(tmp_path: Path, layout: str) -> None:
    write(tmp_path / layout, row(file_name="a.txt"))
    (tmp_path / layout / "a.txt").write_text("x")
    [task] = Gaia().load(tmp_path)
    assert task.attachment is not None
    assert task.attachment.path == (tmp_path / layout / "a.txt").resolve()


def test_byte_order_mark_blank_lines_crlf_and_a_missing_last_newline_are_no_trouble(tmp_path: Path) -> None:
    lines = [json.dumps(row(task_id=name)) for name in ("a", "b")]
    (tmp_path / "metadata.jsonl").write_bytes(("\ufeff\r\n" + "\r\n  \r\n".join(lines)).encode())
    assert [task.task_id for task in Gaia().load(tmp_path)] == ["a", "b"]


def test_unknown_fields_are_passed_over_and_absent_ones_may_be_null(tmp_path: Path) -> None:
    [task] = Gaia().load(write(tmp_path, row(file_name=None, Annotator_Metadata=None, file_path=None, more=[1])))
    assert (task.attachment, task.requires_web) == (None, False)


class TestAttachments:
    def test_it_is_hashed_and_its_bytes_are_part_of_the_tasks_hash(self, tmp_path: Path) -> None:
        write(tmp_path, row(file_name="a.bin"))
        hashes = set()
        for content in (b"\0" * 3_000_000, b"\1"):
            (tmp_path / "a.bin").write_bytes(content)
            [task] = Gaia().load(tmp_path)
            assert task.attachment is not None
            assert (task.attachment.file_name, task.attachment.size) == ("a.bin", len(content))
            assert task.attachment.sha256 == hashlib.sha256(content).hexdigest()
            hashes.add(task.content_hash)
        assert len(hashes) == 2

    @pytest.mark.parametrize("on_disk", ["NFC", "NFD"])
    @pytest.mark.parametrize("in_file", ["NFC", "NFD"])
    def test_a_hangul_name_is_found_in_either_form_and_kept_composed(
        self, tmp_path: Path, on_disk: str, in_file: str
    ) -> None:
        name = "매출 보고서.xlsx"
        (tmp_path / unicodedata.normalize(on_disk, name)).write_bytes(b"x")  # type: ignore[arg-type]
        [task] = Gaia().load(write(tmp_path, row(file_name=unicodedata.normalize(in_file, name))))  # type: ignore[arg-type]
        assert task.attachment is not None
        assert task.attachment.file_name == name

    def test_a_newer_dumps_file_path_counts_from_the_data_folder(self, tmp_path: Path) -> None:
        (tmp_path / "files").mkdir()
        (tmp_path / "files" / "ab12.csv").write_text("x")
        write(
            tmp_path / "2023" / "validation",
            row(task_id="a", file_name="sales.csv", file_path="files/ab12.csv"),
            row(task_id="b", file_path="files/ab12.csv"),
        )
        names = [task.attachment.file_name for task in Gaia().load(tmp_path) if task.attachment]
        assert names == ["sales.csv", "ab12.csv"]

    def test_a_link_inside_the_folder_is_followed(self, tmp_path: Path) -> None:
        (tmp_path / "real.txt").write_text("x")
        (tmp_path / "link.txt").symlink_to("real.txt")
        [task] = Gaia().load(write(tmp_path, row(file_name="link.txt")))
        assert task.attachment is not None
        assert task.attachment.path == (tmp_path / "real.txt").resolve()

    @pytest.mark.parametrize(
        "name",
        ["../secret.txt", "/etc/hostname", "a/b.txt", "a\\b.txt", "..", ".", "a\nb.txt", "a\0b", "\x1b[1m", "x" * 256],
    )
    def test_a_name_that_is_no_plain_file_name_is_refused(self, tmp_path: Path, name: str) -> None:
        (tmp_path / "secret.txt").write_text("x")
        message = error_of(write(tmp_path / "data", row(file_name=name)))
        assert "metadata.jsonl line 1: field 'file_name' " in message

    @pytest.mark.parametrize("path", ["../secret.txt", "/etc/hostname", "a/../../secret.txt", "a\\b"])
    def test_a_file_path_that_leaves_the_folder_is_refused(self, tmp_path: Path, path: str) -> None:
        (tmp_path / "secret.txt").write_text("x")
        message = error_of(write(tmp_path / "data", row(file_path=path)))
        assert "line 1: field 'file_path' is " in message

    def test_a_link_that_leaves_the_folder_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "secret.txt").write_text("x")
        data = write(tmp_path / "data", row(file_name="a.txt"))
        (data / "a.txt").symlink_to("../secret.txt")
        assert "'a.txt', which is a link that leaves" in error_of(data)

    def test_a_linked_folder_that_leads_outside_is_refused(self, tmp_path: Path) -> None:
        write(tmp_path / "outside", name="a.txt")
        (tmp_path / "outside" / "a.txt").write_text("x")
        data = write(tmp_path / "data", row(file_path="sub/a.txt"))
        (data / "sub").symlink_to("../outside")
        assert "is a link that leaves" in error_of(data)

    def test_a_file_that_is_missing_empty_or_no_regular_file_is_refused(self, tmp_path: Path) -> None:
        data = write(tmp_path, row(file_name="a.txt"))
        place = data / "a.txt"
        assert f"field 'file_name' names 'a.txt', which is not in {data}; put the file there" in error_of(data)
        place.touch()
        assert "'a.txt', which is empty" in error_of(data)
        place.unlink()
        place.mkdir()
        assert "'a.txt', which is not a regular file" in error_of(data)
        place.rmdir()
        os.mkfifo(place)
        assert "'a.txt', which is not a regular file" in error_of(data)
        place.unlink()
        place.symlink_to("a.txt")
        assert "'a.txt', which cannot be read" in error_of(data)
        place.unlink()
        place.symlink_to("nowhere")
        assert "'a.txt', which cannot be read" in error_of(data)

    def test_a_long_name_counts_in_bytes(self) -> None:
        assert check_file_name("가" * 85, "here") == "가" * 85
        with pytest.raises(TaskDataError, match="longer than 255 bytes"):
            check_file_name("가" * 86, "here")


class TestWeb:
    @pytest.mark.parametrize(
        "tools",
        [
            "1. Web browser",
            "1. Search engine\n2. Calculator",
            "web browser, python",
            "Access to YouTube",
            "Google Maps",
            "Google search",
            "Wikipedia",
            "A video site",
            "Internet access",
            "https://arxiv.org",
            "Wayback Machine",
        ],
    )
    def test_a_tool_of_the_web_makes_a_web_task(self, tmp_path: Path, tools: str) -> None:
        [task] = Gaia().load(write(tmp_path, row(Annotator_Metadata={"Tools": tools})))
        assert task.requires_web

    @pytest.mark.parametrize(
        "tools",
        [
            "",
            "None",
            "1. Calculator",
            "Python",
            "Microsoft Excel / Google Sheets",
            "PDF viewer",
            "Video recognition",
            "Cobweb",
        ],
    )
    def test_other_tools_do_not(self, tmp_path: Path, tools: str) -> None:
        [task] = Gaia().load(write(tmp_path, row(Annotator_Metadata={"Tools": tools})))
        assert not task.requires_web

    @pytest.mark.parametrize("stated", [True, False])
    def test_what_the_data_say_themselves_counts_more(self, tmp_path: Path, stated: bool) -> None:
        tools = {"Tools": "None" if stated else "Web browser"}
        [task] = Gaia().load(write(tmp_path, row(requires_web=stated, Annotator_Metadata=tools)))
        assert task.requires_web is stated

    def test_it_is_no_part_of_the_tasks_hash(self, tmp_path: Path) -> None:
        [one] = Gaia().load(write(tmp_path, row(requires_web=True)))
        [other] = Gaia().load(write(tmp_path, row(requires_web=False)))
        assert one.content_hash == other.content_hash


class TestRowsWithoutAnswer:
    def test_they_are_left_out_with_a_warning(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        rows = [row(task_id="a", Final_answer="?"), row(task_id="b"), row(task_id="c", Final_answer=" ? ")]
        with caplog.at_level(logging.WARNING):
            tasks = Gaia().load(write(tmp_path, *rows))
        assert [task.task_id for task in tasks] == ["b"]
        assert "2 rows without an answer left out" in caplog.text

    def test_the_greeting_row_is_left_out_whatever_it_holds(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        with caplog.at_level(logging.WARNING):
            tasks = Gaia().load(write(tmp_path, {"task_id": "0-0-0-0-0", "Level": None}, row()))
        assert len(tasks) == 1
        assert caplog.text == ""

    def test_a_file_of_nothing_else_is_refused_as_the_test_split(self, tmp_path: Path) -> None:
        rows = [row(task_id=name, Final_answer="?") for name in ("0-0-0-0-0", "a", "b")]
        assert "is the test split" in error_of(write(tmp_path, *rows))


class TestRefusedRows:
    @pytest.mark.parametrize(
        ("changes", "told"),
        [
            ({"task_id": ...}, "field 'task_id' is missing"),
            ({"task_id": 7}, "field 'task_id' is 7, not a text"),
            ({"task_id": "a b"}, "task id 'a b' cannot be used"),
            ({"task_id": "a|b"}, "task id 'a|b' cannot be used"),
            ({"Question": ...}, "field 'Question' is missing"),
            ({"Question": None}, "field 'Question' is None, not a text"),
            ({"Question": " \n"}, "field 'Question' is empty"),
            ({"Question": "a\0b"}, "field 'Question' holds a NUL character"),
            ({"Question": "a\ud800"}, "field 'Question' holds half of a surrogate pair"),
            ({"Level": ...}, "field 'Level' is missing"),
            ({"Level": 0}, "field 'Level' is 0; write 1, 2 or 3"),
            ({"Level": "4"}, "field 'Level' is '4'"),
            ({"Level": True}, "field 'Level' is True"),
            ({"Level": 1.0}, "field 'Level' is 1.0"),
            ({"Level": [1]}, "field 'Level' is [1]"),
            ({"Final_answer": ...}, "field 'Final answer' is missing"),
            ({"Final_answer": ""}, "field 'Final answer' is empty"),
            ({"Final_answer": 7}, "field 'Final answer' is 7, not a text; write it in quotes"),
            ({"file_name": ["a"]}, "field 'file_name' is ['a'], not a text"),
            ({"file_path": 1}, "field 'file_path' is 1, not a text"),
            ({"requires_web": "yes"}, "field 'requires_web' is 'yes'; write true or false"),
            ({"Annotator_Metadata": "Tools: web"}, "field 'Annotator Metadata' is 'Tools: web'"),
            ({"Annotator_Metadata": {"Tools": 1}}, "'Annotator Metadata': field 'Tools' is 1, not a text"),
        ],
    )
    def test_a_wrong_field_is_one_line_with_file_line_field_and_value(
        self, tmp_path: Path, changes: dict[str, object], told: str
    ) -> None:
        message = error_of(write(tmp_path, row(task_id="first"), row(**changes)))
        assert message.startswith(f"{tmp_path / 'metadata.jsonl'} line 2: ")
        assert told in message

    def test_an_id_that_stands_twice_names_both_lines(self, tmp_path: Path) -> None:
        message = error_of(write(tmp_path, row(), row(task_id="b"), row()))
        assert "metadata.jsonl line 3: " in message
        assert "metadata.jsonl line 1;" in message

    @pytest.mark.parametrize(
        ("line", "told"),
        [
            (b"[1]", "is [1], not an object"),
            (b"null", "is None, not an object"),
            (b"{", "is not valid JSON"),
            (b"{'a': 1}", "is not valid JSON"),
            (b'{"a": 1} {"b": 2}', "is not valid JSON"),
            (b'{"a": 1, "a": 2}', "the key 'a' stands twice"),
            (b'{"a": NaN}', "NaN is no JSON number"),
            (b'{"a": 1e999}', "the number '1e999' is too large"),
            (b'{"a": ' + b"9" * 5000 + b"}", "cannot be used"),
            (b'{"a": "\xff"}', "byte 7 of the line is not UTF-8"),
            (b"[" * 200_000, "is nested too deep"),
            (b'{"a": "' + b"x" * MAX_LINE_BYTES + b'"}', "is longer than 16 MiB"),
        ],
        ids=lambda value: value[:12] if isinstance(value, bytes) else "",
    )
    def test_a_line_that_is_no_object_is_one_line(self, tmp_path: Path, line: bytes, told: str) -> None:
        (tmp_path / "metadata.jsonl").write_bytes(json.dumps(row()).encode() + b"\n\n" + line + b"\n")
        message = error_of(tmp_path)
        assert "metadata.jsonl line 3: " in message
        assert told in message

    def test_a_file_in_utf16_is_one_line(self, tmp_path: Path) -> None:
        (tmp_path / "metadata.jsonl").write_bytes(json.dumps(row()).encode("utf-16"))
        assert "line 1: byte 0 of the line is not UTF-8; save the file as UTF-8" in error_of(tmp_path)


class TestRefusedFolders:
    def test_a_folder_that_is_missing_or_a_file(self, tmp_path: Path) -> None:
        assert "is not a folder" in error_of(tmp_path / "nowhere")
        assert "is not a folder" in error_of(write(tmp_path, row()) / "metadata.jsonl")

    def test_a_folder_without_metadata_says_where_was_looked(self, tmp_path: Path) -> None:
        assert "looked in ., validation, 2023/validation" in error_of(tmp_path)

    def test_a_folder_with_parquet_alone_says_what_to_do(self, tmp_path: Path) -> None:
        (tmp_path / "metadata.parquet").touch()
        assert "metadata.parquet but no metadata.jsonl; write its rows as JSON lines" in error_of(tmp_path)

    def test_an_empty_file(self, tmp_path: Path) -> None:
        assert "holds no task" in error_of(write(tmp_path))

    def test_metadata_that_is_no_file(self, tmp_path: Path) -> None:
        (tmp_path / "metadata.jsonl").mkdir()
        assert "metadata.jsonl: is not a file" in error_of(tmp_path)
