"""GAIA's rule and the reading of the answer line, case by case."""

from __future__ import annotations

import csv
import time
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.benchmarks.base import Answer, Benchmark, Task
from eval_pipeline.benchmarks.gaia import Gaia, extract_final_answer, normalize, official_success, score
from eval_pipeline.benchmarks.registry import BENCHMARKS, benchmark
from eval_pipeline.errors import SuiteError

SHARED_CASES = Path(__file__).parents[3] / "shared" / "cases"
MEGABYTES_10 = 10_000_000


def shared_rows(name: str) -> list[dict[str, str]]:
    """The rows of a case file that lies beside the checkout; skips the test where there is none."""
    path = SHARED_CASES / name
    if not path.is_file():
        pytest.skip(f"the shared cases are not beside this checkout: no {name}")
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def none_or(text: str) -> str | None:
    return None if text == "<None>" else text


class TestSharedCases:
    def test_every_pair_has_the_expected_verdict(self) -> None:
        rows = shared_rows("gaia_cases.csv")
        wrong = [
            row["id"]
            for row in rows
            if score(none_or(row["predicted"]), row["gold"]).success != (row["expected_success"] == "1")
        ]
        assert (len(rows) > 50, wrong) == (True, [])

    def test_every_pair_has_the_leaderboards_verdict(self) -> None:
        rows = shared_rows("gaia_cases.csv")
        wrong = [
            row["id"]
            for row in rows
            if official_success(none_or(row["predicted"]), row["gold"]) != (row["official_leaderboard"] == "1")
        ]
        assert (len(rows) > 50, wrong) == (True, [])

    def test_every_text_has_the_expected_answer(self) -> None:
        rows = shared_rows("gaia_extract_cases.csv")
        wrong = [
            row["id"]
            for row in rows
            if extract_final_answer(row["text_escaped"].encode("latin-1").decode("unicode-escape"))
            != none_or(row["expected"])
        ]
        assert (len(rows) > 10, wrong) == (True, [])


