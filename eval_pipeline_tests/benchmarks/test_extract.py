"""The comparison of JSON objects, case by case, and extract as a benchmark."""

from __future__ import annotations

import importlib.util
import itertools
import json
import subprocess
import sys
import time
import unicodedata
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eval_pipeline.sample_data
from eval_pipeline.benchmarks import extract_match
from eval_pipeline.benchmarks.assignment import best_pairs
from eval_pipeline.benchmarks.base import Answer, Score, Task
from eval_pipeline.benchmarks.extract import Extract, compare
from eval_pipeline.benchmarks.extract_match import TooLargeError
from eval_pipeline.benchmarks.extract_schema import SchemaError
from eval_pipeline.benchmarks.extract_values import Typed, read_number, value_key
from eval_pipeline.errors import TaskDataError
from eval_pipeline_tests.benchmarks.hostile_texts import HOSTILE
from eval_pipeline_tests.benchmarks.sample_runs import played
from eval_pipeline_tests.conftest import Database

SAMPLES = Path(eval_pipeline.sample_data.__file__).parent / "extract"
GENERATOR = Path(__file__).parents[2] / "scripts" / "make_extract_files.py"
PEN, CAP = {"name": "pen", "pieces": 2}, {"name": "cap", "pieces": 1}
NFD = unicodedata.normalize("NFD", "김철수")


def task(gold: object, schema: object = None) -> Task:
    extra: Any = {} if schema is None else {"schema": schema}
    return Task("t", "extract", 1, "?", json.dumps(gold), extra=extra)


def scored(text: str, gold: object, schema: object = None, **thresholds: float) -> Score:
    return Extract().score(task(gold, schema), Answer(None, text), thresholds)


class TestWorkedCases:
    @pytest.mark.parametrize(
        ("gold", "predicted", "accuracy", "f1"),
        [
            ({"no": "A1", "total": "10.00"}, {"no": "A1", "total": "10.00"}, 1, 1),
            ({"no": "A1", "total": "10.00"}, {"no": "A1"}, 0.5, 0.667),
            ({"no": "A1"}, {"no": "A1", "total": "10.00"}, 1, 0.667),
            ({"no": "A1", "total": "10.00"}, {"no": "A1", "total": 10.0}, 0.5, 0.5),
            ({"n": 10}, {"n": 10.0}, 1, 1),
            ({"no": "A1", "date": "2024-01-05"}, {"no": "A1", "date": "05/01/2024"}, 0.5, 0.5),
            ({"no": "A1", "note": None}, {"no": "A1"}, 1, 1),
            ({"no": "A1", "note": None}, {"no": "A1", "note": None}, 1, 1),
            ({"no": "A1", "note": None}, {"no": "A1", "note": ""}, 1, 0.667),
            ({"no": "A1", "note": None}, {"no": "A1", "note": "x"}, 1, 0.667),
            ({"items": [PEN, CAP]}, {"items": [CAP, PEN]}, 1, 1),
            (
                {"items": [PEN, CAP]},
                {"items": [{"name": "pen", "pieces": 1}, {"name": "cap", "pieces": 2}]},
                0.5,
                0.5,
            ),
            ({"items": [PEN, CAP]}, {"items": [PEN]}, 0.5, 0.667),
            ({"items": [PEN]}, {"items": [PEN, PEN]}, 1, 0.667),
            ({"a": {"b": "x"}}, {"a.b": "x"}, 0, 0),
            ({"name": "김 철수"}, {"name": "김철수"}, 0, 0),
            ({"name": "김철수"}, {"name": NFD}, 1, 1),
            ({"list": ["a", "b", "b"]}, {"list": ["b", "a"]}, 0.667, 0.8),
            ({}, {}, 1, 1),
            ({}, {"x": 1}, 0, 0),
            ({"a": True}, {"a": "true"}, 0, 0),
            ({"a": True}, {"a": 1}, 0, 0),
        ],
    )
    def test_accuracy_and_f1_are_as_stated(self, gold: Any, predicted: Any, accuracy: float, f1: float) -> None:
        result = compare(predicted, gold)
        assert (round(result.accuracy, 3), round(result.f1, 3)) == (accuracy, f1)
        assert result.exact == (accuracy == f1 == 1)


