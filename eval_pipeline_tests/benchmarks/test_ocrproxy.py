"""The character error rate, case by case and against jiwer, and ocrproxy as a benchmark."""

from __future__ import annotations

import json
import random
import time
import unicodedata
from pathlib import Path
from typing import Any

import jiwer
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

import eval_pipeline.sample_data
from eval_pipeline.benchmarks.base import Answer, Score, Task
from eval_pipeline.benchmarks.cer import cer, errors, jamo_errors, normalise
from eval_pipeline.benchmarks.ocr_pages import split_pages
from eval_pipeline.benchmarks.ocrproxy import OcrProxy, compare
from eval_pipeline.errors import TaskDataError
from eval_pipeline_tests.benchmarks.hostile_texts import HOSTILE
from eval_pipeline_tests.benchmarks.sample_runs import played
from eval_pipeline_tests.conftest import Database

SAMPLES = OcrProxy().load(Path(eval_pipeline.sample_data.__file__).parent / "ocrproxy")


def nfd(text: str) -> str:
    return unicodedata.normalize("NFD", text)


def scored(text: str, *pages: str, thresholds: dict[str, float] | None = None, **flags: bool) -> Score:
    task = Task("t", "ocrproxy", 1, "?", json.dumps(pages), extra={**flags})
    return OcrProxy().score(task, Answer(None, text), thresholds or {})


class TestWorkedCases:
    @pytest.mark.parametrize(
        ("reference", "hypothesis", "rate"),
        [
            ("abc", "abd", 0.333),
            ("abc", "", 1),
            ("", "", 0),
            ("", "abc", None),
            ("abc", "abcabcabc", 2.0),
            ("한글", "한국", 0.5),
            ("한글", nfd("한글"), 0),
            ("café", nfd("café"), 0),
            ("a b", "ab", 0.333),
            ("a  b", "a b", 0),
            (" ab", "ab", 0),
            ("ab\ncd", "ab cd", 0),
            ("AB", "ab", 1.0),
            ("１２", "12", 1.0),
            ("“a”", '"a"', 0.667),
            ("ﬁn", "fin", 1.0),
            ("가나다", "가다나", 0.667),
            ("한글 문서", "한국 문서", 0.2),
        ],
    )
    def test_the_rate_is_as_stated(self, reference: str, hypothesis: str, rate: float | None) -> None:
        found = cer(reference, hypothesis)
        assert (None if found is None else round(found, 3)) == rate

    def test_by_its_letters_a_syllable_is_only_partly_wrong(self) -> None:
        assert (jamo_errors("한글", "한국").edits, jamo_errors("한글", "한국").characters) == (2, 6)

    def test_pages_are_summed_up_and_their_mean_is_another_figure(self) -> None:
        result = compare(["abc", "abcdefghij"], "=== page 1 ===\nabd\n=== page 2 ===\nabcdefghij")
        assert (round(result.rate, 3), round(result.mean_rate or 0, 3)) == (0.077, 0.167)

    @pytest.mark.parametrize(("reference", "hypothesis"), [("１２", "12"), ("ﬁn", "fin")])
    def test_a_task_may_ask_for_compatible_characters_to_be_equal(self, reference: str, hypothesis: str) -> None:
        assert normalise(reference, nfkc=True) == normalise(hypothesis, nfkc=True)
        assert scored(hypothesis, reference, nfkc=True).metrics["cer"] == 0
        assert scored(hypothesis, reference).metrics["cer"] == 1


class TestNormalisation:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            (" a \t\u00a0\u3000 b\r\nc ", "a b c"),
            ("a\u200bb\u00adc\ufeffd\u200d\u202ee\u2066", "abcde"),
            ("\u1112\u1161\u200b\u11ab", "한"),
            ("①② ½", "①② ½"),
            ("\n \n", ""),
        ],
    )
    def test_what_nobody_sees_does_not_count(self, text: str, expected: str) -> None:
        assert normalise(text) == expected

    def test_a_task_may_keep_its_lines(self) -> None:
        assert normalise(" a  b \r\n\n c\rd ", keep_lines=True) == "a b\nc\nd"
        assert scored("ab cd", "ab\ncd", keep_lines=True).metrics["cer"] == 0.2
        assert scored("ab cd", "ab\ncd").metrics["cer"] == 0

    def test_marks_without_a_composed_form_are_part_of_their_character(self) -> None:
        assert errors("x\u0323\u0304y", "xy").edits == 1
        assert errors("\u1112\u119e\u11ab", "한").rate == 1  # one old syllable for one of today


