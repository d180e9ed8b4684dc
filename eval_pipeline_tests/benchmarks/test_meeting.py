"""Coverage of minutes, case by case, and meeting as a benchmark."""

from __future__ import annotations

import importlib.util
import itertools
import json
import time
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_pipeline.benchmarks.base import Answer, Score, Task
from eval_pipeline.benchmarks.meeting import Coverage, MeetingMinutes, cover, read_meeting, read_minutes
from eval_pipeline.benchmarks.meeting_minutes import MAX_ITEMS, TooLongError
from eval_pipeline.benchmarks.meeting_terms import Line, Term, name_key, names_of
from eval_pipeline.benchmarks.research_kiwi import KiwiReader, best_reader
from eval_pipeline.benchmarks.research_words import PlainReader
from eval_pipeline.errors import TaskDataError
from eval_pipeline_tests.benchmarks.hostile_texts import HOSTILE
from eval_pipeline_tests.benchmarks.sample_runs import played
from eval_pipeline_tests.conftest import Database

DECISION: dict[str, Any] = {"type": "decision", "terms": [["budget", "예산"], ["approved", "승인"]]}
ACTION: dict[str, Any] = {
    "type": "action",
    "terms": [["report", "보고서"], ["draft", "초안"]],
    "owner": ["Kim", "김철수"],
    "due": "2026-11-30",
}
WITH_FORBID = DECISION | {"forbid": ["not", "부결"]}

APPROVED, DRAFT = "Budget approved", "Kim drafts the report: draft until Nov 30"


def gold(*items: dict[str, Any], day_first: bool = False) -> str:
    return json.dumps({"meeting_date": "2026-11-16", "day_first": day_first, "items": items})


def lines(*texts: str, of: str | None = None) -> Coverage:
    return cover(read_minutes("\n".join(f"- {text}" for text in texts)), read_meeting(of or gold(DECISION, ACTION)))


def entries(*values: Any, of: str | None = None) -> Coverage:
    items = [{"text": value} if isinstance(value, str) else value for value in values]
    return cover(read_minutes(json.dumps({"items": items})), read_meeting(of or gold(DECISION, ACTION)))


def scored(text: str, *items: dict[str, Any], **thresholds: float) -> Score:
    task = Task("t", "meeting", 1, "?", gold(*items or (DECISION, ACTION)))
    return MeetingMinutes(PlainReader()).score(task, Answer(None, text), thresholds)


class TestWorkedCases:
    @pytest.mark.parametrize(
        ("minutes", "coverage", "precision"),
        [
            ((APPROVED, DRAFT), 1, 1),
            ((DRAFT, APPROVED), 1, 1),
            ((APPROVED, "draft of the report until Nov 30"), 0.75, 1),
            ((APPROVED, "Kim: draft of the report until Dec 1"), 0.75, 1),
            ((APPROVED, "Lee: draft of the report until Nov 30"), 0.75, 1),
            ((APPROVED,), 0.5, 1),
            ((), 0, None),
            ((f"{APPROVED}; {DRAFT}",), 0.5, 1),
            ((APPROVED, DRAFT, "The next meeting is on Friday"), 1, 0.667),
            ((APPROVED, APPROVED), 0.5, 0.5),
            (("예산 승인", "김철수 11월 30일까지 보고서 초안"), 1, 1),
            (("Budget was not approved", DRAFT), 1, 1),
            (("The money was agreed to", DRAFT), 0.5, 0.5),
        ],
    )
    def test_coverage_and_precision_of_structured_minutes_are_as_stated(
        self, minutes: tuple[str, ...], coverage: float, precision: float | None
    ) -> None:
        result = entries(*minutes)
        assert result.coverage == coverage
        assert (result.precision and round(result.precision, 3)) == precision

    def test_a_forbidden_term_undoes_the_hit(self) -> None:
        of = gold(WITH_FORBID, ACTION)
        assert entries("Budget was not approved", DRAFT, of=of).coverage == 0.5
        assert entries("예산 승인 안건 부결", DRAFT, of=of).coverage == 0.5
        assert entries(APPROVED, DRAFT, of=of).coverage == 1

    def test_a_line_of_text_may_serve_several_items(self) -> None:
        assert lines(f"{APPROVED}; {DRAFT}").coverage == 1
        assert lines(APPROVED, DRAFT).coverage == lines(DRAFT, APPROVED).coverage == 1
        assert lines(APPROVED, DRAFT, "something else").precision == pytest.approx(2 / 3)


