"""Cppx: the worked cases, names, locations and facts, the source index, the task file, and the sample suite."""

from __future__ import annotations

import json
import time
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_pipeline.benchmarks.base import Answer, Material, Score, Task
from eval_pipeline.benchmarks.cppx import Cppx, Fact, Judged, judge
from eval_pipeline.benchmarks.cppx_answer import read_answer
from eval_pipeline.benchmarks.cppx_source import SourceIndex, index_of
from eval_pipeline.errors import TaskDataError
from eval_pipeline_tests.benchmarks.hostile_texts import HOSTILE
from eval_pipeline_tests.benchmarks.sample_runs import played, view
from eval_pipeline_tests.conftest import Database

CACHE = """\
#include "cache.h"

bool Cache::put(int key) {  // refuses when crowded
  if (size_ == capacity_) return false;
  ++size_;
  return true;
}
"""
SOURCE = index_of([("src/cache.cpp", CACHE.encode()), ("docs/notes.md", b"`ghost` lives here\n")])
PUT = Fact((("put",), ("returns false", "false"), ("full",)))
GROWS = Fact((("size_",), ("grows", "increases")))
FORBIDDING = replace(PUT, forbid=("never", "not"))
BOTH = "`Cache::put` returns false when the cache is full (cache.cpp:3). `size_` grows by one (cache.cpp:5)."

WORKED = [
    (BOTH, 1, 1, 1),
    ("`Cache::put` returns false when the cache is full.", 0.5, 1, None),
    ("This class stores values.", 0, None, None),
    ("`Cache::insert` returns false when the cache is full. `size_` grows by one.", 0.5, 2 / 3, None),
    ("`Cache::put` returns false when full (cache.cpp:99).", 0.5, 1, 0),
    ("`Cache::put` returns false when full (store.cpp:3).", 0.5, 1, 0),
    ("`Cache::put` returns false when full (cache.cpp:2-4).", 0.5, 1, 1),
    ("`Cache::put` returns false when full (cache.cpp:4-2).", 0.5, 1, 0),
    ("`Cache::put` looks at `size_` first. The cache may be full. It then returns false.", 0, 1, None),  # false reject
    ("put returns false full size_ grows", 1, None, None),  # known false accept
    ("`Cache::put` never returns false when full.", 0.5, 1, None),
    ("put returns false when the cache is full. size_ grows by one.", 1, None, None),
    ("", 0, None, None),
]


def judged(answer: str, *facts: Fact, source: SourceIndex = SOURCE, window: int = 1) -> Judged:
    return judge(answer, facts or (PUT, GROWS), source, window)


@pytest.mark.parametrize(("answer", "ratio", "identifiers", "locations"), WORKED)
def test_the_worked_cases_have_their_stated_values(
    answer: str, ratio: float, identifiers: float | None, locations: float | None
) -> None:
    found = judged(answer)
    assert (found.fact_ratio, found.identifier_precision, found.location_precision) == (ratio, identifiers, locations)


def test_a_forbidden_term_turns_a_fact_round() -> None:
    found = judged("`Cache::put` never returns false when full.", FORBIDDING, GROWS)
    assert (found.fact_ratio, found.forbidden) == (0, (True, False))
    # said rightly elsewhere, it is stated
    found = judged("put never returns false when full. But put returns false if full.", FORBIDDING)
    assert (found.stated, found.forbidden) == ((True,), (False,))


def test_a_window_of_two_sentences_is_an_option_of_the_task() -> None:
    answer = "`Cache::put` checks the room first. It returns false when the cache is full."
    assert judged(answer, PUT).fact_ratio == 0
    assert judged(answer, PUT, window=2).fact_ratio == 1