class TestComparison:
    @pytest.mark.parametrize(
        ("gold", "predicted", "matched"),
        [
            ({"a": 1}, None, 0),
            ({"a": 1}, [1], 0),
            ({"a": 1}, {"a": [1]}, 0),
            ({"a": [1]}, {"a": 1}, 0),
            ({"a": {"b": 1}}, {"a": "b"}, 0),
            ({"a": [1, 2]}, {"a": [2, 1, 1]}, 2),
            ({"a": [[1, 2], [3]]}, {"a": [[3], [2, 1]]}, 3),
            ({"a": [1, {"b": 2}, [3]]}, {"a": [[3], 1, {"b": 2}]}, 3),
            ({"a": [{"b": [{"c": 1}, {"c": 2}]}]}, {"a": [{"b": [{"c": 2}, {"c": 1}]}]}, 2),
            ({"a": "x  y\n"}, {"a": " x y"}, 1),
            ({"a": "X"}, {"a": "x"}, 0),
            ({"a": "x."}, {"a": "x"}, 0),
            ({"a": 0.1}, {"a": 0.1}, 1),
            ({"a": ""}, {"a": ""}, 1),
        ],
    )
    def test_each_value_is_compared_with_its_own(self, gold: Any, predicted: Any, matched: int) -> None:
        assert compare(predicted, gold).matched == matched

    def test_items_are_paired_so_that_the_most_values_match(self) -> None:
        # the first gold item would take the first predicted one, which only the second can use
        gold = {"a": [{"x": 1, "y": 1}, {"x": 1, "y": 2}]}
        predicted = {"a": [{"x": 1, "y": 2}, {"x": 1, "y": 3}]}
        assert compare(predicted, gold).matched == 3

    def test_the_counts_say_which_field_is_wrong_and_which_is_missing(self) -> None:
        gold = {"no": "A1", "lines": [{"price": 5, "name": "pen"}, {"price": 7, "name": "cap"}]}
        result = compare({"no": "A2", "lines": [{"price": 5, "name": "pen"}, {"name": "cap"}]}, gold)
        counts = {name: (count.gold, count.matched, count.missing) for name, count in result.fields.items()}
        assert counts == {"no": (1, 0, 0), "lines[].price": (2, 1, 1), "lines[].name": (2, 2, 0)}

    @pytest.mark.parametrize(
        ("gold", "predicted", "similarity"),
        [
            ({"a": "abcd"}, {"a": "abcd"}, 1),
            ({"a": "abcd"}, {"a": "abce"}, 0.75),
            ({"a": "abcd"}, {"a": "axyz"}, 0),
            ({"a": ["abcd", "x"]}, {"a": ["x", "abce"]}, 0.875),
            ({"a": "x" * 20_000}, {"a": "x" * 19_999}, 0),
        ],
    )
    def test_similarity_is_a_view_of_how_much_of_a_text_is_right(
        self, gold: Any, predicted: Any, similarity: float
    ) -> None:
        assert compare(predicted, gold).similarity == pytest.approx(similarity)

    def test_lists_of_lists_that_would_take_for_ever_are_refused(self) -> None:
        gold: Any = {"a": [{"b": [number]} for number in range(200)]}
        predicted: Any = {"a": [{"b": [number]} for number in range(5000)]}
        with pytest.raises(TooLargeError, match="too long to be compared"):
            compare(predicted, gold)

    def test_a_thousand_rows_in_another_order_are_compared(self) -> None:
        rows = [{"id": number, "kind": number % 7, "name": f"n{number}"} for number in range(1000)]
        assert compare({"a": rows[::-1]}, {"a": rows}).exact


