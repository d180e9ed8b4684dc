"""The traces as compact JSON: every text once, everything there, and never larger than its budget."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from eval_pipeline.reporting.material import Event, Run, Try
from eval_pipeline.reporting.transcripts import pack
from eval_pipeline_tests.db.builders import NOON
from eval_pipeline_tests.reporting.test_rates import ended


def a_try(**changes: Any) -> Try:
    """A completed try without events."""
    plain = Try(
        run_id=UUID(int=7),
        try_no=1,
        live=True,
        status="completed",
        terminated_by="approve",
        error_class=None,
        error_message=None,
        started_at=NOON,
        finished_at=NOON,
        latency_ms=10,
        turns=1,
        tool_calls=0,
        tool_errors=0,
        selector_fallbacks=0,
        tokens_in=1,
        tokens_out=None,
        all_tokens_in=None,
        all_tokens_out=None,
        model_calls=1,
        cost=None,
        events_dropped=0,
        text_repairs=0,
        sandbox_level=None,
    )
    return replace(plain, **changes)


def traced(*events: Event, more: int = 0) -> Run:
    return replace(ended("t", True), tries=(a_try(events=events, more_events=more),))


def said(seq: int, text: str) -> Event:
    return Event(seq=seq, kind="agent_message", source="planner", text=text)


def read(run: Run, budget: int = 10**7) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(pack([run], budget).json)
    return value


def test_a_text_that_comes_twice_is_stored_once() -> None:
    long = "the same long result " * 50
    value = read(traced(said(0, long), said(1, long), said(2, "another")))
    events = value["runs"][0]["y"][0]["E"]
    assert events[0]["t"] == events[1]["t"] != events[2]["t"]
    assert value["texts"].count(long) == 1
    assert value["texts"][events[2]["t"]] == "another"


def test_what_is_unknown_is_left_out_and_a_zero_is_not() -> None:
    event = replace(said(0, ""), latency_ms=0, tokens_in=None)
    packed = read(traced(event))["runs"][0]["y"][0]
    assert packed["E"][0]["m"] == 0
    assert "i" not in packed["E"][0]
    assert packed["i"] == 1
    assert "o" not in packed


def test_the_last_try_comes_first_and_every_try_is_there() -> None:
    first = a_try(run_id=UUID(int=1), live=False, status="crashed", error_class="timeout")
    run = replace(ended("t", True), tries=(first, a_try(try_no=2)))
    tries = read(run)["runs"][0]["y"]
    assert [(one["n"], one["s"], one.get("v")) for one in tries] == [(2, "completed", True), (1, "crashed", None)]


@pytest.mark.parametrize("budget", [60_000, 20_000, 6_000])
def test_long_texts_are_cut_alike_until_they_fit(budget: int) -> None:
    run = traced(*(said(seq, f"{seq}" + "가나다<&> " * 4_000) for seq in range(5)))
    packed = pack([run], budget)
    assert len(packed.json.encode()) <= budget * 1.05
    value = json.loads(packed.json)
    places = [event["t"] for event in value["runs"][0]["y"][0]["E"]]
    assert {len(value["texts"][place]) for place in places} == {packed.characters}
    assert {value["lengths"][str(place)] for place in places} == {28_001}
    # not much shorter than it has to be
    assert len(packed.json.encode()) > budget * 0.8
    assert packed.cut_texts == 5


def test_hostile_texts_that_grow_when_they_are_escaped_stay_within_the_budget() -> None:
    run = traced(*(said(seq, f"{seq}" + "<" * 19_000) for seq in range(20)))
    assert len(pack([run], 500_000).json.encode()) <= 500_100


def test_events_are_left_out_where_not_even_short_texts_fit_and_their_number_is_kept() -> None:
    run = traced(*(said(seq, f"{seq} {'x' * 300}") for seq in range(400)), more=100)
    packed = pack([run], 15_000)
    one = json.loads(packed.json)["runs"][0]["y"][0]
    assert len(one["E"]) == packed.events == 30
    assert one["l"] == 470


def test_a_batch_that_fits_in_no_way_is_packed_all_the_same() -> None:
    packed = pack([traced(said(0, "x" * 1000))], 10)
    assert (packed.characters, packed.events) == (120, 30)


def test_a_text_that_is_kept_apart_says_so_and_how_long_it_is_where_less_was_read() -> None:
    run = traced(replace(said(0, "x"), cut=True), replace(said(1, "y"), cut=True, length=3_000))
    whole, part = read(run)["runs"][0]["y"][0]["E"]
    assert (whole["x"], "l" in whole) == (True, False)
    assert (part["x"], part["l"]) == (True, 3_000)
