"""Suites: how they are declared, what is refused in one line, and which tasks they select."""

from __future__ import annotations

import json
import time
from pathlib import Path
from types import MappingProxyType

import pytest

from eval_pipeline.benchmarks.base import Task
from eval_pipeline.benchmarks.gaia import Gaia
from eval_pipeline.benchmarks.registry import BENCHMARKS
from eval_pipeline.errors import SuiteError, TaskDataError
from eval_pipeline.home import packaged
from eval_pipeline.settings import Settings, load_settings
from eval_pipeline.suites import PACKAGE, LoadedSuite, Suite, content_hash, load_suites, load_tasks

pytestmark = pytest.mark.usefixtures("clean_environment")


def gaia_row(task_id: str, level: int = 1, web: bool = False, answer: str = "7") -> dict[str, object]:
    return {"task_id": task_id, "Question": "?", "Level": level, "Final answer": answer, "requires_web": web}


def data(folder: Path, *rows: dict[str, object]) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "metadata.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Five tasks: of level 1, 2, 3, and one each of level 1 and 2 that need the web."""
    return data(
        tmp_path / "data",
        gaia_row("one"),
        gaia_row("one-web", web=True),
        gaia_row("two", 2),
        gaia_row("two-web", 2, web=True),
        gaia_row("three", 3),
    )


def settings_with(tmp_path: Path, text: str | bytes, **more: object) -> Settings:
    path = tmp_path / "mine.yaml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return Settings.model_validate({"suites_file": path, **more})


def suites_of(tmp_path: Path, text: str | bytes) -> dict[str, Suite]:
    return load_suites(settings_with(tmp_path, text))


def suite_with(tmp_path: Path, fields: str) -> Suite:
    return suites_of(tmp_path, f"suites:\n  mine: {{benchmark: gaia, title: Mine, {fields}}}\n")["mine"]


def load(tmp_path: Path, folder: Path, fields: str = "") -> LoadedSuite:
    return load_tasks(suite_with(tmp_path, fields), Settings(gaia_dir=folder))


def ids_of(loaded: LoadedSuite) -> list[str]:
    return [task.task_id for task in loaded.tasks]


def error_of(tmp_path: Path, text: str | bytes) -> str:
    begin = time.perf_counter()
    with pytest.raises(SuiteError) as caught:
        suites_of(tmp_path, text)
    assert time.perf_counter() - begin < 20
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / 'mine.yaml'}: ")
    assert message.isprintable()
    assert len(message) < 800
    return message


class TestShippedSuites:
    def test_the_declared_suites_are_offered_in_order(self) -> None:
        suites = load_suites(load_settings())
        gaia, others = list(suites)[:3], list(suites)[3:]
        assert gaia == ["sample", "gaia", "gaia_l1"]
        assert {suites[name].benchmark for name in gaia} == {"gaia"}
        # every other benchmark has a suite of sample tasks and one that reads its own folder
        named = set(BENCHMARKS) - {"gaia"}
        assert sorted(others) == sorted([*named, *(f"sample_{name}" for name in named)])
        for name in others:
            assert suites[name].benchmark == name.removeprefix("sample_")
            assert suites[name].data == (PACKAGE if name.startswith("sample_") else None)
        assert all(suite.name == name and suite.attempts == 1 for name, suite in suites.items())
        assert (suites["gaia_l1"].levels, suites["gaia_l1"].exclude_web) == ((1,), True)

    def test_the_sample_suite_loads_without_any_setting(self) -> None:
        sample = load_suites(load_settings())["sample"]
        assert sample.data == PACKAGE
        loaded = load_tasks(sample, load_settings())
        assert len(loaded.tasks) > 5
        assert not any(task.requires_web for task in loaded.tasks)

    @pytest.mark.parametrize("name", ["gaia", "gaia_l1"])
    def test_a_suite_without_its_data_folder_says_what_to_set(self, name: str) -> None:
        with pytest.raises(SuiteError) as caught:
            load_tasks(load_suites(load_settings())[name], load_settings())
        assert str(caught.value) == f"suite '{name}' has no data; set EVAL_GAIA_DIR to the folder with its tasks"

    def test_they_select_from_the_folder_that_the_setting_names(self, folder: Path) -> None:
        settings = Settings(gaia_dir=folder)
        suites = load_suites(settings)
        assert ids_of(load_tasks(suites["gaia"], settings)) == ["one", "one-web", "two", "two-web", "three"]
        assert ids_of(load_tasks(suites["gaia_l1"], settings)) == ["one"]

    def test_a_data_folder_that_is_gone_is_one_line(self, tmp_path: Path) -> None:
        settings = Settings(gaia_dir=tmp_path / "gone")
        with pytest.raises(TaskDataError, match="gone: is not a folder"):
            load_tasks(load_suites(settings)["gaia"], settings)