class TestSchema:
    @pytest.mark.parametrize(
        ("shape", "gold", "predicted", "same"),
        [
            ("number", "10.00", 10, True),
            ("number", 1234.5, "$1,234.50", True),
            ("number", 29500, "29,500원", True),
            ("number", 29500, "₩29500", True),
            ("number", 10, "10 kg", False),
            ("number", 10, True, False),
            ("number", 10, "1,0", False),
            ({"type": "number", "decimal_comma": True}, 1234.5, "1.234,50 €", True),
            ("date", "2024-01-05", "January 5, 2024", True),
            ("date", "2024-01-05", "2024년 1월 5일", True),
            ("date", "2024-01-05", "05/01/2024", False),
            ({"type": "date", "day_first": True}, "2024-01-05", "05/01/2024", True),
            ({"type": "date", "day_first": True}, "2024-01-05", "01/05/2024", False),
            ({"type": "date", "year_first": True}, "2024-01-05", "24.01.05", True),
            ("date", "2024-01-05", 20240105, True),
            ("date", "2024-01-05", "soon", False),
            ("id", "DE 123-4", "de123-4", True),
            ("id", "A1", "A-1", False),
            ("id", "12", 12, True),
            ("text", "Kim", "kim", False),
            ("text", "12", 12, True),
            ("text", "a\u00a0b", "a b", True),
            ("enum", "Paid", "paid ", True),
            ({"type": "enum", "values": ["paid", "open"]}, "paid", "open", False),
            ({"type": "enum", "values": {"paid": ["지급", "완납"]}}, "paid", "완납", True),
            ({"type": "enum", "values": {"paid": ["지급"], "open": []}}, "open", "지급", False),
        ],
    )
    def test_a_typed_value_is_compared_by_its_type(self, shape: Any, gold: Any, predicted: Any, same: bool) -> None:
        result = compare({"v": predicted}, {"v": gold}, {"properties": {"v": shape}})
        assert result.matched == int(same)

    def test_an_ordered_list_keeps_its_places(self) -> None:
        ordered: Any = {"properties": {"a": {"ordered": True, "items": "text"}}}
        assert compare({"a": ["x", "y"]}, {"a": ["y", "x"]}, ordered).matched == 0
        assert compare({"a": ["x", None, "y"]}, {"a": ["x", None, "y"]}, ordered).exact
        assert compare({"a": ["x", "y"]}, {"a": ["x", None, "y"]}, ordered).matched == 1
        assert compare({"a": ["x", "y", "z"]}, {"a": ["x", "y"]}, ordered).f1 == pytest.approx(0.8)

    def test_types_reach_into_lists_and_objects(self) -> None:
        schema: Any = {"properties": {"a": {"items": {"properties": {"합계": "number"}}}}}
        decomposed = unicodedata.normalize("NFD", "합계")
        assert compare({"a": [{decomposed: "5원"}]}, {"a": [{"합계": 5}]}, schema).exact

    @pytest.mark.parametrize(
        ("schema", "said"),
        [
            (5, "schema: is 5; write a type or an object"),
            ("money", "schema: type is 'money'; write one of number, date, enum, id, text"),
            ({"typ": "number"}, "schema: there is no key 'typ'"),
            ({"properties": []}, "schema.properties: is []"),
            ({"properties": {"a": {"items": "x"}}}, "schema.properties.a.items: type is 'x'"),
            ({"items": "text", "properties": {"a": "text"}}, "either a list or an object"),
            ({"type": "number", "items": "text"}, "a number has no properties and no items"),
            ({"type": "number", "day_first": True}, "day_first is for the type date"),
            ({"day_first": True}, "day_first needs a type"),
            ({"type": "text", "values": ["a"]}, "values are for the type enum"),
            ({"type": "enum", "values": [1]}, "schema.values: is [1]"),
            ({"type": "enum", "values": {"a": "b"}}, "schema.values: is {'a': 'b'}"),
            ({"ordered": "yes"}, "schema.ordered: is 'yes'; write true or false"),
        ],
    )
    def test_a_wrong_schema_names_its_place(self, schema: Any, said: str) -> None:
        with pytest.raises(SchemaError) as caught:
            compare({}, {}, schema)
        assert said in str(caught.value)
        assert str(caught.value).isprintable()