characters = st.sampled_from("abc 가각힣é１①")
texts = st.text(characters, max_size=30)


class TestProperties:
    @given(texts, texts)
    def test_jiwer_counts_the_same_edits_of_every_kind(self, reference: str, hypothesis: str) -> None:
        reference, hypothesis = normalise(reference), normalise(hypothesis)
        if not reference:
            return
        theirs = jiwer.process_characters(reference, hypothesis)
        ours = errors(reference, hypothesis)
        assert ours.rate == pytest.approx(theirs.cer)
        assert ours.edits == theirs.substitutions + theirs.deletions + theirs.insertions
        assert (ours.substitutions or 0) + (ours.deletions or 0) + (ours.insertions or 0) == ours.edits
        assert (ours.insertions or 0) - (ours.deletions or 0) == len(hypothesis) - len(reference)

    @given(st.lists(st.tuples(texts.filter(normalise), texts), min_size=1, max_size=4))
    def test_jiwer_sums_pages_up_the_same_way(self, pairs: list[tuple[str, str]]) -> None:
        pages = [normalise(page) for page, _ in pairs]
        answers = [normalise(answer) for _, answer in pairs]
        marked = "".join(f"=== page {number} ===\n{text}\n" for number, text in enumerate(answers, 1))
        assert compare(pages, marked).rate == pytest.approx(jiwer.process_characters(pages, answers).cer)

    @given(st.text(min_size=1))
    def test_a_text_is_equal_to_itself_in_every_form(self, text: str) -> None:
        if not normalise(text):
            return
        for form in (text, nfd(text), f"  {text}\n", text.replace(" ", "\n"), "\u200b".join(normalise(text))):
            assert cer(text, form) == 0

    @given(texts, texts, texts)
    def test_the_edits_are_a_distance(self, one: str, other: str, third: str) -> None:
        def distance(a: str, b: str) -> int:
            return errors(a, b).edits

        assert distance(one, other) == distance(other, one)
        assert distance(one, third) <= distance(one, other) + distance(other, third)
        assert (distance(one, other) == 0) == (one == other)

    @given(texts.filter(normalise), st.text(st.characters(exclude_categories=())))
    @settings(max_examples=50)
    def test_no_answer_raises_and_figures_are_in_range(self, page: str, text: str) -> None:
        score = scored(text, page, page)
        assert score.metrics["cer"] >= 0
        assert 0 <= score.metrics["accuracy"] <= 1
        assert score.reason.isprintable()


class TestPages:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("=== page 1 ===\na\n=== page 2 ===\nb", ["a", "b"]),
            ("=== page 2 ===\nb\n=== page 1 ===\na", ["a", "b"]),
            ("==  Page 1  ==\na\n== 2 ==\n====== PAGE 2 ======\nb", ["a == 2 ==", "b"]),
            ("=== 1 ===\na", None),
            ("=== 쪽 1 ===\na\n=== 페이지 2 ===\nb", ["a", "b"]),
            ("first\n=== page 1 ===\na", ["first a", ""]),
            ("=== page 2 ===\nb", ["", "b"]),
            ("=== page 1 ===\na\n=== page 1 ===\nc\n=== page 2 ===\nb", ["a c", "b"]),
            ("=== page 1 ===\na\n=== page 9 ===\nc", ["a", "c"]),
            ("```\n=== page 1 ===\na\n=== page 2 ===\nb\n```", ["a", "b"]),
            ("=== page 1 ===\r\na\r\n=== page 2 ===\r\nb", ["a", "b"]),
            ("a b", None),
        ],
    )
    def test_marked_pages_are_told_apart_and_nothing_is_lost(self, text: str, expected: list[str] | None) -> None:
        found = split_pages(text, 2)
        assert (None if found is None else [normalise(page) for page in found]) == expected

    def test_one_page_needs_no_marker_and_may_have_one(self) -> None:
        assert split_pages("a", 1) == ["a"]
        assert scored("=== page 1 ===\nabc", "abc").metrics["cer"] == 0
        assert scored("```\nabc\n```", "abc").metrics["cer"] == 0

    def test_without_markers_all_pages_are_one_text_and_the_reason_says_so(self) -> None:
        score = scored("abc\ndef", "abc", "def")
        assert (score.success, score.metrics["cer"]) == (True, 0)
        assert "cer_page_mean" not in score.metrics
        assert score.reason.endswith("no line marks any of the 2 pages, so they count as one text")

    def test_text_on_a_blank_page_counts_and_leaves_that_page_without_a_rate(self) -> None:
        result = compare(["abcd", ""], "=== page 1 ===\nabcd\n=== page 2 ===\nxy")
        assert result.rate == 0.5
        assert result.mean_rate == 0
        assert result.pages[1].rate is None


