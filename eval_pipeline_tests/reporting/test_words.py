"""How figures are written: the right unit, the true minus, and nothing that looks like a figure where there is none."""

from __future__ import annotations

import pytest

from eval_pipeline.reporting import words
from eval_pipeline.stats.rates import Interval


def plain(text: str) -> str:
    return text.replace("\u00a0", " ")


@pytest.mark.parametrize(
    ("milliseconds", "written"),
    [
        (None, "–"),
        (0, "0 ms"),
        (262.4, "262 ms"),
        (999, "999 ms"),
        (1000, "1.0 s"),
        (119_400, "119.4 s"),
        (119_500, "2 min 0 s"),
        (125_000, "2 min 5 s"),
        (7_200_000, "2 h 0 min"),
        (12_000_000, "3 h 20 min"),
    ],
)
def test_a_duration_has_the_unit_that_people_would_say(milliseconds: float | None, written: str) -> None:
    assert plain(words.duration(milliseconds)) == written


@pytest.mark.parametrize(
    ("milliseconds", "written"), [(100, "100 ms"), (10_000, "10 s"), (300_000, "5 min"), (1500, "1.5 s")]
)
def test_the_duration_of_a_tick_has_no_empty_parts(milliseconds: float, written: str) -> None:
    assert plain(words.round_duration(milliseconds)) == written


@pytest.mark.parametrize(
    ("difference", "written"), [(0.263157, "+26.3"), (-0.05, "−5.0"), (0.0, "0.0"), (-0.0004, "0.0"), (1.0, "+100.0")]
)
def test_a_difference_has_a_true_sign_and_none_when_it_is_nothing(difference: float, written: str) -> None:
    assert words.points(difference) == written


def test_an_interval_of_a_difference_stays_within_what_rates_can_differ_by() -> None:
    assert words.points_interval(Interval(-1.4, 1.77)) == "−100.0 to +100.0"
    assert words.points_interval(None) == "–"


@pytest.mark.parametrize(
    ("cost", "written"), [(None, "–"), (0.0, "0"), (0.0123449, "0.01234"), (3.5, "3.50"), (12345.678, "12,345.68")]
)
def test_a_cost_shows_the_digits_that_matter(cost: float | None, written: str) -> None:
    assert words.money(cost) == written


@pytest.mark.parametrize(("p", "written"), [(0.0625, "0.0625"), (1.0, "1"), (0.00001, "< 0.0001"), (0.05, "0.05")])
def test_a_small_p_value_is_not_called_nothing(p: float, written: str) -> None:
    assert words.p_value(p) == written


def test_a_sentence_keeps_signs_and_units_with_their_numbers_and_names_as_they_are() -> None:
    said = "b@v2-x is worse than b@v1-y: -5.8 points (95 % interval -9.1 to -2.5)"
    assert words.sentence(said) == "b@v2-x is worse than b@v1-y: −5.8 points (95\u00a0% interval −9.1 to −2.5)"


@pytest.mark.parametrize(("count", "written"), [(0, "0 runs"), (1, "1 run"), (1200, "1,200 runs")])
def test_things_are_counted_in_their_number(count: int, written: str) -> None:
    assert words.counted(count, "run") == written