class TestHits:
    @pytest.mark.parametrize(("found", "hit"), [("a b c d e", 1), ("a b c", 1), ("a b", 0)])
    def test_sixty_per_cent_of_the_groups_are_enough(self, found: str, hit: float) -> None:
        of = gold({"type": "topic", "terms": [["a"], ["b"], ["c"], ["d"], ["e"]]})
        assert lines(found, of=of).coverage == hit

    def test_a_missing_owner_and_a_wrong_date_together_are_still_half_a_hit(self) -> None:
        assert lines("draft report until Dec 24").hits == (0, 0.5)

    @pytest.mark.parametrize(
        ("entry", "hit"),
        [
            ({"text": "report draft", "owner": "Kim", "due": "2026-11-30"}, 1),
            ({"text": "report draft", "owner": ["Lee", "Kim"], "due": "in two weeks"}, 1),
            ({"title": "report", "details": {"what": "draft"}, "담당자": "김 철수", "기한": "11월 30일"}, 1),
            ({"text": "Kim: report draft until Nov 30"}, 1),
            ({"text": "Kim: report draft", "owner": "Lee", "due": "2026-11-30"}, 0.5),
            ({"text": "Kim: report draft until Nov 30", "owner": None, "due": None}, 0.5),
            ({"text": "report draft until Nov 30", "owner": "Kim", "due": "2026-12-01"}, 0.5),
            ({"text": "report", "owner": "draft"}, 0),
        ],
    )
    def test_a_field_for_owner_or_date_counts_instead_of_the_text(self, entry: dict[str, Any], hit: float) -> None:
        assert entries(entry).hits[1] == hit

    def test_an_attendee_with_a_role_is_the_one_who_is_named(self) -> None:
        of = gold({"type": "attendee", "name": "Kim"})
        assert entries({"type": "attendee", "name": "Kim", "role": "chair"}, of=of).coverage == 1
        assert entries({"type": "attendee", "text": "Kim Lee"}, of=of).coverage == 0

    def test_weights_say_how_much_an_item_counts(self) -> None:
        assert lines(APPROVED, of=gold(DECISION | {"weight": 3}, ACTION)).coverage == 0.75

    def test_the_assignment_gives_up_a_hit_for_two(self) -> None:
        first = {"type": "topic", "terms": [["roof"]]}
        second = {"type": "topic", "terms": [["roof"], ["leak"]]}
        assert entries("roof", "the leak in the roof", of=gold(first, second)).coverage == 1
        assert entries("the leak in the roof", "roof", of=gold(second, first)).precision == 1

    def test_every_type_has_a_coverage_of_its_own(self) -> None:
        result = lines(APPROVED, "Attendees: Lee", of=gold(DECISION, ACTION, {"type": "attendee", "name": "Lee"}))
        assert result.by_type == {"attendee": 1, "decision": 1, "action": 0}


class TestTerms:
    @pytest.mark.parametrize(
        ("term", "line", "occurs"),
        [
            ("budget", "The BUDGET.", True),
            ("budget", "budgets", False),
            ("budget*", "budgets", True),
            ("budget", "budget를", True),
            ("not", "a note", False),
            ("C++", "in C++, not C", True),
            ("next step", "next   step", True),
            ("next step", "nextstep", False),
            ("30", "30%", True),
            ("30", "130", False),
            ("30", "1.30", False),
            ("3", "3,000", False),
            ("Straße", "STRASSE", True),
            ("승인", "승인되었습니다", True),
            ("승인", "개발비승인", True),
            ("승인", "미승인", False),
            ("공개", "비공개로", False),
            ("예산 집행", "예산집행은", True),
            ("예산집행", "예산 집행은", False),
            ("안", "예산안", False),
            ("안", "안 한다", True),
            ("승인", unicodedata.normalize("NFD", "승인"), True),
            ("승인", "승\u200b인", True),
        ],
    )
    def test_a_term_occurs_as_a_word_of_its_language(self, term: str, line: str, occurs: bool) -> None:
        assert Term(term).occurs(Line(line)) == occurs

    def test_the_spaces_of_a_name_do_not_matter(self) -> None:
        assert Term("김철수", spaced=True).occurs(Line("담당: 김 철수"))
        assert Term("김 철수", spaced=True).occurs(Line("김철수가"))
        assert not Term("김철수").occurs(Line("김 철수"))

    @pytest.mark.skipif(importlib.util.find_spec("kiwipiepy") is None, reason="needs the extra korean")
    @pytest.mark.parametrize(
        ("term", "line", "occurs"),
        [
            ("미루다", "일정을 하반기로 미뤘다", True),
            ("일정 연기", "일정을 연기하기로 했다", True),
            ("일정 연기", "연기할 일정", False),
            ("예산 승인", "예산은 미승인되었다", False),
            ("budget", "budgets", False),
        ],
    )
    def test_the_analyser_finds_other_forms_of_the_same_words(self, term: str, line: str, occurs: bool) -> None:
        reader = best_reader()
        assert isinstance(reader, KiwiReader)
        assert Term(term).occurs(Line(line, reader)) == occurs
        assert not Term(term).occurs(Line(line))

    def test_another_reader_is_another_scorer(self) -> None:
        assert MeetingMinutes(PlainReader()).scorer_version == "meeting-1"
        if importlib.util.find_spec("kiwipiepy"):
            assert MeetingMinutes().scorer_version.startswith("meeting-1+kiwi-")


