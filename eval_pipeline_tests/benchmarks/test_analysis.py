"""Analysis: every kind of check, what stays out of the verdict, the task file, and the sample suite."""

from __future__ import annotations

import json
import time
import unicodedata
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from eval_pipeline.benchmarks.analysis import Analysis, failures
from eval_pipeline.benchmarks.analysis_checks import check_of
from eval_pipeline.benchmarks.analysis_grounding import entity_grounding, number_grounding
from eval_pipeline.benchmarks.base import Answer, Evidence, Score, Task
from eval_pipeline.errors import TaskDataError
from eval_pipeline.jsontypes import JsonObject, JsonValue
from eval_pipeline_tests.benchmarks.hostile_texts import HOSTILE
from eval_pipeline_tests.benchmarks.sample_runs import played, view
from eval_pipeline_tests.conftest import Database

HEADINGS: JsonObject = {"kind": "headings", "titles": ["Summary", "Findings"]}
SCHEMA: JsonObject = {
    "type": "object",
    "properties": {"n": {"type": "integer"}, "tags": {"type": "array", "uniqueItems": True}},
    "required": ["n"],
    "additionalProperties": False,
}
AS_JSON: JsonObject = {"kind": "json", "schema": SCHEMA}
EVERY_KIND: list[JsonObject] = [
    HEADINGS,
    AS_JSON,
    {"kind": "json", "schema": SCHEMA, "fenced": True},
    {"kind": "length", "unit": "words", "least": 2, "most": 9},
    {"kind": "length", "unit": "characters", "most": 99},
    {"kind": "table", "columns": ["Month", "Total"], "rows": 2},
    {"kind": "language", "language": "ko"},
    {"kind": "language", "language": "en"},
    {"kind": "contains", "texts": ["KRW"]},
    {"kind": "lacks", "texts": ["TODO"], "told": False},
]


def why(answer: str, check: JsonObject) -> str:
    """Why ``answer`` fails ``check``; empty if it does not."""
    return failures(answer, {"it": check_of(check)}).get("it", "")


def task(*checks: JsonObject, question: str = "Report.") -> Task:
    return Task("t", "analysis", 1, question, "", extra={"checks": list(checks)})


def scored(answer: str, *checks: JsonObject, results: tuple[str, ...] = (), question: str = "Report.") -> Score:
    evidence = tuple(Evidence("python_exec", {}, result) for result in results)
    return Analysis().score(task(*checks, question=question), Answer(None, answer, evidence))


class TestHeadings:
    @pytest.mark.parametrize(
        "answer",
        [
            "# Summary\n\ntext\n\n## Findings\n",
            "Summary\n===\n\nFindings\n---\n",
            "# Intro\n# **summary**:\n# Other\n#  FINDINGS  ##\n",
            "# Summary\n# Summary\n# Findings\n# Summary\n",
            unicodedata.normalize("NFD", "# Summary\n# Findings\n"),
        ],
    )
    def test_they_are_there_in_order(self, answer: str) -> None:
        assert not why(answer, HEADINGS)

    @pytest.mark.parametrize(
        ("answer", "said"),
        [
            ("# Findings\n# Summary\n", "'Findings' is out of order"),
            ("# Findings\n# Summary\n# Findings\n", "'Findings' is out of order"),
            ("# Summary\n", "'Findings' is missing"),
            ("```\n# Summary\n# Findings\n```\nx", "'Summary' is missing"),
            ("**Summary**\n\n**Findings**\n", "'Summary' is missing"),
            ("Summary\n\nFindings\n", "'Summary' is missing"),
            ("#Summary\n#Findings\n", "'Summary' is missing"),
            ("# Summary of it\n# Findings\n", "'Summary' is missing"),
        ],
    )
    def test_else_it_says_which_one_is_not(self, answer: str, said: str) -> None:
        assert said in why(answer, HEADINGS)

    def test_a_level_can_be_asked_for(self) -> None:
        check: JsonObject = {**HEADINGS, "level": 2}
        assert not why("## Summary\n## Findings\n", check)
        assert "'Findings' is missing" in why("## Summary\n# Findings\n", check)