class TestWhichFile:
    text = "suites: {{{name}: {{benchmark: gaia, title: T}}}}"

    def test_the_setting_comes_before_the_home_folder_and_that_before_the_packaged_file(
        self, clean_environment: Path, tmp_path: Path
    ) -> None:
        assert list(load_suites(Settings())) == list(load_suites(Settings(suites_file=packaged("suites.yaml"))))
        (clean_environment / "suites.yaml").write_text(self.text.format(name="at_home"))
        assert list(load_suites(Settings())) == ["at_home"]
        assert list(suites_of(tmp_path, self.text.format(name="by_setting"))) == ["by_setting"]

    def test_a_file_that_is_missing_is_one_line(self, tmp_path: Path) -> None:
        with pytest.raises(SuiteError, match=r"nowhere\.yaml: is not a file"):
            load_suites(Settings(suites_file=tmp_path / "nowhere.yaml"))


class TestDeclaration:
    def test_every_field_is_read(self, tmp_path: Path) -> None:
        suite = suite_with(
            tmp_path,
            "description: Long, attempts: 3, levels: [2, 1], exclude_web: true, task_ids: [b, a], limit: 2, data: sub",
        )
        assert (suite.title, suite.description, suite.attempts) == ("Mine", "Long", 3)
        assert (suite.levels, suite.exclude_web, suite.task_ids, suite.limit) == ((2, 1), True, ("b", "a"), 2)
        assert suite.data == tmp_path / "sub"

    def test_what_is_left_out_has_its_default(self, tmp_path: Path) -> None:
        suite = suite_with(tmp_path, "")
        assert (suite.attempts, suite.levels, suite.exclude_web, suite.task_ids) == (1, (), False, ())
        assert (suite.limit, suite.data, dict(suite.thresholds), suite.description) == (None, None, {}, "")

    @pytest.mark.parametrize(
        ("fields", "told"),
        [
            ("atempts: 3", "atempts is not known; known are benchmark, title"),
            ("attempts: '3'", "attempts: '3' is not a whole number"),
            ("attempts: 0", "attempts: 0 is less than 1"),
            ("attempts: 101", "attempts: 101 is more than 100"),
            ("attempts: 1.5", "attempts: 1.5 is not a whole number"),
            ("attempts: true", "attempts: True is not a whole number"),
            ("attempts: [1]", "attempts: [1] is not a whole number"),
            ("levels: 1", "levels: 1 is not a list"),
            ("levels: []", "levels: [] is empty"),
            ("levels: [1, '2']", "levels[1]: '2' is not a whole number"),
            ("levels: [1, 0]", "levels[1]: 0 is less than 1"),
            ("levels: [1, 2, 1]", "levels: 1 stands twice"),
            ("exclude_web: 1", "exclude_web: 1 is not true or false"),
            ("exclude_web: yes", "exclude_web: 'yes' is not true or false"),
            ("task_ids: a", "task_ids: 'a' is not a list"),
            ("task_ids: []", "task_ids: [] is empty"),
            ("task_ids: [7]", "task_ids[0]: 7 is not a text; write it in quotes"),
            ("task_ids: ['a b']", "task_ids: task id 'a b' cannot be used"),
            ("task_ids: [a, b, a]", "task_ids: 'a' stands twice"),
            ("protect: [golds, golds]", "protect: 'golds' stands twice"),
            ("protect: [answers]", "protect[0]: 'answers' is not one of 'golds' or 'attachments'"),
            ("protect: golds", "protect: 'golds' is not a list"),
            ("limit: 0", "limit: 0 is less than 1"),
            ("data: ''", "data: '' is empty"),
            ('data: "a\\eb"', "data: 'a\\x1bb' has control characters"),
            ("thresholds: {f1: 0.5}", "thresholds: 'f1' is not one of gaia, which has none"),
            ("thresholds: 0.5", "thresholds: 0.5 is not a mapping"),
            ("thresholds: {f1: high}", "thresholds.f1: 'high' is not a number"),
            ("thresholds: {f1: -1.0}", "thresholds.f1: -1.0 is less than 0"),
            ("description: 5", "description: 5 is not a text"),
            ('description: "a\\nb"', "description: 'a\\nb' has control characters; write one line"),
        ],
    )
    def test_a_wrong_field_is_one_line_with_file_suite_field_and_value(
        self, tmp_path: Path, fields: str, told: str
    ) -> None:
        text = f"suites:\n  good: {{benchmark: gaia, title: T}}\n  bad: {{benchmark: gaia, title: T, {fields}}}\n"
        message = error_of(tmp_path, text)
        assert f": suite 'bad': {told}" in message

    @pytest.mark.parametrize(
        ("text", "told"),
        [
            ("suites: {bad: {title: T}}", "suite 'bad': benchmark is missing"),
            ("suites: {bad: {benchmark: gaia}}", "suite 'bad': title is missing"),
            ("suites: {bad: {benchmark: gaya, title: T}}", "benchmark: 'gaya' is not known; known are "),
            ("suites: {bad: {benchmark: gaia, title: ''}}", "title: '' is empty"),
            (f"suites: {{bad: {{benchmark: gaia, title: {'t' * 201}}}}}", "has more than 200 characters"),
            ("suites: {bad: }", "suite 'bad': None is not a mapping"),
            ("suites: {bad: [1]}", "suite 'bad': [1] is not a mapping"),
            ("suites: {Bad: {benchmark: gaia, title: T}}", "suite 'Bad': a name is 1 to 40"),
            ("suites: {1: {benchmark: gaia, title: T}}", "suite '1': a name is"),
            (f"suites: {{{'b' * 41}: {{benchmark: gaia, title: T}}}}", "a name is 1 to 40"),
            ('suites: {"a\\nb": {benchmark: gaia, title: T}}', "suite 'a\\nb': a name is"),
            ("suites: {a: {benchmark: gaia, title: T}, a: {benchmark: gaia, title: T}}", "the key 'a' stands twice"),
            ("suites: {a: {benchmark: gaia, title: T, title: T}}", "the key 'title' stands twice"),
            ("suites: {}", "suites: is {}; write a mapping of names to suites"),
            ("suites: []", "suites: is []"),
            ("suites:\n", "suites: is None"),
            ("suits: {}", "must hold the one key 'suites'"),
            ("suites: {}\nmore: 1", "must hold the one key 'suites'"),
            ("", "must hold the one key 'suites'"),
            ("# nothing\n", "must hold the one key 'suites'"),
            ("just text", "must hold the one key 'suites'"),
            ("suites:\n\tsample: {}", "is not valid YAML (line 2"),
            ("suites: {a: [", "is not valid YAML"),
            ("suites: !!python/object:os.system {}", "is not supported"),
            ("a: &a [x]\nsuites: {b: *a}", "the alias *a is not supported"),
            (b"suites: {a: {title: \xff}}", "is not UTF-8"),
            ("suites: {}".encode("utf-16"), "is not UTF-8"),
            ("suites: {a: \0}", "is not valid YAML"),
            ("# " + "x" * 1_000_000, "is larger than"),
            ("suites: " + "[" * 5000, "deep"),
            ("suites: {a: {" + "x" * 500 + ": 1, benchmark: gaia, title: T}}", "is not known"),
        ],
        ids=lambda value: str(value)[:40],
    )  # fmt: skip
    def test_a_file_that_cannot_be_used_is_one_line(self, tmp_path: Path, text: str | bytes, told: str) -> None:
        assert told in error_of(tmp_path, text)

    def test_a_small_file_that_would_grow_without_end_is_refused(self, tmp_path: Path) -> None:
        layers = "\n".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 12))
        assert "is not supported" in error_of(tmp_path, f"l0: &l0 [x]\n{layers}\nsuites: *l11\n")