class TestFacts:
    @pytest.mark.parametrize(
        "answer",
        [
            "PUT returns False when FULL.",
            "- `put` looks at the size.\n  It returns **false** if full.",
            "| put | returns `false` | full |",
            "When  full,\nput\nreturns   false.",
            unicodedata.normalize("NFD", "put은 full이면 false를 돌려준다."),
        ],
    )
    def test_they_may_be_written_in_any_form(self, answer: str) -> None:
        assert judged(answer, PUT).stated == (True,)

    @pytest.mark.parametrize(
        "answer",
        [
            "The output returns false when full.",
            "put returns false when it is fully loaded.",
            "```cpp\nput returns false when full\n```\nThat is it.",
            "# put returns false when full\n\nNothing more.",
            " ".join(["word"] * 99) + " put returns false full",
        ],
    )
    def test_parts_of_words_code_headings_and_dumps_state_none(self, answer: str) -> None:
        assert judged(answer, PUT).stated == (False,)

    def test_korean_terms_may_carry_particles(self) -> None:
        fact = Fact((("용량",), ("초과",), ("거짓", "false")))
        assert judged("`put`은 용량을 초과하면 거짓을 반환한다.", fact).stated == (True,)
        assert judged(unicodedata.normalize("NFD", "용량을 초과하면 거짓이다."), fact).stated == (True,)


class TestNames:
    @pytest.mark.parametrize(
        ("answer", "names"),
        [
            ("`Cache::put(int key)`", ("Cache", "put", "key")),
            ("``size_`` and ```capacity_```", ("size_", "capacity_")),
            ("`cache->put()` and `a.b`", ("cache", "put", "a", "b")),
            ("`std::vector<int>` and `std::move(size_)` and `return false;`", ("size_",)),
            ("`uint64_t const& x = 3u; // note`", ("x",)),
            ('`#include <vector>` and `#define A_B 1` and `"text in quotes"`', ("A_B",)),
            ("`~Cache()`", ("Cache",)),
            ("`cache.cpp`, `src/cache.cpp:3` and `CMakeLists.txt`", ()),
            ("```cpp\nCache c; // comment\nc.put(1);\n```", ("Cache", "c", "put")),
            ("Cache::put without marks", ()),
            ("`unclosed", ()),
        ],
    )
    def test_names_in_code_marks_are_found(self, answer: str, names: tuple[str, ...]) -> None:
        assert read_answer(answer + "\n").names == names

    def test_a_name_that_stands_only_in_a_comment_is_no_code(self) -> None:
        found = judged("`crowded` and `size_` and `ghost`")
        assert found.unknown == ("crowded", "ghost")
        assert found.only_in_comments == ("crowded",)
        assert found.identifier_precision == pytest.approx(1 / 3)

    def test_a_qualified_name_is_right_if_its_parts_are_nested_so(self) -> None:
        found = judged("`Cache::put`, `put::Cache` and `Cache::size_`")
        assert found.identifier_precision == 1
        assert found.parts_only == ("put::Cache", "Cache::size_")


class TestLocations:
    @pytest.mark.parametrize(
        ("text", "first", "last"),
        [
            ("cache.cpp:4", 4, 4), ("src/cache.cpp:4-6", 4, 6), ("./src/cache.cpp:4", 4, 4), ("`cache.cpp:4`", 4, 4),
            ("cache.cpp:4:12", 4, 4), ("cache.cpp#L4", 4, 4), ("cache.cpp#L4-L6", 4, 6), ("cache.cpp:L4", 4, 4),
            ("line 4 of cache.cpp", 4, 4), ("Lines 4–6 in the file cache.cpp", 4, 6), ("cache.cpp, lines 4-6", 4, 6),
            ("cache.cpp (line 4)", 4, 4), ("cache.cpp line 4", 4, 4), ("cache.cpp의 4행", 4, 4),
            ("cache.cpp 4~6줄", 4, 6), ("cache.cpp의 4번째 줄", 4, 4), ("cache.cpp 4 라인", 4, 4),
        ],
    )  # fmt: skip
    def test_every_form_is_read_and_there(self, text: str, first: int, last: int) -> None:
        (location,) = read_answer(f"It stands at {text}, where else.").locations
        assert (location.file.removeprefix("./").removeprefix("src/"), location.first, location.last) == (
            "cache.cpp",
            first,
            last,
        )
        assert judged(f"See {text}, where else.").location_precision == 1

    @pytest.mark.parametrize(
        "text",
        [
            "cache.cpp:0", "cache.cpp:8", "cache.cpp:7-8", "cache.cpp:6-4", "lib/cache.cpp:3", "ache.cpp:3",
            "cache.hpp:3", "`ghost` at cache.cpp:3", "`key` at cache.cpp:7",
        ],
    )  # fmt: skip
    def test_what_is_not_there_is_wrong(self, text: str) -> None:
        assert judged(f"See {text}.").location_precision == 0

    @pytest.mark.parametrize(
        "text", ["`key` at cache.cpp:6", "`ghost` and `put` at cache.cpp:1", "notes.md:1", "cache.cpp:7"]
    )
    def test_a_name_of_its_sentence_may_be_three_lines_away(self, text: str) -> None:
        assert judged(f"See {text}.").location_precision == 1

    @pytest.mark.parametrize("text", ["cache.cpp", "at 3:4", "put:3", "http://a.example/cache.cppx:3", "version 1.2:3"])
    def test_what_names_no_line_of_a_file_is_no_location(self, text: str) -> None:
        assert judged(f"See {text}.").location_precision is None

    def test_a_name_that_two_files_have_means_either(self) -> None:
        source = index_of([("a/x.cpp", b"int one;\n"), ("b/x.cpp", b"\n\n\n\n\nint two;\n")])
        assert judged(
            "`two` is at x.cpp:6. `one` is at x.cpp:1. `two` is at a/x.cpp:1.", source=source
        ).location_precision == (pytest.approx(2 / 3))