class TestExtraction:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            # the label
            ("FINAL ANSWER: Lagos", "Lagos"),
            ("So it is. FINAL ANSWER: Lagos", "Lagos"),
            ("FINAL ANSWER \t\u00a0:Lagos", "Lagos"),
            ("FINAL ANSWER：서울", "서울"),
            ("FINAL ANSWER\n: Lagos", None),
            ("FINAL  ANSWER: Lagos", None),
            ("Final Answer: Lagos", None),
            ("FINAL ANSWER Lagos", None),
            ("FINAL ANSWER = Lagos", None),
            ("FINAL ANSWERS: Lagos", None),
            ("", None),
            ("Lagos", None),
            # where the value is
            ("FINAL ANSWER: 9\nAPPROVE", "9"),
            ("FINAL ANSWER:\n9\nAPPROVE", "9"),
            ("FINAL ANSWER: \t \n  9 \nx", "9"),
            ("FINAL ANSWER:\r\n9\r\nx", "9"),
            ("FINAL ANSWER:\r\r\n9", "9"),
            ("FINAL ANSWER:\n\n9", None),
            ("FINAL ANSWER:\r\n\r\n9", None),
            ("FINAL ANSWER:\n \t\n9", None),
            ("FINAL ANSWER:\n", None),
            ("FINAL ANSWER: ", None),
            ("FINAL ANSWER: 1, 2,\n3", "1, 2,"),
            ("FINAL ANSWER: 10:30", "10:30"),
            # the last one counts
            ("FINAL ANSWER: 1\nFINAL ANSWER: 2\n", "2"),
            ("FINAL ANSWER: 1 FINAL ANSWER: 2", "2"),
            ("FINAL ANSWER: FINAL ANSWER: 2", "2"),
            ("FINAL ANSWER:\nFINAL ANSWER: 2", "2"),
            ("FINAL ANSWER:\n1 FINAL ANSWER: 2", "2"),
            ("FINAL ANSWER: 1 FINAL ANSWER:\n2", "2"),
            # a label without a value does not hide the one before it
            ("FINAL ANSWER: 1\nFINAL ANSWER:\n", "1"),
            ("FINAL ANSWER: 1 FINAL ANSWER:", "1"),
            ("FINAL ANSWER: 1\nFINAL ANSWER: <answer>", "1"),
            ("FINAL ANSWER:\nFINAL ANSWER: <answer>", None),
            ("FINAL ANSWER: FINAL ANSWER:\n", None),
            # what is around the value
            ("**FINAL ANSWER:** 7", "7"),
            ("**FINAL ANSWER: 7**", "7"),
            ("**FINAL ANSWER:**\n7", "7"),
            ("**FINAL ANSWER:**\n\n7", None),
            ("FINAL ANSWER: `7`", "7"),
            ("FINAL ANSWER:\n```\n7\n```", None),
            ("FINAL ANSWER: ```\n7\n```", "7"),
            ('FINAL ANSWER: "7"', "7"),
            ("FINAL ANSWER: '7'", "7"),
            ("FINAL ANSWER: “7”", "7"),
            ("FINAL ANSWER: ‘7’", "7"),
            ("FINAL ANSWER: 「서울」", "서울"),
            ('FINAL ANSWER: **"7"**', "7"),
            ('FINAL ANSWER: "**7**"', "7"),
            ('FINAL ANSWER: " 7 "', "7"),
            ("FINAL ANSWER: \u3000\u00a07\u2003", "7"),
            ('FINAL ANSWER: ""7""', '"7"'),
            ("FINAL ANSWER: \"7'", "\"7'"),
            ('FINAL ANSWER: 5"', '5"'),
            ('FINAL ANSWER: "', '"'),
            ('FINAL ANSWER: "a" and "b"', '"a" and "b"'),
            ('FINAL ANSWER: "a", "b", "c"', '"a", "b", "c"'),
            ('FINAL ANSWER: "he said "no" to us"', 'he said "no" to us'),
            ("FINAL ANSWER: 'don't'", "don't"),
            ("FINAL ANSWER: [7]", "[7]"),
            ("FINAL ANSWER: a * b", "a * b"),
            ("FINAL ANSWER: ...", "..."),
            ('FINAL ANSWER: ""', None),
            ('FINAL ANSWER: ""\n7', None),
            ("FINAL ANSWER: ****", None),
            # placeholders
            ("FINAL ANSWER: <answer>", None),
            ("FINAL ANSWER: <your answer here>.", None),
            ("FINAL ANSWER: `<answer>`", None),
            ('FINAL ANSWER: "<answer>".', None),
            ("FINAL ANSWER: <>", None),
            ("FINAL ANSWER: <answer>\n7", None),
            ("FINAL ANSWER:\n<answer>", None),
            ("FINAL ANSWER: [YOUR FINAL ANSWER]", None),
            ("FINAL ANSWER: [your answer].", None),
            ("FINAL ANSWER: [YOUR FINAL ANSWER]. It should be a number OR as few words as possible.", None),
            ("FINAL ANSWER: [YOURS]", "[YOURS]"),
            ("FINAL ANSWER: <b>7</b>", "<b>7</b>"),
            ("FINAL ANSWER: x < 7", "x < 7"),
            ("FINAL ANSWER: <7", "<7"),
            # anything at all
            ("FINAL ANSWER: a\0b", "a\0b"),
            ("FINAL ANSWER: \ud800", "\ud800"),
            ("FINAL ANSWER: 한국어, 日本語", "한국어, 日本語"),
        ],
    )
    def test_the_value_is_what_the_format_says(self, text: str, expected: str | None) -> None:
        assert extract_final_answer(text) == expected

    @given(st.text(alphabet='FINAL ANSWER:\n\r*`"<>[] 5：', max_size=60))
    def test_no_text_makes_it_fail_and_what_it_returns_needs_no_unwrapping(self, text: str) -> None:
        value = extract_final_answer(f"FINAL ANSWER: {text}")
        assert value is None or (value and value == value.strip().strip("*`") and "\n" not in value)

    @given(st.text())
    def test_a_text_without_the_label_has_no_answer(self, text: str) -> None:
        assert extract_final_answer(text.replace("ANSWER", "answer")) is None

    @pytest.mark.parametrize(
        "text",
        [
            "FINAL ANSWER:" * (MEGABYTES_10 // 13),
            "FINAL ANSWER:\n" * (MEGABYTES_10 // 14),
            "FINAL ANSWER: <x>\n" * (MEGABYTES_10 // 18),
            "FINAL ANSWER" + " " * MEGABYTES_10,
            "FINAL ANSWER: " + " *" * (MEGABYTES_10 // 2),
            "FINAL ANSWER: " + '"' * MEGABYTES_10,
            "FINAL ANSWER: '" + "a'a" * (MEGABYTES_10 // 3) + "'",
            "FINAL ANSWER: <" + "<" * MEGABYTES_10,
            "FINAL ANSWER: [" + " " * MEGABYTES_10,
            "가" * MEGABYTES_10,
        ],
        ids=lambda text: text[:20],
    )
    def test_a_huge_text_does_not_hang_it(self, text: str) -> None:
        begin = time.perf_counter()
        extract_final_answer(text)
        assert time.perf_counter() - begin < 20


class TestNormalize:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            # numbers
            ("12", 12.0),
            (" 12.50 ", 12.5),
            ("+12", 12.0),
            ("-0", 0.0),
            (".5", 0.5),
            ("5.", 5.0),
            ("1e3", 1000.0),
            ("1_000", 1000.0),
            ("１２", 12.0),
            ("$12", 12.0),
            ("-$12", -12.0),
            ("$-12", -12.0),
            ("€ 12", 12.0),
            ("12 €", 12.0),
            ("£12", 12.0),
            ("¥12", 12.0),
            ("₩12,000", 12000.0),
            ("12%", 12.0),
            ("12 %", 12.0),
            ("Infinity", float("inf")),
            ("-inf", float("-inf")),
            ("1e999", float("inf")),
            # thousands
            ("1,000", 1000.0),
            ("12,345,678.9", 12345678.9),
            ("-1,000", -1000.0),
            ("1,000e3", 1_000_000.0),
            ("$1,000 ", 1000.0),
            ("1,0000", "10000"),
            ("1000,000", "1000000"),
            ("12,34", "1234"),
            (",123", "123"),
            ("123,", "123"),
            ("0,123", "0123"),
            ("1,000.5,0", (1.0, 0.5, 0.0)),
            ("1, 000", "1000"),
            ("1,00,000", (1.0, 0.0, 0.0)),
            # not numbers
            ("nan", "nan"),
            ("-NaN", "nan"),
            ("1 000", "1000"),
            ("12 km", "12km"),
            ("1/2", "12"),
            ("−5", "−5"),
            ("- 5", "-5"),
            ("0x10", "0x10"),
            ("", ""),
            (" \n", ""),
            ("%", "%"),
            ("€", "€"),
            # lists
            ("a;b", ("a", "b")),
            ("a; b;", ("a", "b", "")),
            ("a,b,c", ("a", "b", "c")),
            ("A, 2, 3%", ("a", 2.0, 3.0)),
            ("1,000; 2", (1000.0, 2.0)),
            ("1,2,3; x", ((1.0, 2.0, 3.0), "x")),
            (";", ("", "")),
            (",,", ("", "", "")),
            ("a, b", "ab"),
            ("nan; inf", ("nan", float("inf"))),
            # texts
            ("The  Hague", "thehague"),
            ("a\u00a0b\u3000c\td", "abcd"),
            ("U.S.A.", "usa"),
            ("3.5 m", "3.5m"),
            ("v1.2.3", "v1.2.3"),
            ("p. 5", "p5"),
            ("5. 3 m", "5.3m"),
            (".5 m", "5m"),
            ("-5 °C", "-5°c"),
            ("(-5 °C)", "-5°c"),
            ("from 3-5 m", "from35m"),
            ("covid-19", "covid19"),
            ("x--5", "x-5"),
            ("well-known", "wellknown"),
            ("a_b`c~d|e^f\\g", "abcdefg"),
            ("c++ & c#", "cc"),
            ("...", "..."),
            (" ?! ", "?!"),
            ("? !", "? !"),
            ("“x”", "“x”"),
            ("STRASSE", "strasse"),
            ("Straße", "straße"),
            ("cafe\u0301", "café"),
            ("\u1109\u1165\u110b\u116e\u11af", "서울"),
            ("a\0b", "a\0b"),
            ("\ud800", "\ud800"),
        ],
    )
    def test_each_kind_reads_as_the_rule_says(self, text: str, expected: object) -> None:
        value = normalize(text)
        assert value == expected
        assert type(value) is type(expected)

    @given(st.text())
    def test_composed_and_decomposed_text_are_the_same(self, text: str) -> None:
        assert normalize(unicodedata.normalize("NFD", text)) == normalize(text)

    @given(st.text(alphabet="ab1. -\t$%"))
    def test_white_space_inside_a_text_never_counts(self, text: str) -> None:
        assert normalize(" ".join(f"x{text}")) == normalize(f"x{text}")


class TestScore:
    @pytest.mark.parametrize(
        ("predicted", "gold", "success", "reason"),
        [
            ("1,234", "1234", True, "matches the gold answer"),
            ("1234", "1,234", True, "matches"),
            ("$3.50", "3.5", True, "matches"),
            ("40 %", "40", True, "matches"),
            ("2.0000009", "2", True, "matches"),
            ("2.000002", "2", False, "another number than the gold answer"),
            ("0.4", "40%", False, "another number"),
            ("inf", "Infinity", True, "matches"),
            ("-inf", "inf", False, "another number"),
            ("nan", "nan", True, "matches"),
            ("no idea", "inf", False, "a text where the gold answer is a number"),
            ("4", "four", False, "a number where the gold answer is a text"),
            ("the hague", "The Hague.", True, "matches"),
            ("Hague", "The Hague", False, "another text"),
            ("red; green", "red;green", True, "matches"),
            ("red, green", "red; green", False, "a text where the gold answer is a list"),
            ("green, red, blue", "red, green, blue", False, "element 1: another text"),
            ("red, green", "red, green, blue", False, "a text where the gold answer is a list"),
            ("a, b, c, d", "a, b, c", False, "a list of 4 where the gold answer has 3"),
            ("a, 2.0, $3", "A, 2, 3", True, "matches"),
            ("a, b, c", "a, b, 3", False, "element 3: a text where the gold answer is a number"),
            ("1,2,3; x", "1, 2, 3; X", True, "matches"),
            ("1,2,4; x", "1, 2, 3; X", False, "element 1: element 3: another number"),
            ("?", "-", False, "another text"),
            ("None", "none", True, "matches"),
        ],
    )
    def test_the_verdict_and_its_reason_follow_the_rule(
        self, predicted: str, gold: str, success: bool, reason: str
    ) -> None:
        verdict = score(predicted, gold)
        assert (verdict.success, verdict.format_valid) == (success, True)
        assert verdict.reason.startswith(reason)

    @pytest.mark.parametrize("predicted", [None, "", " \n\t"])
    @pytest.mark.parametrize("gold", ["", "None", "none", "...", "7", "inf"])
    def test_no_answer_is_wrong_whatever_the_gold_answer_is(self, predicted: str | None, gold: str) -> None:
        verdict = score(predicted, gold)
        assert (verdict.success, verdict.format_valid, verdict.reason) == (False, False, "no final answer")

    @given(st.text(min_size=1).filter(str.strip))
    def test_every_text_matches_itself(self, text: str) -> None:
        assert score(text, text).success

    @given(st.text(alphabet="12ab,;. -$"), st.text(alphabet="12ab,;. -$"))
    def test_the_verdict_is_the_equality_of_the_normalised_answers(self, predicted: str, gold: str) -> None:
        if predicted.strip():
            assert score(predicted, gold).success == (normalize(predicted) == normalize(gold))

    @given(st.text(min_size=1), st.text(min_size=1))
    def test_the_verdict_is_the_same_from_both_sides(self, one: str, other: str) -> None:
        if one.strip() and other.strip():
            assert score(one, other).success == score(other, one).success

    @given(st.text(alphabet="qxz", min_size=4))
    def test_the_reason_quotes_neither_answer(self, gold: str) -> None:
        assert gold not in score("7", gold).reason + score(f"{gold}; 1", f"{gold}; 2").reason

    @pytest.mark.parametrize("unit", ["1", ",", "a;", ".", "-", "1.", "-1", " a", ",000", "가", "$", "\u1112\u1161"])
    def test_a_huge_answer_does_not_hang_it(self, unit: str) -> None:
        answer = "1" + unit * (MEGABYTES_10 // len(unit))
        begin = time.perf_counter()
        assert not score(answer, "a, b, c").success
        official_success(answer, "a, b, c")
        assert time.perf_counter() - begin < 30


class TestOfficialVerdict:
    """Pairs of our own for each branch of the leaderboard's scorer, its mistakes included."""

    @pytest.mark.parametrize(
        ("predicted", "gold", "success"),
        [
            ("$1,234%", "1234", True),
            ("€1234", "1234", False),
            ("1234", "1,234", False),
            ("2.0000001", "2", False),
            ("1_0", "10", True),
            ("whatever", "1e999", True),
            ("nan", "nan", False),
            ("a;b", "A, B", True),
            ("a, b.", "a, b", False),
            ("a, b", "a, b, c", False),
            ("$5, x", "5, x", True),
            ("1, x", "inf, x", False),
            ("one; x", "inf; X", True),
            ("seven!", "Seven", True),
            ("se ven", "seven", True),
            ("e\u0301", "é", False),
            ("", "?!", True),
            (None, "None", True),
            (None, "none.", True),
            (None, "7", False),
            (None, "inf", True),
        ],
    )
    def test_it_decides_as_the_leaderboard_does(self, predicted: str | None, gold: str, success: bool) -> None:
        assert official_success(predicted, gold) is success


class TestBenchmark:
    task = Task(task_id="t", benchmark="gaia", level=1, question="?", gold="1,234")

    def test_gaia_is_a_benchmark_of_one_line_answers(self) -> None:
        gaia: Benchmark = Gaia()
        assert (gaia.name, gaia.answers, gaia.format_block) == ("gaia", "line", "")
        assert gaia.scorer_version
        assert dict(gaia.thresholds) == {}

    @pytest.mark.parametrize(
        ("final", "success", "format_valid", "official"),
        [("1234", True, True, 0.0), ("1,234", True, True, 1.0), ("7", False, True, 0.0), (None, False, False, 0.0)],
    )
    def test_it_scores_the_answer_line_and_keeps_the_official_verdict_beside_it(
        self, final: str | None, success: bool, format_valid: bool, official: float
    ) -> None:
        verdict = Gaia().score(self.task, Answer(final=final, full_text="FINAL ANSWER: 1,234"))
        assert (verdict.success, verdict.format_valid) == (success, format_valid)
        assert dict(verdict.metrics) == {"official_success": official}

    def test_the_registry_knows_it_by_name(self) -> None:
        assert benchmark("gaia") is BENCHMARKS["gaia"]
        assert all(name == entry.name for name, entry in BENCHMARKS.items())

    def test_an_unknown_benchmark_is_one_line_with_the_known_ones(self) -> None:
        with pytest.raises(SuiteError, match=r"there is no benchmark 'gaya'; known are .*gaia"):
            benchmark("gaya")
