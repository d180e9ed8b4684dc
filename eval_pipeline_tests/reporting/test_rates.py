"""Pass rates and their intervals, with the oracle values of the statistics."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eval_pipeline.ids import TaskAttempt
from eval_pipeline.reporting.material import Run
from eval_pipeline.reporting.rates import attempts, pass_rate, planned_rate
from eval_pipeline.stats.rates import clustered_standard_error

_RUN = Run(
    cell=TaskAttempt("t", 1),
    level=1,
    question="?",
    gold="42",
    file_name=None,
    file_sha256=None,
    run_id=None,
    status=None,
    success=None,
    format_valid=None,
    terminated_by=None,
    error_class=None,
    error_message=None,
    answer=None,
    score_reason=None,
    turns=0,
    tool_calls=0,
    tool_errors=0,
    all_tokens=None,
    cost=None,
    latency_ms=None,
)


def ended(task_id: str, success: bool, attempt: int = 1) -> Run:
    return replace(_RUN, cell=TaskAttempt(task_id, attempt), status="completed", success=success, format_valid=True)


def crashed(task_id: str) -> Run:
    return replace(_RUN, cell=TaskAttempt(task_id, 1), status="crashed", error_class="timeout")


def test_one_attempt_a_task_has_wilsons_interval() -> None:
    rate = pass_rate([ended(f"t{number}", number < 18) for number in range(20)])
    assert rate is not None
    assert (rate.successes, rate.of, rate.value, rate.method) == (18, 20, 0.9, "Wilson")
    assert (rate.interval.low, rate.interval.high) == pytest.approx((0.6990, 0.9721), abs=5e-5)


def test_crashed_runs_have_no_verdict_and_stay_in_what_was_planned() -> None:
    runs = [ended("a", True), ended("b", False), crashed("c"), crashed("d"), _RUN]
    rate, planned = pass_rate(runs), planned_rate(runs)
    assert rate is not None
    assert (rate.successes, rate.of) == (1, 2)
    assert planned is not None
    assert planned.value == pytest.approx(1 / 5)
    assert (planned.interval.low, planned.interval.high) == pytest.approx((1 / 5, 4 / 5))


def test_the_attempts_of_one_task_are_one_cluster() -> None:
    # s = 1110001011 in clusters of 3, 3, 2, 2: the corrected clustered error is 0.267333
    verdicts, clusters = [1, 1, 1, 0, 0, 0, 1, 0, 1, 1], [3, 3, 2, 2]
    runs = []
    for task, size in enumerate(clusters):
        for attempt in range(1, size + 1):
            runs.append(ended(f"t{task}", bool(verdicts[len(runs)]), attempt))
    rate = pass_rate(runs)
    assert rate is not None
    assert rate.method == "clustered by task"
    error = clustered_standard_error([float(bool(run.success)) for run in runs], [run.cell.task_id for run in runs])
    assert error == pytest.approx(0.267333, abs=5e-7)
    # Student's quantile for 3 degrees of freedom
    assert rate.interval.low == pytest.approx(max(0.0, 0.6 - 3.182446 * 0.267333), abs=1e-6)
    assert rate.interval.high == 1.0


@pytest.mark.parametrize("right", [True, False])
def test_tasks_that_all_agree_do_not_make_an_interval_of_width_nothing(right: bool) -> None:
    runs = [ended(f"t{task}", right, attempt) for task in range(20) for attempt in (1, 2, 3)]
    rate = pass_rate(runs)
    assert rate is not None
    # as 20 of 20, or 0 of 20, single trials
    assert rate.method == "Wilson, one trial per task"
    expected = (0.8389, 1.0) if right else (0.0, 0.1611)
    assert (rate.interval.low, rate.interval.high) == pytest.approx(expected, abs=5e-5)


def test_a_task_that_was_tried_several_times_alone_says_little() -> None:
    rate = pass_rate([ended("t", attempt != 2, attempt) for attempt in (1, 2, 3)])
    assert rate is not None
    assert rate.interval.low < 0.1
    assert rate.interval.high > 0.9


def test_nothing_completed_is_no_rate_and_nothing_planned_is_none_either() -> None:
    assert pass_rate([crashed("a"), _RUN]) is None
    assert planned_rate([]) is None
    assert attempts([]) == 0