class TestNames:
    @pytest.mark.parametrize(
        ("line", "names"),
        [
            ("참석자: 김철수 부장, 이영희(PM), 박 민수님", {"김철수", "이영희", "박민수"}),
            ("참석: 김철수와 이영희 및 표다인 사서", {"김철수", "이영희", "표다인", "표다인사서"}),
            ("Attendees: Dr. Hana Seo, Tom Ellison and Lee", {"hanaseo", "tomellison", "lee"}),
            ("**Present:** Kim / Lee; Park", {"kim", "lee", "park"}),
            ("- Priya Nair (chair)", {"priyanair"}),
            ("| Kim | Lee |", {"kim", "lee"}),
            ("불참: 민해온", set()),
            ("Absent: Kim", set()),
            ("참석: 김철수 / 불참: 박민수", {"김철수"}),
            ("Present: Kim. Apologies: Lee", {"kim"}),
            ("draft — owner: Kim — due: Nov 30", set()),
            ("Kim: will write the draft", {"willwritethedraft"}),
        ],
    )
    def test_a_line_lists_names_without_titles(self, line: str, names: set[str]) -> None:
        assert names_of(line) == names

    @pytest.mark.parametrize(
        ("one", "other"),
        [("김 철수 부장님", "김철수"), ("Dr. Kim", "kim"), (unicodedata.normalize("NFD", "김철수 씨"), "김철수")],
    )
    def test_titles_spaces_and_forms_of_unicode_are_no_part_of_a_name(self, one: str, other: str) -> None:
        assert name_key(one) == name_key(other)

    def test_a_name_in_a_sentence_is_no_attendee(self) -> None:
        of = gold({"type": "attendee", "name": ["Kim", "김철수"]})
        assert lines("Kim writes the report", of=of).coverage == 0
        assert lines("Attendees: Lee, 김철수", of=of).coverage == 1


class TestMinutes:
    def items(self, text: str) -> list[str]:
        return [item.text for item in read_minutes(text).items]

    def test_headings_rules_and_marks_are_no_items(self) -> None:
        text = "# Minutes\n\n**Decisions**\n1. First\n2) Second\n---\n결정 사항:\n• 셋째\n- [ ] fourth\n> fifth\n"
        assert self.items(text) == ["First", "Second", "셋째", "fourth", "fifth"]

    def test_a_line_with_nothing_but_owner_and_date_belongs_to_the_item_above(self) -> None:
        text = "- Report draft\n  - Owner: Kim\n  - **기한**: 11월 30일\n- Owner: Lee; task: order bread\n"
        assert self.items(text) == ["Report draft; Owner: Kim; **기한**: 11월 30일", "Owner: Lee; task: order bread"]
        assert lines("x", of=gold(ACTION)).coverage == 0
        assert cover(read_minutes(text), read_meeting(gold(ACTION))).coverage == 1

    @pytest.mark.parametrize(
        "text", ['[{"text": "a"}, "b", 5]', '{"decisions": ["a", "b"], "actions": [{"text": "5"}]}']
    )
    def test_the_lists_of_a_json_answer_are_its_items(self, text: str) -> None:
        minutes = read_minutes(f"```json\n{text}\n```")
        assert minutes.structured
        assert [item.text for item in minutes.items] == ["a", "b", "5"]

    @pytest.mark.parametrize("text", ['{"a": [', '["a"] and more', "[decision] a", '{"items": ["a"], "items": []}'])
    def test_what_is_not_quite_json_is_read_as_lines(self, text: str) -> None:
        assert not read_minutes(text).structured

    def test_what_is_longer_than_any_minutes_is_refused(self) -> None:
        with pytest.raises(TooLongError, match="at most 300,000"):
            read_minutes("x" * 300_001)
        with pytest.raises(TooLongError, match=f"more than {MAX_ITEMS:,} items"):
            read_minutes("x\n" * (MAX_ITEMS + 1))