class TestJson:
    @pytest.mark.parametrize(
        "answer",
        ['{"n": 1}', ' {"n": 1.0}\n', '```json\n{"n": 1}\n```', '```\n{"n": 10e2, "tags": [1, true, "1"]}\n```'],
    )
    def test_the_whole_answer_or_its_one_fence_fits(self, answer: str) -> None:
        assert not why(answer, AS_JSON)

    @pytest.mark.parametrize(
        ("answer", "said"),
        [
            ("no", "not valid JSON"),
            ('Here: {"n": 1}', "not valid JSON"),
            ('{"n": 1} {"n": 2}', "not valid JSON"),
            ('```json\n{"n": 1}\n```\ntext', "not valid JSON"),
            ('{"n": 1, "n": 1}', "stands twice"),
            ('{"n": NaN}', "NaN is no JSON number"),
            ('{"n": 1.5}', "n: 1.5 is not of type 'integer'"),
            ('{"n": true}', "n: True is not of type"),
            ('{"n": 1, "tags": [{"a": 1}, {"a": 1.0}]}', "items stand twice"),
            ("{}", "'n' is a required property"),
            ('{"n": 1, "m": 2}', "Additional properties"),
            ("[" * 5000 + "]" * 5000, "nested deeper"),
        ],
    )
    def test_else_it_says_why(self, answer: str, said: str) -> None:
        assert said in why(answer, AS_JSON)

    def test_a_fenced_block_can_stand_in_a_text(self) -> None:
        check: JsonObject = {**AS_JSON, "fenced": True}
        assert not why('# Data\n\n```json\n{"n": 1}\n```\n\nThat is all.', check)
        assert "0 fenced blocks" in why('{"n": 1}', check)
        assert "2 fenced blocks" in why('```\n{"n": 1}\n```\n```json\n{"n": 1}\n```', check)

    def test_a_schema_may_refer_to_its_own_parts_and_to_itself(self) -> None:
        tree: JsonObject = {
            "$defs": {"node": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
            "$ref": "#/$defs/node",
        }
        assert not why("[[], [[]]]", {"kind": "json", "schema": tree})
        assert "is not of type 'array'" in why("[[1]]", {"kind": "json", "schema": tree})


class TestTheOtherKinds:
    @pytest.mark.parametrize(
        ("check", "right", "wrong", "said"),
        [
            ({"kind": "length", "unit": "words", "least": 2, "most": 3}, "a b c", "a b c d", "4 words, at most 3"),
            ({"kind": "length", "unit": "words", "least": 2}, "a b", " a ", "1 words, at least 2"),
            ({"kind": "length", "unit": "characters", "most": 2}, " 한강 ", "한강변", "3 characters, at most 2"),
            (
                {"kind": "language", "language": "ko"},
                "서울의 API 사용량은 늘었다.",
                "Only 한글 in an English text.",
                "Hangul",
            ),
            ({"kind": "language", "language": "ko"}, "매출", "12 34", "there are no letters"),
            ({"kind": "language", "language": "en"}, "Plain café words, `코드`.", "보고서", "Latin"),
            (
                {"kind": "language", "language": "en"},
                "```\n한글 주석\n```\nDone here.",
                "Только по-русски",
                "0% of the letters",
            ),
            ({"kind": "contains", "texts": ["총 12 명"]}, "총  12\n명이다", "총 13 명", "'총 12 명' is missing"),
            ({"kind": "lacks", "texts": ["TODO"]}, "todo is fine", "a TODO", "'TODO' must not stand there"),
        ],
    )
    def test_each_tells_right_from_wrong(self, check: JsonObject, right: str, wrong: str, said: str) -> None:
        assert not why(right, check)
        assert said in why(wrong, check)

    @pytest.mark.parametrize("form", ["NFC", "NFD"])
    def test_hangul_is_counted_and_found_in_any_form(self, form: str) -> None:
        text = unicodedata.normalize(form, "한강")  # type: ignore[arg-type]
        assert not why(text, {"kind": "length", "unit": "characters", "most": 2})
        assert not why(text, {"kind": "contains", "texts": [unicodedata.normalize("NFD", "한강")]})
        assert not why(text, {"kind": "language", "language": "ko"})

    @pytest.mark.parametrize(
        ("answer", "said"),
        [
            ("| Month | Total |\n|---|---|\n| May | 1 |\n| June | 2 |\n", ""),
            ("Month | More | total:\n:-- | --- | --:\nMay | x | 1\nJune | y | 2", ""),
            ("| x |\n|---|\n\n| **Month** | Total |\n|---|---|\n| May | 1 |\n| June | 2 |\n", ""),
            ("| Month | Total |\n|---|---|\n| May | 1 |\n", "it has 1 rows"),
            ("| Month | Sum |\n|---|---|\n| May | 1 |\n| June | 2 |\n", "the column 'Total' is missing"),
            ("```\n| Month | Total |\n|---|---|\n| May | 1 |\n| June | 2 |\n```\nx", "there is no table"),
            ("| Month | Total |\n| May | 1 |\n| June | 2 |\n", "there is no table"),
            ("Month Total", "there is no table"),
        ],
    )
    def test_a_table_needs_its_columns_and_rows(self, answer: str, said: str) -> None:
        assert why(answer, {"kind": "table", "columns": ["Month", "Total"], "rows": 2}) == said


class TestVerdict:
    def test_all_checks_decide_and_each_failure_is_named(self) -> None:
        length: JsonObject = {"kind": "length", "unit": "words", "most": 3}
        score = scored("# Summary\nfour words stand here", HEADINGS, length, {"kind": "language", "language": "en"})
        assert not score.success
        assert not score.format_valid
        assert score.metrics["format"] == pytest.approx(1 / 3)
        assert (score.metrics["checks"], score.metrics["checks_passed"]) == (3, 1)
        assert score.reason == (
            "2 of 3 format checks failed: headings: the heading 'Findings' is missing; "
            "length: 6 words, at most 3 are allowed"
        )
        right = scored("# Summary\n# Findings", HEADINGS)
        assert (right.success, right.format_valid, right.reason) == (True, True, "1 of 1 format checks passed")

    @pytest.mark.parametrize("answer", ["", " \n\u200b", "\0"])
    def test_an_empty_answer_fails_every_check(self, answer: str) -> None:
        score = scored(answer, {"kind": "lacks", "texts": ["x"]}, {"kind": "length", "unit": "words", "most": 5})
        assert (score.success, score.metrics["format"]) == (False, 0)

    def test_grounding_is_a_view_and_never_part_of_the_verdict(self) -> None:
        score = scored('It was 999 at "Nowhere".', {"kind": "language", "language": "en"}, results=("1",))
        assert score.success
        assert (score.metrics["number_grounding"], score.metrics["entity_grounding"]) == (0, 0)


class TestGrounding:
    @pytest.mark.parametrize(
        ("answer", "result", "share"),
        [
            ("The sum is 89706.", "89706.00", 1),
            ("The sum is about 89,700.", "89706.00", 1),
            ("The sum is about 90 thousand.", "89706.00", 1),
            ("The sum is 89,705.", "89706.00", 0),
            ("합계는 6백20만 원이다.", "6200000", 1),
            ("합계는 약 620만 원이다.", "6213456", 1),
            ("A share of 12.3 %.", "0.12345", 1),
            ("A share of 12.3 %.", "12.34%", 1),
            ("A share of 12.9 %.", "0.12345", 0),
            ("It was 100.", "102", 0),
            ("In 2024 and on 3 May 2025 at 10:30.", "1", None),
            ("1. First\n2) Second\n## 3.1 Third", "1", None),
            ("Row 84", "2026-03-02,coffee,84,252.00", 1),
            ("Sums 3 and 4", "3", 0.5),
            ("3 and 3.0 and 4", "3", 0.5),
            ('{"a": 3, "b": [4.5], "c": "x"}', "3", 0.5),
            ("No figure here", "3", None),
        ],
    )
    def test_numbers_are_found_in_what_tools_returned(self, answer: str, result: str, share: float | None) -> None:
        assert number_grounding(answer, "", [result]).share == share

    def test_what_only_the_question_says_is_given(self) -> None:
        found = number_grounding("At most 500 of 42", "Use at most 500 words.", ["42"])
        assert (found.total, found.grounded, found.given, found.share) == (2, 1, 1, 1)
        names = entity_grounding('"Kim" and "Lee" and "Han"', 'about "kim"', ["LEE  and others"])
        assert (names.total, names.grounded, names.given, names.share) == (3, 1, 1, 0.5)

    @pytest.mark.parametrize(
        ("answer", "share"),
        [
            ('The "Gull  Point" lamp', 1), ("‘Gull Point’ and 「한강」", 1), ('"Nowhere" and "gull point"', 0.5),
            ('{"name": "Gull Point", "note": "Nowhere"}', 0.5), ("no name", None), ("it's Gull Point's", None),
        ],
    )  # fmt: skip
    def test_quoted_names_are_found_in_what_tools_returned(self, answer: str, share: float | None) -> None:
        assert entity_grounding(answer, "", ["at Gull Point,", "한강의"]).share == share


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(10**3, 10**6), min_size=1, max_size=8, unique=True), st.randoms(use_true_random=False))
def test_numbers_of_the_results_are_grounded_in_any_order(values: list[int], random: object) -> None:
    kept = [value for value in values if not 1900 <= value <= 2100]
    results = [f"{value}" for value in kept]
    random.shuffle(results)  # type: ignore[attr-defined]
    assert number_grounding("; ".join(f"{value:,}" for value in kept), "", results).share == (1 if kept else None)


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=400))
def test_no_text_raises_and_every_figure_is_in_range(answer: str) -> None:
    score = scored(answer, *EVERY_KIND, results=(answer, "42"))
    assert score.success == score.format_valid
    assert 0 <= score.metrics["format"] <= 1
    assert all(0 <= score.metrics.get(name, 0) <= 1 for name in ("number_grounding", "entity_grounding"))
    assert len(score.reason.splitlines()) == 1
    score.reason.encode()