class TestSource:
    CODE = """\
#define LIMIT 8
#define TWICE(x) (x + bonus)
namespace outer::inner {
template <typename T> class Box : public Base<T> {
 public:
  explicit Box(T value);
  ~Box();
  T& front() { int local = 0; return items_[local]; }
  bool operator==(const Box& other) const;
  enum class Colour { red, green };
  using Pair = std::pair<T, T>;
 private:
  T* items_[4], *spare_;
};
}
template <typename T> outer::inner::Box<T>::Box(T value) : items_{value} {}
struct broken { int still_read
"""

    @pytest.mark.parametrize(
        "pair",
        [
            ("outer", "inner"), ("inner", "Box"), ("Box", "Box"), ("Box", "~Box"), ("Box", "front"), ("Box", "Colour"),
            ("Colour", "red"), ("Box", "Pair"), ("Box", "items_"), ("Box", "spare_"),
        ],
    )  # fmt: skip
    def test_what_is_declared_in_a_scope_is_nested_in_it(self, pair: tuple[str, str]) -> None:
        assert pair in index_of([("x.hpp", self.CODE.encode())]).nested

    def test_locals_belong_to_no_scope_and_macros_are_code(self) -> None:
        index = index_of([("x.hpp", self.CODE.encode())])
        assert ("Box", "local") not in index.nested
        assert {"LIMIT", "TWICE", "bonus", "local", "still_read", "Base"} <= index.code
        assert index.files["x.hpp"].names["items_"] == [8, 13, 16]
        assert index.files["x.hpp"].lines == 17

    @pytest.mark.parametrize(
        ("content", "lines"), [(b"", 0), (b"a", 1), (b"a\n", 1), (b"a\nb", 2), (b"\r\n\r\n", 2), (b"\xff\xfe\0", 1)]
    )
    def test_lines_are_counted_whatever_the_bytes(self, content: bytes, lines: int) -> None:
        assert index_of([("x.cpp", content)]).files["x.cpp"].lines == lines

    def test_a_file_that_has_changed_since_is_no_wrong_answer(self, tmp_path: Path) -> None:
        task = task_of(tmp_path)
        (tmp_path / "cache.cpp").write_text("int other;\n")
        with pytest.raises(ValueError, match=r"cache\.cpp has changed since it was loaded"):
            Cppx().score(task, Answer(None, "x"))


def task_of(folder: Path) -> Task:
    path = folder / "cache.cpp"
    path.write_text(CACHE)
    facts = [{"groups": [list(group) for group in fact.groups]} for fact in (PUT, GROWS)]
    material = Material("cache.cpp", path, sha256(CACHE.encode()).hexdigest(), len(CACHE))
    return Task("t", "cppx", 1, "?", "", extra={"facts": facts, "window": 1}, materials=(material,))  # type: ignore[dict-item]


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Task:
    return task_of(tmp_path_factory.mktemp("source"))


def scored(task: Task, answer: str, **thresholds: float) -> Score:
    return Cppx().score(task, Answer(None, answer), thresholds)