topics = st.lists(
    st.builds(
        lambda words, weight: {"type": "topic", "terms": [[word] for word in words], "weight": weight},
        st.lists(st.sampled_from("abcdef"), min_size=1, max_size=3, unique=True),
        st.integers(1, 3),
    ),
    min_size=1,
    max_size=4,
)
said = st.lists(st.lists(st.sampled_from("abcdefx"), min_size=1, max_size=4).map(" ".join), max_size=4)


class TestProperties:
    @given(topics)
    def test_minutes_that_say_everything_cover_everything(self, items: list[dict[str, Any]]) -> None:
        everything = [" ".join(word for (word,) in item["terms"]) for item in items]
        for result in (lines(*everything, of=gold(*items)), entries(*everything, of=gold(*items))):
            assert (result.coverage, result.precision) == (1, 1)

    @given(topics, said)
    def test_figures_are_in_range_and_lines_cover_no_less_than_entries(
        self, items: list[dict[str, Any]], texts: list[str]
    ) -> None:
        free, structured = lines(*texts, of=gold(*items)), entries(*texts, of=gold(*items))
        assert 0 <= structured.coverage <= free.coverage <= 1
        for result in (free, structured):
            assert result.precision is None if not texts else 0 <= (result.precision or 0) <= 1

    @given(topics, said)
    def test_no_assignment_covers_more(self, items: list[dict[str, Any]], texts: list[str]) -> None:
        table = [[lines(text, of=gold(item)).coverage for text in texts] for item in items]
        columns = [*range(len(texts)), *[-1] * len(items)]
        best = max(
            sum(
                item["weight"] * (row[column] if column >= 0 else 0)
                for item, row, column in zip(items, table, chosen, strict=True)
            )
            for chosen in itertools.permutations(columns, len(items))
        )
        total = sum(item["weight"] for item in items)
        assert entries(*texts, of=gold(*items)).coverage == pytest.approx(best / total)

    @given(topics, said, st.randoms())
    def test_the_order_of_items_does_not_matter(self, items: Any, texts: Any, random: Any) -> None:
        mixed, other = random.sample(items, len(items)), random.sample(texts, len(texts))
        for read in (lines, entries):
            one, two = read(*texts, of=gold(*items)), read(*other, of=gold(*mixed))
            assert (two.coverage, two.precision) == (pytest.approx(one.coverage), one.precision)

    @settings(max_examples=50)
    @given(st.text(st.characters(exclude_categories=())))
    def test_no_answer_raises(self, text: str) -> None:
        score = scored(text)
        assert score.reason.isprintable()
        assert 0 <= score.metrics["coverage"] <= 1


class TestBenchmark:
    @pytest.mark.parametrize("text", ["", " \n\t\u3000"])
    def test_an_empty_answer_has_no_valid_format(self, text: str) -> None:
        score = scored(text)
        assert (score.success, score.format_valid, score.reason) == (False, False, "no minutes")
        assert score.metrics["coverage"] == 0
        assert "precision_items" not in score.metrics

    def test_the_reason_says_what_is_missing_without_quoting_it(self) -> None:
        score = scored("- draft of the report")
        assert score.reason == (
            "covers 25.0% of 2 items; missing: 1 decision; without the right owner or date: 1 action"
        )
        assert (score.metrics["items_missed"], score.metrics["items_incomplete"]) == (1, 1)

    def test_four_fifths_are_enough_unless_the_suite_says_otherwise(self) -> None:
        items = [{"type": "topic", "terms": [[word]]} for word in ("alpha", "beta", "gamma", "delta", "omega")]
        text = "alpha\nbeta\ngamma\ndelta"
        assert scored(text, *items).success
        assert not scored(text, *items, coverage=0.81).success
        assert not scored("alpha\nbeta\ngamma", *items).success

    @pytest.mark.parametrize("name", HOSTILE)
    def test_hostile_answers_are_wrong_soon(self, name: str) -> None:
        task = Task("t", "meeting", 1, "?", gold(*[DECISION, ACTION, {"type": "attendee", "name": "김철수"}] * 5))
        started = time.monotonic()
        assert not MeetingMinutes().score(task, Answer(None, HOSTILE[name])).success
        assert time.monotonic() - started < 30

    def test_the_longest_minutes_are_scored_soon(self) -> None:
        started = time.monotonic()
        score = scored("\n".join(f"예산 승인 {number}, 보고서 초안 김철수 11월 29일" for number in range(MAX_ITEMS)))
        assert score.metrics["coverage"] == 0.75
        assert time.monotonic() - started < 30


