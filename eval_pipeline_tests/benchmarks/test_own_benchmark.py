"""An eleventh benchmark is one module and one suite entry."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from eval_pipeline.benchmarks.registry import benchmark
from eval_pipeline.errors import SuiteError
from eval_pipeline.execution.cells import CellEnd
from eval_pipeline.ids import TaskAttempt
from eval_pipeline.settings import load_settings
from eval_pipeline.suites import load_suites
from eval_pipeline_tests.conftest import Database
from eval_pipeline_tests.execution.launching import TILES, opened, run, tries

MODULE = """
from eval_pipeline.benchmarks.base import DEFAULTS, Score
from eval_pipeline.benchmarks.tasks_file import load_tasks_file


class Contains:
    name, answers, scorer_version, format_block = "contains", "line", "contains-1", ""
    thresholds, tools, needs_evidence, grounding_table = DEFAULTS, (), False, None

    def load(self, data_dir):
        return load_tasks_file(data_dir, self.name, frozenset({"gold"}), lambda row: (row.text("gold"), {}))

    def score(self, task, answer, thresholds=DEFAULTS):
        right = task.gold in (answer.final or "")
        return Score(right, answer.final is not None, reason="" if right else f"{task.gold} is not in it")
"""
TASKS = '{"task_id": "sample-floor-tiles", "question": "How many tiles?", "gold": "38"}\n'


@pytest.fixture
def own(database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module on the path and a suites.yaml that names it; returns the latter."""
    (tmp_path / "contains_benchmark.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "tasks.jsonl").write_text(TASKS, encoding="utf-8")
    suites = tmp_path / "suites.yaml"
    suites.write_text(
        "suites:\n  mine:\n    benchmark: contains_benchmark:Contains\n    title: Mine.\n    data: data\n",
        encoding="utf-8",
    )
    monkeypatch.setenv("EVAL_SUITES_FILE", str(suites))
    yield suites  # type: ignore[misc]
    sys.modules.pop("contains_benchmark", None)


async def test_one_module_and_one_entry_make_an_eleventh_benchmark(database: Database, own: Path) -> None:
    result = await run(opened(database, "first@v4-prompt-fix", suite="mine"), [TaskAttempt("sample-floor-tiles", 1)])
    assert [ended.end for ended in result.results] == [CellEnd.COMPLETED]
    (done,) = tries(database, TILES)
    assert (done.success, done.scorer_version) == (True, "contains-1")


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("no_such_module:Thing", "No module named"),
        ("json:NoSuchClass", "NoSuchClass"),
        ("json:JSONDecoder", "lacks name"),
        (":", "cannot be used"),
    ],
)
def test_a_place_that_holds_no_benchmark_is_one_line(own: Path, place: str, said: str) -> None:
    with pytest.raises(SuiteError, match=said) as refusal:
        benchmark(place)
    assert "\n" not in str(refusal.value)
    own.write_text(f"suites:\n  mine:\n    benchmark: '{place}'\n    title: Mine.\n    data: data\n", encoding="utf-8")
    with pytest.raises(SuiteError, match="mine"):
        load_suites(load_settings())


def test_an_own_benchmark_without_a_folder_says_what_to_write(own: Path, database: Database) -> None:
    own.write_text("suites:\n  mine:\n    benchmark: contains_benchmark:Contains\n    title: Mine.\n", encoding="utf-8")
    with pytest.raises(SuiteError, match="data"):
        opened(database, "first@v4-prompt-fix", suite="mine")