class TestScore:
    def test_the_ratio_of_facts_decides_by_a_threshold(self, task: Task) -> None:
        half = "`Cache::put` returns false when the cache is full, see `Cache::insert` at cache.cpp:77."
        assert scored(task, BOTH).success
        assert not scored(task, half).success
        assert scored(task, half, fact_ratio=0.5).success
        assert scored(task, half).format_valid
        assert scored(task, half).reason == (
            "1 of 2 facts stated (missing: 2); not in the code: 'insert'; not there: cache.cpp:77"
        )

    def test_all_figures_go_into_the_row(self, task: Task) -> None:
        score = scored(task, "`Cache::put` is full of `crowded` and `ghost`, see cache.cpp:3 and cache.cpp:9.")
        row = dict(score.grounding)
        assert row.pop("details") == {
            "facts_missing": [1, 2], "facts_forbidden": [], "identifiers_unknown": ["crowded", "ghost"],
            "identifiers_only_in_comments": ["crowded"], "qualified_parts_only": [], "locations_wrong": ["cache.cpp:9"],
        }  # fmt: skip
        assert row == {
            "facts": 2, "facts_found": 0, "fact_ratio": 0, "forbidden_found": 0, "identifiers": 4,
            "identifiers_valid": 2, "identifier_precision": 0.5, "locations": 2, "locations_valid": 1,
            "location_precision": 0.5,
        }  # fmt: skip
        assert score.metrics == {
            "fact_ratio": 0, "identifier_precision": 0.5, "location_precision": 0.5, "qualified_precision": 1,
            "identifiers_only_in_comments": 1,
        }  # fmt: skip

    @pytest.mark.parametrize("answer", ["", " \n ", "\t"])
    def test_an_empty_answer_has_no_format(self, answer: str, task: Task) -> None:
        score = scored(task, answer, fact_ratio=0)
        assert (score.success, score.format_valid, score.reason) == (False, False, "no answer")
        assert score.metrics == {"fact_ratio": 0, "identifiers_only_in_comments": 0}


@settings(max_examples=100, deadline=None)
@given(
    st.permutations(["`Cache::put` returns false when full.", "`size_` grows by one.", "`insert` is at cache.cpp:3."])
)
def test_the_order_of_sentences_and_the_list_around_them_make_no_difference(lines: list[str]) -> None:
    for answer in ("\n".join(lines), "\n".join(f"- {line}" for line in lines), "\n\n".join(lines).upper().lower()):
        found = judged(answer, source=index_of([("cache.cpp", CACHE.lower().encode()), ("x.cpp", CACHE.encode())]))
        assert found.fact_ratio == 1
        assert len(found.unknown) == 1


TERM = st.sampled_from(["put", "size_", "가득", "returns false", "12", "A::b"])
TERMS = st.lists(TERM, min_size=1, max_size=3, unique=True)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(TERMS, min_size=1, max_size=3), min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_an_answer_with_a_term_of_every_group_states_every_fact(groups: list[list[list[str]]], random: object) -> None:
    facts = [Fact(tuple(map(tuple, fact))) for fact in groups]
    lines = [f"- {' , '.join(random.choice(terms) for terms in fact)}" for fact in groups]  # type: ignore[attr-defined]
    random.shuffle(lines)  # type: ignore[attr-defined]
    assert judge("\n".join(lines), facts, SOURCE).fact_ratio == 1


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=300))
def test_no_text_raises_and_every_figure_is_in_range(task: Task, answer: str) -> None:
    score = scored(task, answer)
    assert all(0 <= value <= 1 for name, value in score.metrics.items() if name != "identifiers_only_in_comments")
    assert len(score.reason.splitlines()) == 1
    assert "\\u0000" not in json.dumps(score.grounding, allow_nan=False)
    json.dumps(score.grounding, ensure_ascii=False).encode()


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_answer_is_scored_or_refused_in_bounded_time(name: str, task: Task) -> None:
    begin = time.perf_counter()
    score = scored(task, HOSTILE[name])
    assert time.perf_counter() - begin < 60
    assert not score.success
    if len(HOSTILE[name]) > 200_000:
        assert score.reason == "the answer has more than 200,000 characters"


