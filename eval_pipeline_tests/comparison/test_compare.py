"""Planted differences get the right words, and none gets no word: figures, tests, refusals and what is attributed."""

from __future__ import annotations

import pytest

from eval_pipeline.comparison.compare import ComparisonError, compare
from eval_pipeline.comparison.outcomes import Outcomes
from eval_pipeline.stats.paired import mcnemar_exact, sign_flip_test
from eval_pipeline_tests.comparison.planted import Verdict, batch, cell, outcomes_of, tasks

V4, V5 = "a@v4", "b@v5"
SIZE = 165


def of_level_one(right: int) -> Outcomes:
    """The baseline: of 165 tasks the first ``right`` are right."""
    return batch(V4, tasks(SIZE, lambda n: n < right))


def changed(gained: int, lost: int) -> Outcomes:
    """As the baseline with 80 right, but so many tasks gained and lost."""

    def verdict(n: int) -> Verdict:
        return n >= lost if n < 80 else n < 80 + gained

    return batch(V5, tasks(SIZE, verdict))


@pytest.mark.parametrize(
    ("gained", "lost", "verdict", "said"),
    [
        (20, 0, "better", "b@v5 is better than a@v4: +12.1 points (95 % interval +7.1 to +17.2) over 165 tasks."),
        (0, 20, "worse", "b@v5 is worse than a@v4: -12.1 points (95 % interval -17.2 to -7.1) over 165 tasks."),
        (30, 10, "better", "b@v5 is better than a@v4: +12.1 points (95 % interval +4.8 to +19.5) over 165 tasks."),
        (15, 15, "no difference shown", "No difference is shown between b@v5 and a@v4: +0.0 points"),
        (12, 8, "no difference shown", "No difference is shown between b@v5 and a@v4: +2.4 points"),
        (0, 0, "no difference shown", "No difference is shown between b@v5 and a@v4: +0.0 points"),
    ],
)
def test_planted_differences_get_the_right_words(gained: int, lost: int, verdict: str, said: str) -> None:
    found = compare(of_level_one(80), changed(gained, lost))
    assert found.verdict == verdict
    assert found.words().startswith(said)
    assert found.difference.mean == pytest.approx((gained - lost) / SIZE)
    assert (found.rate_before, found.rate_after) == pytest.approx((80 / SIZE, (80 + gained - lost) / SIZE))
    assert (found.test, found.p_value) == ("McNemar exact", pytest.approx(mcnemar_exact(lost, gained)))
    assert [pair.task_id for pair in found.gained] == [f"t{n:03}" for n in range(80, 80 + gained)]
    assert [pair.task_id for pair in found.lost] == [f"t{n:03}" for n in range(lost)]


def test_no_difference_says_what_the_suite_could_have_shown() -> None:
    assert "165 tasks can resolve about 9 points" in compare(of_level_one(80), changed(15, 15)).words()


def test_an_interval_that_the_exact_test_does_not_follow_says_so() -> None:
    before = batch(V4, tasks(19, lambda n: n < 8))
    after = batch(V5, tasks(19, lambda n: n < 13))
    found = compare(before, after)
    assert found.verdict == "better"
    assert "the McNemar exact test alone would not say so (p = 0.062)" in found.words()


def test_a_batch_against_itself_shows_nothing() -> None:
    same = of_level_one(80)
    found = compare(same, same)
    assert (found.verdict, found.p_value, found.gained, found.lost) == ("no difference shown", 1.0, (), ())


@pytest.mark.parametrize(("crashed", "comparable"), [(8, True), (9, False)])
@pytest.mark.parametrize("side", ["before", "after"])
def test_more_than_five_percent_crashed_is_not_comparable(crashed: int, comparable: bool, side: str) -> None:
    def verdict(n: int) -> Verdict:
        return None if n < crashed else n < 120

    crashing = batch("c@v5", tasks(SIZE, verdict))
    pair = (crashing, of_level_one(80)) if side == "before" else (of_level_one(80), crashing)
    found = compare(*pair)
    assert (found.verdict != "not comparable") is comparable
    assert found.words().startswith("Not comparable: c@v5 5.5 % crashed; at most 5 % may.") is not comparable
    # a crash is no verdict: its task is in no pair, and it is named
    assert len(found.pairs) == SIZE - crashed
    assert found.unpaired == tuple(f"t{n:03}" for n in range(crashed))


def test_a_crashed_attempt_is_no_verdict_beside_the_others_of_its_task() -> None:
    before = batch(V4, {f"t{n}": [True, False, True, True] for n in range(10)})
    crashed: list[Verdict] = [None, True, True, False]
    after = batch(V5, {"t0": crashed, **{f"t{n}": [True, False, True, True] for n in range(1, 10)}})
    (pair,) = [pair for pair in compare(before, after).pairs if pair.task_id == "t0"]
    assert (pair.before, pair.after) == (0.75, pytest.approx(2 / 3))


def test_several_attempts_are_one_rate_per_task_and_tested_by_sign_flips() -> None:
    before = batch(V4, {f"t{n}": [n % 2 == 0, False, False] for n in range(12)})
    after = batch(V5, {f"t{n}": [True, n % 3 != 0, False] for n in range(12)})
    found = compare(before, after)
    differences = [((1 + (n % 3 != 0)) - (n % 2 == 0)) / 3 for n in range(12)]
    assert found.test == "sign-flip permutation"
    assert found.p_value == pytest.approx(sign_flip_test(differences))
    assert found.difference.tasks == 12
    assert found.difference.mean == pytest.approx(sum(differences) / 12)
    assert found.verdict == "better"