@settings(max_examples=100, deadline=None)
@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=15,
    )
)
def test_every_json_value_fits_a_schema_that_asks_for_nothing(value: JsonValue) -> None:
    text = json.dumps(value)
    # keys that one form of Unicode makes equal are refused
    assume("\\u" not in text)
    assert not why(text, {"kind": "json", "schema": {}})


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_answer_is_scored_or_refused_in_bounded_time(name: str) -> None:
    begin = time.perf_counter()
    score = scored(HOSTILE[name], *EVERY_KIND, results=(HOSTILE["many numbers"][:20_000], "42"))
    assert time.perf_counter() - begin < 60
    assert not score.success
    if len(HOSTILE[name]) > 200_000:
        assert score.reason == "the answer has more than 200,000 characters"


class TestTaskFile:
    def load(self, folder: Path, **row: object) -> Task:
        line = json.dumps({"task_id": "t", "question": "Report.", **row})
        (folder / "tasks.jsonl").write_text(line, encoding="utf-8")
        (found,) = Analysis().load(folder)
        return found

    def test_the_team_is_told_every_check_but_those_that_say_otherwise(self, tmp_path: Path) -> None:
        question = self.load(tmp_path, checks=EVERY_KIND).question
        assert question.splitlines()[:4] == [
            "Report.",
            "",
            "Format:",
            '- It has these Markdown headings, in this order: "Summary", "Findings".',
        ]
        assert question.count("\n- ") == len(EVERY_KIND) - 1
        assert "TODO" not in question
        assert '- It has a Markdown table with the columns "Month", "Total" and at least 2 rows.' in question
        assert '"required": ["n"]' in question

    def test_a_task_with_only_untold_checks_keeps_its_question(self, tmp_path: Path) -> None:
        assert self.load(tmp_path, checks=[{"kind": "lacks", "texts": ["x"], "told": False}]).question == "Report."

    @pytest.mark.parametrize(
        ("checks", "said"),
        [
            (None, "is None; write a list of 1 to 50 checks"),
            ([], "is []; write a list"),
            ("x", "is 'x'; write a list"),
            ([1], "check 1 1; write an object"),
            ([HEADINGS, {"kind": "poem"}], "check 2 has the kind 'poem'; known are headings, json"),
            ([{"kind": "headings"}], "has titles None; write a list of texts"),
            ([{"kind": "headings", "titles": ["a", " "]}], "write a list of texts"),
            ([{"kind": "headings", "titles": ["a", "A:"]}], "has a text twice in titles"),
            ([{"kind": "headings", "titles": ["a"], "level": 7}], "has level 7; write a whole number from 0 to 6"),
            ([{"kind": "headings", "titles": ["a"], "order": 1}], "has no field 'order'; known are level, titles"),
            ([{"kind": "length", "unit": "pages", "most": 3}], "has unit 'pages'; write characters or words"),
            ([{"kind": "length", "unit": "words"}], "has neither least nor most"),
            ([{"kind": "length", "unit": "words", "least": 5, "most": 3}], "has least 5 above most 3"),
            ([{"kind": "length", "unit": "words", "most": True}], "has most True"),
            ([{"kind": "language", "language": "fr"}], "has language 'fr'; write ko or en"),
            ([{"kind": "json", "fenced": "yes"}], "has fenced 'yes'; write true or false"),
            ([{"kind": "json", "schema": {"type": "thing"}}], "has a schema that cannot be used: type: 'thing'"),
            ([{"kind": "json", "schema": {"pattern": "("}}], "'(' is not a 'regex'"),
            ([{"kind": "json", "schema": {"$ref": "#"}}], "refers to itself without an end"),
            ([{"kind": "json", "schema": {"$ref": "https://a.example/s"}}], "only references into the schema itself"),
            ([{"kind": "json", "schema": {"properties": {"a": {"$ref": "#/b"}}}}], "'#/b', which it does not have"),
            ([{"kind": "json", "schema": {"$id": "x"}}], "$id would change"),
            ([{"kind": "json", "schema": {"const": "x" * 60_000}}], "longer than 50,000 characters"),
            ([{"kind": "contains", "texts": ["x"], "told": 1}], "'told' that is neither true nor false"),
        ],
    )
    def test_what_cannot_be_used_is_one_line(self, checks: JsonValue, said: str, tmp_path: Path) -> None:
        with pytest.raises(TaskDataError) as caught:
            self.load(tmp_path, checks=checks)
        message = str(caught.value)
        assert said in message
        assert "tasks.jsonl line 1: field 'checks'" in message
        assert len(message.splitlines()) == 1