class TestLoader:
    def load(self, folder: Path, **fields: object) -> Task:
        row = {"task_id": "one", "question": "?", "meeting_date": "2026-11-16", "items": [DECISION], **fields}
        (folder / "tasks.jsonl").write_text(json.dumps(row), encoding="utf-8")
        (loaded,) = MeetingMinutes().load(folder)
        return loaded

    def test_items_and_the_day_of_the_meeting_are_part_of_the_tasks_content(self, tmp_path: Path) -> None:
        first = self.load(tmp_path, meeting_date="16 Nov 2026")
        assert read_meeting(first.gold).date.isoformat() == "2026-11-16"
        hashes = {
            self.load(tmp_path, **fields).content_hash
            for fields in ({}, {"meeting_date": "2026-11-17"}, {"day_first": True}, {"items": [ACTION]})
        }
        assert len(hashes) == 4

    @pytest.mark.parametrize(
        ("fields", "said"),
        [
            ({"meeting_date": "soon"}, "field 'meeting_date' is 'soon'; write YYYY-MM-DD"),
            ({"day_first": 1}, "field 'day_first' is 1; write true or false"),
            ({"items": []}, "field 'items' is []; write a list of 1 to 200 items"),
            ({"items": [DECISION] * 201}, "write a list of 1 to 200 items"),
            ({"items": ["x"]}, "items[0] is 'x', not an object"),
            ({"items": [{"type": "task"}]}, "items[0].type is 'task'; write one of attendee, decision, action, topic"),
            ({"items": [{"type": "attendee", "terms": [["x"]]}]}, "items[0]: attendee has no key 'terms'"),
            ({"items": [{"type": "attendee"}]}, "items[0].name is None"),
            ({"items": [DECISION, {"type": "topic", "terms": []}]}, "items[1].terms is []; write a list of 1 to 20"),
            ({"items": [{"type": "topic", "terms": [[" "]]}]}, "items[0].terms[0] has ' '"),
            ({"items": [{"type": "topic", "terms": [["a\0"]]}]}, "items[0].terms[0] has 'a\\x00'"),
            ({"items": [{"type": "topic", "terms": [["\ud800"]]}]}, "half of a surrogate pair"),
            ({"items": [{"type": "topic", "terms": [["x" * 201]]}]}, "write texts of 1 to 200 characters"),
            ({"items": [DECISION | {"weight": 0}]}, "items[0].weight is 0; write a number above 0"),
            ({"items": [DECISION | {"weight": True}]}, "items[0].weight is True"),
            ({"items": [DECISION | {"due": "Friday"}]}, "items[0].due is 'Friday'; write YYYY-MM-DD"),
            ({"items": [DECISION | {"owner": []}]}, "items[0].owner is []"),
        ],
    )
    def test_a_wrong_row_is_refused_in_one_line(self, tmp_path: Path, fields: Any, said: str) -> None:
        with pytest.raises(TaskDataError) as caught:
            self.load(tmp_path, **fields)
        message = str(caught.value)
        assert said in message
        assert "tasks.jsonl line 1" in message
        assert message.isprintable()


async def test_the_sample_suite_comes_out_as_its_scripts_say(database: Database) -> None:
    runs = await played(database, "meeting")
    verdicts = {name: (run.row.success, run.row.format_valid, run.row.score_reason) for name, run in runs.items()}
    budget = verdicts.pop("sample-meeting-budget")
    assert verdicts == {
        "sample-meeting-festival": (True, True, "covers 100.0% of 8 items"),
        "sample-meeting-clinic": (True, True, "covers 100.0% of 8 items"),
        "sample-meeting-robots": (True, True, "covers 100.0% of 7 items"),
        "sample-meeting-allotments": (
            False,
            True,
            "covers 72.7% of 8 items; without the right owner or date: 3 action",
        ),
    }
    # with the analyser one action more is found, which changes the figure and not the verdict
    assert budget[:2] == (False, True)
    assert "missing: 1 decision" in str(budget[2])
    figures = runs["sample-meeting-allotments"].metrics
    assert (figures["coverage_action"], figures["coverage_decision"]) == (0.5, 1)
    assert {run.row.scorer_version for run in runs.values()} == {MeetingMinutes().scorer_version}