def test_one_attempt_against_several_is_tested_by_sign_flips() -> None:
    before = batch(V4, tasks(10, lambda n: n < 5))
    after = batch(V5, {f"t{n:03}": [n < 5, n < 6] for n in range(10)})
    assert compare(before, after).test == "sign-flip permutation"


def test_other_suite_hashes_are_refused_in_one_line_that_says_what_helps() -> None:
    other = batch(V5, tasks(SIZE, lambda n: n < 80), suite_hash="o" * 64)
    with pytest.raises(ComparisonError, match=r"a@v4 and b@v5 .*ssssssssssss and oooooooooooo.*--common") as refused:
        compare(of_level_one(80), other)
    assert "\n" not in str(refused.value)


def test_common_cuts_down_to_the_tasks_with_the_same_content() -> None:
    before = outcomes_of(V4, [cell(f"t{n}", n < 3) for n in range(6)])
    edited = [cell("t2", True, task_hash="another question"), cell("t9", True)]
    cells = [cell(f"t{n}", True) for n in (0, 1, 3, 4)]
    contract = {"suite": "other", "suite.hash": "o" * 64, "suite.attempts": 3}
    after = outcomes_of(V5, [*cells, *edited], suite_hash="o" * 64, contract=contract)
    found = compare(before, after, common=True)
    assert [pair.task_id for pair in found.pairs] == ["t0", "t1", "t3", "t4"]
    assert found.other_differences == ()


def test_two_batches_without_a_task_that_both_have_finished_cannot_be_compared() -> None:
    before, after = batch(V4, {"t1": True, "t2": None}), batch(V5, {"t1": None, "t2": True})
    with pytest.raises(ComparisonError, match="no task has a completed run in both a@v4 and b@v5"):
        compare(before, after)


@pytest.mark.parametrize(
    ("contract", "named"),
    [
        ({"model": "other"}, "model: then glm, now other"),
        ({"max_messages": 60}, "max_messages: then 30, now 60"),
        ({"llm_seed": 1}, "llm_seed: then (absent), now 1"),
    ],
)
def test_when_more_than_the_team_differs_nothing_is_attributed_to_it(contract: dict[str, object], named: str) -> None:
    after = batch(V5, tasks(SIZE, lambda n: n < 120), contract=contract)
    found = compare(of_level_one(80), after)
    assert found.other_differences == (named,)
    assert f"More than the team differs ({named}), so nothing is attributed to it." in found.words()


def test_the_teams_own_fields_are_what_may_differ() -> None:
    after = batch(V5, tasks(SIZE, lambda n: n < 120), contract={"team.contract_hash": "c" * 64})
    found = compare(batch(V4, tasks(SIZE, lambda n: n < 80), contract={"team.contract_hash": "d" * 64}), after)
    assert found.other_differences == ()
    assert "attributed" not in found.words()


def test_the_breakdowns_are_the_same_comparison_over_parts() -> None:
    def side(key: str, right: int) -> Outcomes:
        kinds = ("a.XLSX", "b.tar.gz", None, "Makefile")
        return outcomes_of(key, [cell(f"t{n}", n < right, level=1 + n % 3, file_name=kinds[n % 4]) for n in range(12)])

    found = compare(side(V4, 0), side(V5, 6))
    assert [(part.name, part.difference.tasks, part.before, part.after) for part in found.levels] == [
        ("level 1", 4, 0, 0.5), ("level 2", 4, 0, 0.5), ("level 3", 4, 0, 0.5),
    ]  # fmt: skip
    assert {part.name: part.after for part in found.attachments} == pytest.approx(
        {"gz": 2 / 3, "none": 1 / 3, "other": 1 / 3, "xlsx": 2 / 3}
    )


def test_tokens_and_latency_are_compared_where_both_sides_know_them() -> None:
    before = outcomes_of(V4, [cell("t1", True), cell("t2", False, all_tokens=None), cell("t3", True)])
    after = outcomes_of(
        V5,
        [cell("t1", True, all_tokens=1600, latency_ms=1000), cell("t2", True), cell("t3", True, all_tokens=1000)],
    )
    found = compare(before, after)
    assert found.tokens is not None
    assert (found.tokens.tasks, found.tokens.mean) == (2, 300)
    assert found.latency_ms is not None
    assert (found.latency_ms.tasks, found.latency_ms.mean) == (3, pytest.approx(-1000 / 3))
    unknown = outcomes_of(V5, [cell("t1", True, all_tokens=None, latency_ms=None)])
    assert (compare(before, unknown).tokens, compare(before, unknown).latency_ms) == (None, None)


@pytest.mark.parametrize("scripted", [V4, V5])
def test_a_scripted_model_on_either_side_is_named(scripted: str) -> None:
    sides = [batch(key, tasks(SIZE, lambda n: n < 80), scripted=key == scripted) for key in (V4, V5)]
    assert compare(*sides).words().endswith("(Scripted model.)")
    assert "Scripted" not in compare(of_level_one(80), changed(1, 1)).words()


def test_one_task_has_no_interval_and_shows_nothing() -> None:
    found = compare(batch(V4, {"t": False}), batch(V5, {"t": True}))
    assert (found.difference.interval, found.verdict) == (None, "no difference shown")
    assert "interval" not in found.words()


def test_tasks_that_all_change_alike_are_a_difference_without_a_spread() -> None:
    found = compare(batch(V4, tasks(20, lambda _: False)), batch(V5, tasks(20, lambda _: True)))
    assert found.verdict == "better"
    assert "+100.0 points (95 % interval +100.0 to +100.0)" in found.words()