class TestNumbers:
    @pytest.mark.parametrize(
        ("text", "number"),
        [
            ("1,234,567.89", "1234567.89"), ("1 234 567", "1234567"), ("1'234", "1234"), (".5", "0.5"), ("5.", "5"),
            ("-5", "-5"), ("−5", "-5"), ("- 5", "-5"), ("+5", "5"), ("-$5", "-5"), ("$-5", "-5"), ("US$ 5", "5"),
            ("5 USD", "5"), ("금5", None), ("5%", "5"), ("1e3", "1000"), ("１２", "12"), ("12원정", "12"),
            ("1,23", None), ("12,34,567", None), ("1.2.3", None), ("", None), ("-", None), ("$", None), ("--5", None),
            ("nan", None), ("inf", None), ("1_000", None), ("0x10", None), ("5 6", None), ("1$2", None),
            ("9" * 500, None), ("1e9999", "1e9999"), ("1e99999", None),
        ],
    )  # fmt: skip
    def test_currency_and_grouping_are_no_part_of_a_number(self, text: str, number: str | None) -> None:
        assert read_number(text) == (None if number is None else Decimal(number))

    @given(st.decimals(allow_nan=False, allow_infinity=False, places=2, min_value=-(10**9), max_value=10**9))
    def test_a_number_reads_the_same_however_it_is_written(self, number: Any) -> None:
        assert read_number(f"{number:,}") == number
        assert read_number(f"₩{number:,}" if number >= 0 else f"-₩{-number:,}") == number
        assert read_number(str(number)) == number

    @given(st.text(), st.sampled_from(["number", "date", "enum", "id", "text"]))
    def test_every_text_has_a_key_or_none(self, text: str, kind: Any) -> None:
        key = value_key(text, Typed(kind))
        assert key is None or hash(key) is not None
        assert key == value_key(text, Typed(kind))


scalars = st.one_of(
    st.booleans(), st.integers(-3, 3), st.floats(-3, 3, allow_nan=False), st.text(max_size=4), st.sampled_from("ab")
)
trees: Any = st.recursive(
    scalars | st.none(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("xyz"), inner, max_size=3),
    max_leaves=12,
)
objects = st.dictionaries(st.sampled_from("abcd"), trees, max_size=4)
rows = st.lists(st.fixed_dictionaries({"x": st.integers(0, 2), "y": st.integers(0, 2)}), max_size=4)


def shuffled(value: Any, data: st.DataObject) -> Any:
    if isinstance(value, dict):
        return {key: shuffled(value[key], data) for key in data.draw(st.permutations(list(value)))}
    if isinstance(value, list):
        return data.draw(st.permutations([shuffled(child, data) for child in value]))
    return value