class TestBenchmark:
    def test_one_error_in_twenty_is_right_unless_the_suite_says_otherwise(self) -> None:
        page = "abcdefghijklmnopqrst"
        assert scored("x" + page[1:], page).success
        assert not scored("xy" + page[2:], page).success
        assert scored("xy" + page[2:], page, thresholds={"cer": 0.1}).success
        assert not scored("x" + page[1:], page, thresholds={"cer": 0.04}).success

    @pytest.mark.parametrize("text", ["", " \n\u3000", "\u200b\u00ad", "```\n```", "=== page 1 ===\n"])
    def test_an_answer_without_a_visible_character_has_no_valid_format(self, text: str) -> None:
        score = scored(text, "abc")
        assert (score.success, score.format_valid, score.reason) == (False, False, "no text")
        assert (score.metrics["cer"], score.metrics["accuracy"]) == (1, 0)

    def test_figures_and_reason_say_what_is_wrong_where(self) -> None:
        score = scored("=== page 1 ===\nabc\n=== page 2 ===\n한국x", "abc", "한글")
        assert score.metrics == {
            "cer": 0.4, "accuracy": 0.6, "cer_jamo": pytest.approx(3 / 9), "cer_page_mean": 0.5, "characters": 5,
            "edits": 2, "substitutions": 1, "deletions": 0, "insertions": 1,
        }  # fmt: skip
        assert score.reason == "CER 0.400: 2 edits for 5 characters; most of them on page 2"

    @pytest.mark.parametrize("name", HOSTILE)
    def test_hostile_answers_are_wrong_soon(self, name: str) -> None:
        started = time.monotonic()
        assert not scored(HOSTILE[name], "급수 중단 안내, page one. " * 40, "page two " * 40).success
        assert time.monotonic() - started < 30

    def test_markers_without_end_are_read_soon(self) -> None:
        started = time.monotonic()
        assert not scored("=== page 1 ===\n" * 100_000, "abc", "def").success
        assert not scored("==" + " " * 1_000_000, "abc", "def").success
        assert time.monotonic() - started < 30

    def test_long_texts_that_are_alike_are_compared_exactly_and_soon(self) -> None:
        rng = random.Random(7)
        page = "".join(rng.choices("가나다라마바사 abcdef", k=90_000)).strip()
        page = normalise(page)
        wrong = list(page)
        for place in rng.sample(range(len(page)), 900):
            wrong[place] = "힣"
        started = time.monotonic()
        score = scored("".join(wrong), page)
        assert score.success
        assert score.metrics["edits"] == 900
        assert time.monotonic() - started < 30

    def test_long_texts_that_are_not_alike_get_the_least_that_it_can_be(self) -> None:
        score = scored("가나 " * 1_500_000, "abcdef " * 1000)
        assert (score.success, score.format_valid) == (False, True)
        assert score.reason.startswith("CER at least 641.")
        assert score.metrics["edits"] == pytest.approx(4_493_000, rel=0.001)
        assert "substitutions" not in score.metrics


