"""Each rule of contamination fires on what was planted for it, as surely as it should, and not on honest work."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from uuid import uuid4

import pytest

from eval_pipeline.contamination.rules import CONFINED, DECIDED, RULES, SIGNAL, flags
from eval_pipeline.contamination.scene import Call, Scene, World, plain
from eval_pipeline.tools.registry import TOOLS

STAGE = "/home/me/.eval_pipeline/stage"
DATA = "/srv/gaia/2023/validation"
OWN = f"{STAGE}/t1/cafe sales.xlsx"
READ, RUN, WEB = "read_attached_file", "python_exec", "web_search"
QUESTION = "Which of the towns in the attached table of towns had the largest number of ferries on Tuesdays in 1987?"
GOLD = "Port Estella Harbour"
FILES: Mapping[str, str | None] = {
    "t1": "cafe sales.xlsx", "t2": "river_levels.tsv", "t3": "cafe sales.xlsx", "t4": None, "t5": "동네 지도.png",
}  # fmt: skip


def call(tool: str, asked: str, came: str = "done", *, returned: bool = True, seq: int = 4) -> Call:
    return Call(seq, seq + 1, tool, asked, came, returned)


def scene(*calls: Call, benchmark: str = "gaia", question: str = QUESTION, gold: str = GOLD) -> Scene:
    files = {plain(task_id): plain(name) if name else None for task_id, name in FILES.items()}
    world = World(benchmark, plain(STAGE), (plain(DATA), "/data"), files)
    return Scene(uuid4(), world, "t1", plain("cafe sales.xlsx"), question, gold, calls)


def seen(*calls: Call, **more: str) -> dict[str, str]:
    return {flag.rule: flag.confidence for flag in flags(scene(*calls, **more))}


KEY_ROW = '{"task_id": "t1", "Question": "Which of the towns", "Final answer": "Elsewhere"}'


@pytest.mark.parametrize(
    ("planted", "expected"),
    [
        (call(RUN, "print(open('/x/metadata.jsonl').read()[:5])"), {"answer_key_file": DECIDED}),
        (call(RUN, "open('../METADATA.parquet')", "FileNotFoundError", returned=False), {"answer_key_file": SIGNAL}),
        (call(READ, "metadata.jsonl", "no such file: 'metadata.jsonl'", returned=False), {"answer_key_file": SIGNAL}),
        (call(RUN, "import os; print(os.listdir('/x'))", "['metadata.jsonl', 'a.txt']"), {"answer_key_file": DECIDED}),
        (call(RUN, f"print(open('{OWN}').read())", "see tasks.jsonl"), {"answer_key_file": SIGNAL}),
        (call(WEB, "the towns", KEY_ROW), {"answer_key_rows": DECIDED}),
        (call(RUN, "boom()", f"exit status 1\n{KEY_ROW}", returned=False), {"answer_key_rows": DECIDED}),
        (call(RUN, "x", '[{"task_id": "a", "question": "b", "tests": 1}]'), {"answer_key_rows": DECIDED}),
        (call(RUN, f"import os; os.listdir('{DATA}')"), {"key_folder": DECIDED}),
        (call(READ, f"{DATA}/t1.xlsx", "FileNotFoundError", returned=False), {"key_folder": SIGNAL}),
        (call(RUN, "x", f"{DATA}/somewhere"), {"key_folder": DECIDED}),
        (call(RUN, "open('/opt/lib/eval_pipeline/sample_data/tasks/x')"), {"key_folder": DECIDED}),
        (call(READ, f"{STAGE}/t2/river_levels.tsv"), {"other_tasks_file": DECIDED}),
        (call(READ, f"{STAGE}/t2/river_levels.tsv", "no", returned=False), {"other_tasks_file": SIGNAL}),
        (call(READ, f"{STAGE}/t1/../t3/cafe sales.xlsx", "no", returned=False), {"other_tasks_file": SIGNAL}),
        (call(RUN, f"import os; print(os.listdir('{STAGE}'))", "t1 t2"), {"other_tasks_file": DECIDED}),
        (call(RUN, "open('/mnt/copy/t3/cafe sales.xlsx')"), {"other_tasks_file": DECIDED}),
        (call(RUN, "open(r'C:\\stage\\t5\\동네 지도.png')"), {"other_tasks_file": DECIDED}),
        (call(RUN, "open('river_levels.tsv')", "no", returned=False), {"other_tasks_file": SIGNAL}),
        (call(RUN, "x", f"{STAGE}/.materials/t4/abc"), {"other_tasks_file": DECIDED}),
        (call(WEB, "https://huggingface.co/datasets/gaia-benchmark/GAIA"), {"public_copy": DECIDED}),
        (call(RUN, "load_dataset('someone/gaia_copy')", "no network", returned=False), {"public_copy": SIGNAL}),
        (call(WEB, "towns", "1. https://hf.co/spaces/x/gaia - GAIA"), {"public_copy": SIGNAL}),
        (
            call(WEB, "towns", f"Q: {QUESTION.upper()}\n A: port  estella harbour."),
            {"question_in_result": DECIDED, "gold_in_result": SIGNAL},
        ),
        (call(WEB, "towns", f"Somebody asked: {QUESTION}"), {"question_in_result": SIGNAL}),
        (call(WEB, "ferries", f"The largest was {GOLD}, {'as many reports say ' * 5}"), {"gold_in_result": SIGNAL}),
    ],
)  # fmt: skip
def test_what_was_planted_is_flagged(planted: Call, expected: dict[str, str]) -> None:
    found = {flag.rule: flag for flag in flags(scene(planted))}
    assert {rule: flag.confidence for rule, flag in found.items()} == expected
    for flag in found.values():
        assert flag.seqs == (4, 5)
        assert GOLD not in flag.detail


def test_every_rule_has_something_planted_for_it() -> None:
    (planted,) = [mark.args[1] for mark in test_what_was_planted_is_flagged.pytestmark]  # type: ignore[attr-defined]
    assert {rule for _, expected in planted for rule in expected} == {rule.__name__ for rule in RULES}


@pytest.mark.parametrize(
    "honest",
    [
        call(READ, OWN, "a table, beside it metadata.jsonl and river_levels.tsv"),
        call(READ, "sales.xlsx", "FileNotFoundError: 'sales.xlsx'", returned=False),
        call(RUN, f"import openpyxl; print(openpyxl.load_workbook('{OWN}'))", GOLD),
        call(RUN, f"import os; print(os.listdir('{STAGE}/t1'))", "['cafe sales.xlsx']"),
        call(RUN, f"open('{OWN}')", f"Traceback: File '{OWN}' in /usr/lib/python3/zipfile.py", returned=False),
        call(RUN, "print('x')", GOLD),
        call(
            RUN, f"print('{GOLD} is a town, and its harbour is the largest of them all in every year')", f"{GOLD} is it"
        ),
        call(RUN, f"print('''{QUESTION}''')", QUESTION),
        call("search_documents", "towns", f"{QUESTION} {GOLD} tasks.jsonl https://huggingface.co/datasets/x/gaia"),
        call(WEB, "gaia space telescope", "https://www.cosmos.esa.int/web/gaia/news Gaia's third release"),
        call(RUN, "open('/data/other.xlsx')", "no", returned=False),
        call("python_calc", "2 + 2", "4"),
    ],
)
def test_honest_work_is_not_flagged(honest: Call) -> None:
    assert seen(honest) == {}


def test_a_file_that_the_question_speaks_of_may_be_asked_for() -> None:
    asked = call(RUN, "open('tasks.jsonl'); open('river_levels.tsv')")
    assert seen(asked, question="Count the lines of tasks.jsonl and of river_levels.tsv.") == {}


def test_the_address_of_a_public_copy_means_nothing_to_a_benchmark_that_has_none() -> None:
    assert seen(call(WEB, "https://huggingface.co/datasets/gaia-benchmark/GAIA"), benchmark="sql") == {}


@pytest.mark.parametrize("gold", ["42", "4", "1,234,567.89", "Paris", ""])
def test_a_short_or_numeric_gold_is_met_by_chance(gold: str) -> None:
    result = f"There were {gold} of them, and much more is said about it in this long report of the year."
    assert seen(call(WEB, "ferries", result), gold=gold) == {}


def test_what_the_own_file_said_may_be_found_again() -> None:
    own = call(READ, OWN, f"The best is {GOLD}.", seq=2)
    assert seen(own, call(WEB, "harbours", f"{GOLD} is a harbour on the coast, with ferries on all days.", seq=6)) == {}


def test_the_surest_sighting_of_a_rule_counts_with_its_events_alone() -> None:
    refused = call(READ, f"{STAGE}/t2/river_levels.tsv", "no", returned=False, seq=2)
    returned = call(RUN, f"open('{STAGE}/t2/river_levels.tsv')", seq=6)
    (flag,) = flags(scene(refused, returned))
    assert (flag.confidence, flag.seqs) == (DECIDED, (6, 7))


def test_the_confined_tools_are_those_of_the_registry_that_reach_nothing_else() -> None:
    assert {spec.name for spec in TOOLS.values()} - CONFINED == {RUN}


HUGE = {
    "keys": '"task_id" ' * 10_000,
    "slashes": "/" * 100_000,
    "stage": f"{STAGE}/t1/" * 5_000,
    "addresses": "https://" * 12_000,
    "gold": "Port " * 20_000,
    "hangul": "동네 지도.png " * 10_000,
    "nested": json.dumps([[[[["x"] * 100] * 10]]]) * 20,
    "odd": "\u202e\ufeff\u0000ﬁİ" * 20_000,
}


@pytest.mark.parametrize("text", HUGE.values(), ids=HUGE)
def test_no_text_makes_the_rules_raise_or_hang(text: str) -> None:
    begun = time.monotonic()
    flags(scene(call(RUN, text, text), call("", text, text, returned=False), Call(9, None, WEB, text, "", False)))
    flags(scene(call(RUN, "x", text), question=text, gold=text))
    assert time.monotonic() - begun < 20