class TestProperties:
    @given(objects)
    def test_an_object_is_equal_to_itself(self, gold: Any) -> None:
        result = compare(gold, gold)
        assert (result.accuracy, result.f1, result.exact, result.similarity) == (1, 1, True, 1)
        assert scored(json.dumps(gold), gold).success

    @given(objects, objects)
    def test_figures_are_in_range_and_consistent(self, predicted: Any, gold: Any) -> None:
        result = compare(predicted, gold)
        assert 0 <= result.accuracy <= 1
        assert 0 <= result.f1 <= 1
        assert 0 <= result.matched <= min(result.gold, result.predicted)
        assert result.accuracy - 1e-9 <= result.similarity <= 1
        assert result.exact == (result.f1 == 1)
        assert sum(count.gold for count in result.fields.values()) in (result.gold, 0)

    @given(objects, objects, st.data())
    def test_the_order_of_keys_and_items_does_not_matter(self, predicted: Any, gold: Any, data: st.DataObject) -> None:
        other = compare(shuffled(predicted, data), shuffled(gold, data))
        result = compare(predicted, gold)
        assert (other.accuracy, other.f1, other.exact) == (result.accuracy, result.f1, result.exact)

    @given(objects, objects)
    def test_matches_are_the_same_from_either_side(self, one: Any, other: Any) -> None:
        assert compare(one, other).matched == compare(other, one).matched

    @given(rows, rows)
    def test_no_pairing_of_rows_matches_more(self, predicted: Any, gold: Any) -> None:
        long, short = (gold, predicted) if len(gold) >= len(predicted) else (predicted, gold)
        best = max(
            sum((a["x"] == b["x"]) + (a["y"] == b["y"]) for a, b in zip(chosen, short, strict=True))
            for chosen in itertools.permutations(long, len(short))
        )
        assert compare({"rows": predicted}, {"rows": gold}).matched == best

    @given(st.lists(st.lists(st.integers(0, 5), min_size=3, max_size=3), min_size=1, max_size=5))
    def test_no_assignment_has_a_larger_sum(self, weights: list[list[int]]) -> None:
        pairs = best_pairs(weights)
        assert len({row for row, _ in pairs}) == len({column for _, column in pairs}) == len(pairs)
        # columns -1 stand for rows without a pair
        choices = itertools.permutations([0, 1, 2, *[-1] * len(weights)], len(weights))
        sums = (
            sum(row[column] for row, column in zip(weights, chosen, strict=True) if column >= 0) for chosen in choices
        )
        assert sum(weights[row][column] for row, column in pairs) == max(sums)

    @settings(max_examples=50)
    @given(st.text(st.characters(exclude_categories=())))
    def test_no_answer_raises(self, text: str) -> None:
        score = scored(text, {"a": 1})
        assert score.reason.isprintable()
        assert score.metrics["field_accuracy"] in (0, 1)