class TestTaskFile:
    def load(self, folder: Path, names: Sequence[str] = ("src/a.cpp",), **row: object) -> Task:
        for name in names:
            path = folder / "materials" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("int a;\n")
        fields = {"task_id": "t", "question": "Why?", "materials": [name.split("/")[0] for name in names], **row}
        (folder / "tasks.jsonl").write_text(json.dumps(fields), encoding="utf-8")
        (found,) = Cppx().load(folder)
        return found

    def test_a_fact_stands_in_the_gold_answer_by_its_statement_or_its_terms(self, tmp_path: Path) -> None:
        task = self.load(
            tmp_path, facts=[{"groups": [["put", "add"], ["false"]]}, {"groups": [["x"]], "statement": "x is"}]
        )
        assert task.gold == "put, false\nx is"
        assert [material.name for material in task.materials] == ["src/a.cpp"]
        assert task.extra["window"] == 1

    @pytest.mark.parametrize(
        ("row", "names", "said"),
        [
            ({}, ("a.cpp",), "field 'facts' is None; write a list of 1 to 100 facts"),
            ({"facts": []}, ("a.cpp",), "is []; write"),
            ({"facts": [1]}, ("a.cpp",), "has fact 1 1; write an object with groups"),
            ({"facts": [{"groups": [["a"]]}, {"forbid": ["x"]}]}, ("a.cpp",), "has fact 2"),
            ({"facts": [{"groups": [["a"]], "weight": 2}]}, ("a.cpp",), "write an object with groups"),
            ({"facts": [{"groups": ["a"]}]}, ("a.cpp",), "with groups ['a']; write lists of alternative terms"),
            ({"facts": [{"groups": [["a", "` `"]]}]}, ("a.cpp",), "write lists of alternative terms"),
            ({"facts": [{"groups": [["a"]], "forbid": "x"}]}, ("a.cpp",), "with forbid 'x'; write a list"),
            ({"facts": [{"groups": [["a"]], "statement": 1}]}, ("a.cpp",), "with statement 1; write a text"),
            ({"facts": [{"groups": [["a"]]}], "window": 3}, ("a.cpp",), "is 3; write 1 or 2"),
            ({"facts": [{"groups": [["a"]]}], "window": True}, ("a.cpp",), "is True; write 1 or 2"),
            ({"facts": [{"groups": [["a"]]}]}, ("a.py",), "field 'materials' names no C++ file"),
        ],
    )
    def test_what_cannot_be_used_is_one_line(
        self, row: dict[str, object], names: Sequence[str], said: str, tmp_path: Path
    ) -> None:
        with pytest.raises(TaskDataError) as caught:
            self.load(tmp_path, names, **row)
        assert said in str(caught.value)
        assert "tasks.jsonl line 1" in str(caught.value)
        assert len(str(caught.value).splitlines()) == 1


async def test_the_sample_suite_comes_out_as_its_scripts_tell(database: Database) -> None:
    runs = await played(database, "cppx")
    assert {task_id: run.row.success for task_id, run in runs.items()} == {
        "sample-cppx-ring-full": True,
        "sample-cppx-config-errors": True,
        "sample-cppx-stop": True,
        "sample-cppx-equal-due": True,
        "sample-cppx-defaults": True,
        "sample-cppx-threads": False,
    }
    for task_id, run in runs.items():
        assert (run.row.status, run.row.format_valid, run.row.scorer_version) == ("completed", True, "cppx-1")
        assert run.row.tool_calls >= 1
        if run.row.success:
            assert run.metrics["identifier_precision"] == run.metrics["location_precision"] == 1, task_id
    assert runs["sample-cppx-stop"].row.tool_errors == 1
    reason = str(runs["sample-cppx-threads"].row.score_reason)
    assert "not in the code: 'ScopedLock'; not there: src/scheduler.cpp:212" in reason
    assert "said with a word that turns it round: 2" in reason

    grounding = view(database, "v_cppx_grounding")
    assert set(grounding) == set(runs)
    threads = grounding["sample-cppx-threads"]
    assert (threads.facts, threads.facts_found, threads.forbidden_found, threads.location_precision) == (2, 0, 1, 0)
    assert threads.details["identifiers_unknown"] == ["ScopedLock", "lock_queue"]