class TestLoader:
    def load(self, folder: Path, **fields: object) -> Task:
        pages = folder / "materials" / "doc"
        pages.mkdir(parents=True, exist_ok=True)
        (pages / "page-1.txt").write_text("t3xt", encoding="utf-8")
        row = {"task_id": "one", "question": "?", "gold": "text", "materials": ["doc"], **fields}
        (folder / "tasks.jsonl").write_text(json.dumps(row), encoding="utf-8")
        (loaded,) = OcrProxy().load(folder)
        return loaded

    def test_pages_and_flags_are_part_of_the_tasks_content(self, tmp_path: Path) -> None:
        first = self.load(tmp_path)
        assert (first.gold, first.extra) == ('["text"]', {})
        assert self.load(tmp_path, keep_lines=True, nfkc=False).extra == {"keep_lines": True}
        assert self.load(tmp_path, gold=["text"]).content_hash == first.content_hash
        assert self.load(tmp_path, nfkc=True).content_hash != first.content_hash

    @pytest.mark.parametrize(
        ("fields", "said"),
        [
            ({"gold": 5}, "field 'gold' is 5; write the text, or a list of 1 to 200 pages"),
            ({"gold": []}, "field 'gold' is []"),
            ({"gold": ["a", 1]}, "field 'gold' has a page that is no text"),
            ({"gold": "a\0"}, "a NUL character"),
            ({"gold": "\ud800"}, "half of a surrogate pair"),
            ({"gold": ["", " \u200b"]}, "field 'gold' has no text"),
            ({"gold": "x" * 100_001}, "a page of more than 100,000 characters"),
            ({"gold": ["a", "b"]}, "has 2 pages in 'gold' and 1 files in 'materials'"),
            ({"materials": []}, "has 1 pages in 'gold' and 0 files"),
            ({"keep_lines": "yes"}, "field 'keep_lines' is 'yes'; write true or false"),
        ],
    )
    def test_a_wrong_row_is_refused_in_one_line(self, tmp_path: Path, fields: Any, said: str) -> None:
        with pytest.raises(TaskDataError) as caught:
            self.load(tmp_path, **fields)
        assert said in str(caught.value)
        assert str(caught.value).isprintable()


class TestSamples:
    def test_every_task_has_an_image_that_opens_and_noisy_text_that_is_no_answer(self) -> None:
        for task in SAMPLES:
            assert task.attachment is not None
            with Image.open(task.attachment.path) as image:
                image.verify()
            noisy = [material.path.read_text(encoding="utf-8") for material in task.materials]
            assert 0 < compare(json.loads(task.gold), "\n".join(noisy)).rate < 0.6

    def test_every_gold_text_is_right_by_its_own_rule(self) -> None:
        for task in SAMPLES:
            pages = "\n".join(f"=== page {number} ===\n{page}" for number, page in enumerate(json.loads(task.gold), 1))
            assert OcrProxy().score(task, Answer(None, pages)).metrics["cer"] == 0

    async def test_the_sample_suite_comes_out_as_its_scripts_say(self, database: Database) -> None:
        runs = await played(database, "ocrproxy")
        verdicts = {name: (run.row.success, run.row.format_valid, run.row.score_reason) for name, run in runs.items()}
        assert verdicts == {
            "sample-ocrproxy-notice": (True, True, "CER 0.000: 0 edits for 193 characters"),
            "sample-ocrproxy-recipe": (True, True, "CER 0.000: 0 edits for 467 characters"),
            "sample-ocrproxy-newsletter": (True, True, "CER 0.000: 0 edits for 336 characters"),
            "sample-ocrproxy-letter": (True, True, "CER 0.000: 0 edits for 278 characters"),
            "sample-ocrproxy-timetable": (False, True, "CER 0.191: 36 edits for 188 characters"),
            "sample-ocrproxy-diary": (
                False,
                True,
                "CER 0.485: 148 edits for 305 characters; most of them on page 2",
            ),
        }
        figures = runs["sample-ocrproxy-timetable"].metrics
        assert (figures["substitutions"], figures["insertions"]) == (36, 0)
        assert figures["cer_jamo"] < figures["cer"]
        assert runs["sample-ocrproxy-diary"].row.tool_errors == 1
