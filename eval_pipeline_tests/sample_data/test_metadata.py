"""The tasks as a person reads them: their format, what they cover, and that no file gives its answer away."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import unicodedata
import zipfile
from collections import Counter
from pathlib import Path

import pytest

from eval_pipeline.benchmarks.gaia import Gaia, score
from eval_pipeline.ids import check_id
from eval_pipeline_tests.sample_data.samples import BY_ID, ROWS, TASKS

GENERATOR = Path(__file__).parents[2] / "scripts" / "make_sample_files.py"
each_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: row["task_id"])


def hangul(text: str) -> bool:
    return any("HANGUL" in unicodedata.name(character, "") for character in text)


@each_row
def test_a_row_has_the_keys_and_types_of_the_published_file(row: dict[str, object]) -> None:
    assert list(row) == ["task_id", "Question", "Level", "Final answer", "file_name", "Annotator Metadata"]
    assert type(row["Level"]) is int
    for key in ("task_id", "Question", "Final answer", "file_name"):
        assert isinstance(row[key], str)
        assert row[key] == unicodedata.normalize("NFC", str(row[key]))
    annotator = row["Annotator Metadata"]
    assert isinstance(annotator, dict)
    assert list(annotator) == [
        "Steps", "Number of steps", "How long did this take?", "Tools", "Number of tools",
    ]  # fmt: skip
    assert all(isinstance(value, str) and value for value in annotator.values())
    assert len(annotator["Steps"].splitlines()) == int(annotator["Number of steps"])
    assert annotator["Tools"].count(". ") == int(annotator["Number of tools"])


@each_row
def test_a_task_id_says_that_it_is_a_sample_and_can_be_a_key(row: dict[str, str]) -> None:
    assert row["task_id"].startswith("sample-")
    assert row["task_id"] == row["task_id"].lower()
    assert check_id(row["task_id"], "task id", "metadata.jsonl") == row["task_id"]


@each_row
def test_a_gold_answer_is_right_by_its_own_rule(row: dict[str, str]) -> None:
    assert score(row["Final answer"], row["Final answer"]).success


@each_row
def test_neither_question_nor_file_name_gives_the_answer_away(row: dict[str, str]) -> None:
    if row["task_id"] != "sample-queue-last-person":  # its question has to name the four people
        assert row["Final answer"].lower() not in row["Question"].lower()
    assert row["Final answer"].lower() not in row["file_name"].lower()
    assert not row["file_name"] or row["file_name"] not in row["Question"], "v1 would not have to guess the path"


def test_the_loader_of_the_benchmark_takes_them_all_and_finds_every_attachment() -> None:
    tasks = Gaia().load(TASKS)
    assert [task.task_id for task in tasks] == [row["task_id"] for row in ROWS]
    for task in tasks:
        assert (task.attachment.file_name if task.attachment else "") == BY_ID[task.task_id]["file_name"]
    assert not any(task.requires_web for task in tasks)


def test_ids_are_unique_and_every_file_belongs_to_exactly_one_task() -> None:
    assert len(BY_ID) == len(ROWS) == 19
    named = Counter(row["file_name"] for row in ROWS if row["file_name"])
    assert set(named.values()) == {1}
    assert set(named) == {path.name for path in TASKS.iterdir()} - {"metadata.jsonl"}


def test_the_suite_covers_formats_languages_levels_and_kinds_of_answers() -> None:
    suffixes = Counter(Path(row["file_name"]).suffix for row in ROWS)
    assert suffixes == {
        "": 5, ".txt": 3, ".csv": 2,
        **dict.fromkeys([".xlsx", ".xls", ".docx", ".pptx", ".pdf", ".tsv", ".json", ".png", ".mp3"], 1),
    }  # fmt: skip
    assert {row["Level"] for row in ROWS} == {1, 2, 3}
    assert 6 <= sum(hangul(row["Question"]) for row in ROWS) <= len(ROWS) - 6
    answers = [row["Final answer"] for row in ROWS]
    assert any(answer.count(",") >= 2 and hangul(answer) for answer in answers)
    assert any(answer.count(",") >= 2 and "-" in answer for answer in answers)
    assert any(";" in answer for answer in answers)
    assert any(answer.isalpha() and answer.isascii() for answer in answers)


@pytest.mark.parametrize(
    "name",
    [
        "library_loans.csv",
        "river_levels.tsv",
        "bike_trips.json",
        "pump_station.txt",
        "garden_diary.txt",
        "ferries.csv",
    ],
)
def test_text_files_are_utf_8(name: str) -> None:
    assert (TASKS / name).read_bytes().decode("utf-8")


@pytest.mark.parametrize(
    "name",
    [
        "cafe_sales.xlsx", "museum_february.xls", "team_minutes.docx", "harbour_launch.pptx",
        "orchard_harvest.pdf", "shop_ledger.txt", "shapes.png", "recording.mp3",
    ],
)  # fmt: skip
def test_other_files_break_a_reader_of_utf_8(name: str) -> None:
    with pytest.raises(UnicodeDecodeError):
        (TASKS / name).read_bytes().decode("utf-8")


def members(data: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(data) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.mark.skipif(not GENERATOR.is_file(), reason="the generator of the attachments is in the checkout only")
@pytest.mark.skipif(importlib.util.find_spec("xlwt") is None, reason="the generator needs the test extra")
def test_the_generator_makes_the_shipped_attachments_and_the_same_bytes_each_time(tmp_path: Path) -> None:
    for folder in ("first", "second"):
        subprocess.run([sys.executable, str(GENERATOR), str(tmp_path / folder)], check=True, timeout=120)
    made = {path.name: path for path in (tmp_path / "first").iterdir()}
    assert set(made) == {row["file_name"] for row in ROWS} - {""}
    for name, path in made.items():
        assert path.read_bytes() == (tmp_path / "second" / name).read_bytes()
        # bytes of containers and styles depend on the versions of the libraries that write them
        if path.suffix in {".txt", ".csv", ".tsv", ".json", ".mp3"}:
            assert path.read_bytes() == (TASKS / name).read_bytes()
        elif path.suffix == ".xlsx":
            sheets = [f"xl/worksheets/sheet{number}.xml" for number in (1, 2)]
            assert [members(path)[sheet] for sheet in sheets] == [members(TASKS / name)[sheet] for sheet in sheets]