class Sql(Gaia):
    """A second benchmark, with thresholds and without packaged tasks."""

    name = "sql"
    thresholds = MappingProxyType({"f1": 0.5, "cer": 0.05})


class TestOtherBenchmarks:
    @pytest.fixture(autouse=True)
    def known(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(BENCHMARKS, "sql", Sql())

    def declare(self, tmp_path: Path, fields: str) -> dict[str, Suite]:
        return suites_of(tmp_path, f"suites: {{mine: {{benchmark: sql, title: T, {fields}}}}}")

    def test_a_suites_thresholds_stand_over_the_benchmarks_own(self, tmp_path: Path) -> None:
        assert dict(self.declare(tmp_path, "thresholds: {f1: 1}")["mine"].thresholds) == {"f1": 1.0, "cer": 0.05}

    def test_an_unknown_threshold_is_refused_with_the_known_ones(self, tmp_path: Path) -> None:
        with pytest.raises(SuiteError, match="thresholds: 'f2' is not one of sql, which has cer, f1"):
            self.declare(tmp_path, "thresholds: {f2: 1}")

    def test_packaged_data_that_do_not_exist_are_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(BENCHMARKS, "other", Sql())
        with pytest.raises(SuiteError, match="data: no tasks of other are packaged; write a folder"):
            suites_of(tmp_path, "suites: {mine: {benchmark: other, title: T, data: package}}")

    def test_data_with_an_id_that_stands_twice_are_refused_whoever_loads_them(
        self, tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class Doubling(Sql):
            def load(self, data_dir: Path) -> list[Task]:
                return super().load(data_dir) * 2

        monkeypatch.setitem(BENCHMARKS, "sql", Doubling())
        with pytest.raises(SuiteError, match="suite 'mine': the data hold a task id twice"):
            load_tasks(self.declare(tmp_path, "")["mine"], Settings(sql_dir=folder))

    def test_the_folder_is_the_benchmarks_own_setting(self, tmp_path: Path, folder: Path) -> None:
        suite = self.declare(tmp_path, "")["mine"]
        with pytest.raises(SuiteError, match="set EVAL_SQL_DIR to the folder"):
            load_tasks(suite, Settings(gaia_dir=folder))
        assert len(load_tasks(suite, Settings(sql_dir=folder)).tasks) == 5


class TestSelection:
    @pytest.mark.parametrize(
        ("fields", "expected"),
        [
            ("", ["one", "one-web", "two", "two-web", "three"]),
            ("levels: [3, 1]", ["one", "one-web", "three"]),
            ("exclude_web: true", ["one", "two", "three"]),
            ("levels: [2], exclude_web: true", ["two"]),
            ("limit: 2", ["one", "one-web"]),
            ("limit: 99", ["one", "one-web", "two", "two-web", "three"]),
            ("exclude_web: true, limit: 2", ["one", "two"]),
            ("task_ids: [three, one]", ["one", "three"]),
            ("task_ids: [three, one], limit: 1", ["one"]),
            ("task_ids: [two], levels: [2], exclude_web: true", ["two"]),
        ],
    )
    def test_it_keeps_the_order_of_the_data(
        self, tmp_path: Path, folder: Path, fields: str, expected: list[str]
    ) -> None:
        assert ids_of(load(tmp_path, folder, fields)) == expected

    @pytest.mark.parametrize(
        ("fields", "told"),
        [
            ("task_ids: [one, four]", "suite 'mine': task_ids: 'four' not in the data"),
            ("task_ids: [four, five, one]", "task_ids: 'four' and 1 more not in the data"),
            ("task_ids: [one, two], levels: [1]", "task_ids: levels or exclude_web leave 'two' out"),
            ("task_ids: [one-web], exclude_web: true", "task_ids: levels or exclude_web leave 'one-web' out"),
            ("levels: [4]", "suite 'mine': levels and exclude_web leave none of 5 tasks"),
        ],
    )
    def test_a_selection_that_does_not_fit_the_data_is_one_line(
        self, tmp_path: Path, folder: Path, fields: str, told: str
    ) -> None:
        with pytest.raises(SuiteError) as caught:
            load(tmp_path, folder, fields)
        assert told in str(caught.value)
        assert str(caught.value).isprintable()

    def test_a_folder_of_the_suites_own_counts_from_its_file(self, tmp_path: Path, folder: Path) -> None:
        assert len(load_tasks(suite_with(tmp_path, "data: data"), Settings()).tasks) == 5


class TestHash:
    def test_it_is_stable_and_made_of_what_the_tasks_hold(self, tmp_path: Path, folder: Path) -> None:
        assert load(tmp_path, folder).content_hash == load(tmp_path, folder).content_hash

    def test_a_selection_of_the_same_tasks_has_the_same_hash(self, tmp_path: Path, folder: Path) -> None:
        by_level = load(tmp_path, folder, "levels: [1], attempts: 5")
        by_id = load(tmp_path, folder, "task_ids: [one, one-web]")
        assert by_level.content_hash == by_id.content_hash

    @pytest.mark.parametrize(
        "rows",
        [
            [gaia_row("one", answer="8"), gaia_row("two")],
            [gaia_row("one", 2), gaia_row("two")],
            [gaia_row("uno"), gaia_row("two")],
            [gaia_row("two"), gaia_row("one")],
            [gaia_row("one")],
        ],
        ids=["gold", "level", "id", "order", "fewer"],
    )
    def test_any_change_of_the_tasks_changes_it(self, tmp_path: Path, rows: list[dict[str, object]]) -> None:
        before = load(tmp_path, data(tmp_path / "d", gaia_row("one"), gaia_row("two"))).content_hash
        assert load(tmp_path, data(tmp_path / "d", *rows)).content_hash != before

    def test_the_bytes_of_an_attachment_change_it(self, tmp_path: Path) -> None:
        folder = data(tmp_path / "d", {**gaia_row("one"), "file_name": "a.txt"})
        hashes = set()
        for content in ("x", "y"):
            (folder / "a.txt").write_text(content)
            hashes.add(load(tmp_path, folder).content_hash)
        assert len(hashes) == 2

    def test_ids_and_contents_cannot_run_into_each_other(self) -> None:
        tasks = [Task(task_id=name, benchmark="gaia", level=1, question="?", gold="7") for name in ("a", "ab")]
        assert len({content_hash(tuple(tasks)), content_hash(tuple(tasks[::-1])), content_hash(())}) == 3