async def test_the_sample_suite_comes_out_as_its_scripts_tell(database: Database) -> None:
    runs = await played(database, "analysis")
    assert {task_id: run.row.success for task_id, run in runs.items()} == {
        "sample-analysis-kiosk-report": True,
        "sample-analysis-reservoir-json": True,
        "sample-analysis-bus-report": True,
        "sample-analysis-allotment-digest": True,
        "sample-analysis-clinic-waits": False,
        "sample-analysis-menu-json": False,
    }
    for run in runs.values():
        assert run.row.status == "completed"
        assert run.row.format_valid == run.row.success
        assert run.row.tool_calls >= 1
        assert run.row.tool_errors == 0
        assert run.metrics["number_grounding"] == 1
    assert runs["sample-analysis-clinic-waits"].row.score_reason == (
        "2 of 3 format checks failed: headings: the heading 'Recommendation' is out of order; "
        "length: 79 words, at most 60 are allowed"
    )
    assert "not valid JSON" in str(runs["sample-analysis-menu-json"].row.score_reason)

    grounded = view(database, "v_analysis_grounded")
    assert set(grounded) == set(runs)
    assert (
        grounded["sample-analysis-reservoir-json"].number_grounding,
        grounded["sample-analysis-menu-json"].success,
    ) == (1, False)
    assert grounded["sample-analysis-reservoir-json"].entity_grounding == 1