class TestBenchmark:
    def test_a_right_answer_with_more_than_asked_for_is_a_success_that_says_so(self) -> None:
        score = scored('{"a": 1, "b": 2}', {"a": 1})
        assert (score.success, score.format_valid) == (True, True)
        assert score.metrics["f1"] == pytest.approx(2 / 3)
        assert score.reason == "1 of 1 values match; 1 more than asked for"

    def test_a_suite_can_ask_for_less_than_everything(self) -> None:
        assert not scored('{"a": 1}', {"a": 1, "b": 2}).success
        assert scored('{"a": 1}', {"a": 1, "b": 2}, field_accuracy=0.5).success

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("", "not_json: there is no text"),
            ("[1]", "not_json: it is JSON, but no object"),
            ('{"a": 1, "a": 1}', "not_json: the key 'a' stands twice in one object"),
        ],
    )
    def test_what_is_no_object_has_no_valid_format(self, text: str, reason: str) -> None:
        for gold in ({"a": 1}, {}):
            score = scored(text, gold)
            assert (score.success, score.format_valid, score.reason) == (False, False, reason)
            assert (score.metrics["field_accuracy"], score.metrics["f1"]) == (0, 0)

    def test_what_is_too_large_to_compare_is_an_object_all_the_same(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(extract_match, "MAX_WORK", 1000)
        gold = {"a": [{"b": [number]} for number in range(50)]}
        score = scored(json.dumps(gold), gold)
        assert (score.success, score.format_valid) == (False, True)
        assert score.reason.startswith("too_large: ")

    def test_the_reason_names_fields_and_quotes_no_value(self) -> None:
        gold = {"total": "secret-gold", "bad\nkey": 1, **{f"k{number}": number for number in range(9)}}
        score = scored('{"total": "secret-guess"}', gold)
        assert score.reason == ("0 of 11 values match; wrong: total; missing: 'bad\\nkey', k0, k1, k2, k3 and 5 more")

    def test_there_is_a_figure_for_every_field(self) -> None:
        score = scored('{"a": 1, "b": [{"c": 2}]}', {"a": 1, "b": [{"c": 2}, {"c": 3}]})
        assert score.metrics["field_accuracy:a"] == 1
        assert score.metrics["field_accuracy:b[].c"] == 0.5

    def test_the_figures_of_fields_are_few_and_have_names_that_an_index_takes(self) -> None:
        gold = {"x" * 3000: 1, **{f"k{number}": number for number in range(99)}}
        names = [name for name in scored("{}", gold).metrics if name.startswith("field_accuracy:")]
        assert len(names) == 50
        assert max(map(len, names)) < 250

    @pytest.mark.parametrize("name", HOSTILE)
    def test_hostile_answers_are_wrong_soon(self, name: str) -> None:
        started = time.monotonic()
        score = scored(HOSTILE[name], {"a": [{"b": "x"}] * 10})
        assert not score.success
        assert time.monotonic() - started < 20

    def test_a_large_answer_is_scored_soon(self) -> None:
        started = time.monotonic()
        score = scored(json.dumps({"a": [{"b": "x"}] * 40_000}), {"a": [{"b": "x"}] * 10})
        assert score.metrics["field_accuracy"] == 1
        assert time.monotonic() - started < 30


class TestLoader:
    def load(self, folder: Path, **fields: object) -> Task:
        row = {"task_id": "one", "question": "?", "gold": {"a": 1}, **fields}
        (folder / "tasks.jsonl").write_text(json.dumps(row), encoding="utf-8")
        (loaded,) = Extract().load(folder)
        return loaded

    def test_gold_and_schema_are_part_of_the_tasks_content(self, tmp_path: Path) -> None:
        first = self.load(tmp_path, schema={"properties": {"a": "number"}})
        assert (first.gold, first.extra) == ('{"a": 1}', {"schema": {"properties": {"a": "number"}}})
        assert self.load(tmp_path).content_hash != first.content_hash
        assert self.load(tmp_path, gold={"a": 2}).content_hash != self.load(tmp_path).content_hash

    @pytest.mark.parametrize(
        ("fields", "said"),
        [
            ({"gold": None}, "field 'gold' is None; write the JSON object"),
            ({"gold": "{}"}, "field 'gold' is '{}'"),
            ({"gold": {"a": "\0"}}, "field 'gold' holds a NUL character"),
            ({"gold": {"\ud800": 1}}, "field 'gold' holds half of a surrogate pair"),
            ({"gold": {"a": [1] * 20_001}}, "field 'gold' has more than 20000 values"),
            ({"gold": {"a": {"b": "x"}}, "schema": {"properties": {"a": {"properties": {"b": "number"}}}}},
             "field 'gold' has a value at a.b that is not of the type"),
            ({"gold": {"a": ["2024-13-01"]}, "schema": {"properties": {"a": {"items": "date"}}}}, "a value at a[]"),
            ({"schema": {"properties": {"a": "money"}}}, "field 'schema' cannot be used: schema.properties.a: type"),
            ({"shema": {}}, "there is no field 'shema'"),
        ],
    )  # fmt: skip
    def test_a_wrong_row_is_refused_in_one_line(self, tmp_path: Path, fields: Any, said: str) -> None:
        with pytest.raises(TaskDataError) as caught:
            self.load(tmp_path, **fields)
        message = str(caught.value)
        assert said in message
        assert "tasks.jsonl line 1" in message
        assert message.isprintable()

    def test_a_backslash_before_u0000_is_no_nul(self, tmp_path: Path) -> None:
        assert self.load(tmp_path, gold={"a": "\\u0000"}).gold == '{"a": "\\\\u0000"}'


class TestSamples:
    def test_every_gold_object_is_right_by_its_own_schema(self) -> None:
        for task in Extract().load(SAMPLES):
            assert task.attachment is not None
            assert Extract().score(task, Answer(None, task.gold)).metrics["exact"] == 1

    def test_sums_in_the_gold_objects_add_up(self) -> None:
        golds = {task.task_id: json.loads(task.gold) for task in Extract().load(SAMPLES)}
        invoice, receipt = golds["sample-extract-invoice"], golds["sample-extract-receipt"]
        assert all(line["quantity"] * line["unit_price"] == line["amount"] for line in invoice["lines"])
        assert sum(line["amount"] for line in invoice["lines"]) == invoice["subtotal"]
        assert invoice["subtotal"] + invoice["tax"] == pytest.approx(invoice["total"])
        assert invoice["total"] - invoice["deposit"] == pytest.approx(invoice["balance_due"])
        assert sum(item["금액"] for item in receipt["품목"]) == receipt["합계"]
        assert 30_000 - receipt["합계"] == receipt["거스름돈"]

    def test_the_orders_are_those_of_the_workbook_that_are_not_cancelled(self) -> None:
        (task,) = [task for task in Extract().load(SAMPLES) if task.task_id == "sample-extract-orders"]
        frame = pd.read_excel(SAMPLES / "files" / "orders.xlsx")
        kept = frame[frame["State"] != "cancelled"]
        listed = {
            (customer["name"], order["order_no"], order["ordered"], item["article"], item["pieces"])
            for customer in json.loads(task.gold)["customers"]
            for order in customer["orders"]
            for item in order["items"]
        }
        assert listed == {
            (row.Customer, row.Order, row.Ordered.date().isoformat(), row.Article, row.Pieces)
            for row in kept.itertuples()
        }

    @pytest.mark.skipif(not GENERATOR.is_file(), reason="the generator of the attachments is in the checkout only")
    @pytest.mark.skipif(importlib.util.find_spec("reportlab") is None, reason="the generator needs the test extra")
    def test_the_generator_makes_the_shipped_attachments_and_the_same_bytes_each_time(self, tmp_path: Path) -> None:
        for folder in ("first", "second"):
            subprocess.run([sys.executable, str(GENERATOR), str(tmp_path / folder)], check=True, timeout=120)
        made = {path.name: path.read_bytes() for path in (tmp_path / "first").iterdir()}
        assert set(made) == {path.name for path in (SAMPLES / "files").iterdir()}
        for name, content in made.items():
            assert content == (tmp_path / "second" / name).read_bytes()
            # bytes of containers and styles depend on the versions of the libraries that write them
            if name.endswith((".txt", ".csv")):
                assert content == (SAMPLES / "files" / name).read_bytes()


async def test_the_sample_suite_comes_out_as_its_scripts_say(database: Database) -> None:
    runs = await played(database, "extract")
    verdicts = {name: (run.row.success, run.row.format_valid, run.row.score_reason) for name, run in runs.items()}
    assert verdicts == {
        "sample-extract-invoice": (True, True, "25 of 25 values match"),
        "sample-extract-receipt": (True, True, "16 of 16 values match"),
        "sample-extract-lease": (True, True, "11 of 11 values match"),
        "sample-extract-orders": (True, True, "16 of 16 values match"),
        "sample-extract-mail": (False, True, "6 of 8 values match; wrong: concert_date, rehearsal_date"),
        "sample-extract-visitors": (False, False, "not_json: the key '방문객' stands twice in one object"),
    }
    assert {run.row.scorer_version for run in runs.values()} == {"extract-1"}
    figures = runs["sample-extract-mail"].metrics
    assert (figures["field_accuracy"], figures["f1"], figures["exact"]) == (0.75, 0.75, 0)
    assert (figures["field_accuracy:fee"], figures["field_accuracy:concert_date"]) == (1, 0)
