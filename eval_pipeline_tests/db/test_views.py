"""The views on a small batch whose figures are worked out by hand.

Batch b1 of team v1 plans nine cells: three attempts of t1 and two of t2 on level 1, two of t3 on level 2, and two of
t4 on level 2 that no try was ever started for.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Select, column, func, insert, literal_column, select, table, text

from eval_pipeline.db import tables
from eval_pipeline.db.views import SUMMARY_VIEWS
from eval_pipeline_tests.db.builders import NOON, Rows


def usage(tokens: int, calls: int, cost: float | None, latency_ms: int | None) -> dict[str, Any]:
    return {
        "all_tokens_in": tokens,
        "all_tokens_out": tokens // 10,
        "model_calls": calls,
        "cost": cost,
        "latency_ms": latency_ms,
    }


@pytest.fixture
def batch(rows: Rows) -> Rows:
    rows.team()
    rows.batch()
    rows.task("t1", level=1)
    rows.task("t2", level=1)
    rows.task("t3", level=2)
    rows.task("t4", level=2)
    for task_id, attempts in {"t1": 3, "t2": 2, "t3": 2, "t4": 2}.items():
        for attempt in range(1, attempts + 1):
            rows.cell(task_id, attempt)
    # t1: right after two crashed tries, right, wrong for want of an answer
    rows.crashed("t1", 1, try_no=1, live=False, **usage(100, 1, 0.5, 1000))
    rows.crashed("t1", 1, try_no=2, live=False, **usage(200, 2, None, None))
    rows.completed(
        "t1",
        1,
        try_no=3,
        tokens_in=300,
        tokens_out=30,
        turns=4,
        tool_calls=2,
        tool_errors=1,
        terminated_by="approve",
        **usage(400, 4, 1.0, 3000),
    )
    rows.completed("t1", 2, tokens_in=100, tokens_out=10, turns=6, terminated_by="approve", **usage(200, 3, 0.5, 2000))
    rows.completed(
        "t1", 3, success=False, format_valid=False, turns=8, terminated_by="max_messages", **usage(600, 6, 1.5, 9000)
    )
    # t2: wrong, and a crash that stands
    rows.completed("t2", 1, success=False, turns=2, terminated_by="timeout", **usage(100, 1, 0.25, 1000))
    rows.crashed("t2", 2, turns=1, error_message="reset by peer", **usage(50, 1, 0.25, 500))
    # t3: right, and one still under way
    rows.completed("t3", 1, level=2, turns=5, **usage(70, 2, None, 700))
    rows.run("t3", 2, level=2)
    return rows


def one(rows: Rows, statement: str, **parameters: Any) -> dict[str, Any]:
    return dict(rows.connection.execute(text(statement), parameters).mappings().one())


def refreshed(rows: Rows) -> None:
    for view in SUMMARY_VIEWS:
        renew = getattr(func, f"refresh_{view}")
        rows.connection.execute(select(renew(tables.batches.c.batch_id, tables.batches.c.team_id)))


def test_the_summary_of_a_level_counts_runs_and_sums_the_usage_of_all_tries(batch: Rows) -> None:
    refreshed(batch)
    found = one(batch, "select * from mv_batch_summary where batch_id = 'b1' and level = 1")
    assert {name: found[name] for name in ("planned", "runs", "tries", "completed", "crashed", "running")} == {
        "planned": 5,
        "runs": 5,
        "tries": 7,
        "completed": 4,
        "crashed": 1,
        "running": 0,
    }
    assert found["successes"] == 2
    assert found["pass_at_1"] == found["pass_at_1_completed"] == 2 / 4
    assert found["pass_at_1_planned"] == 2 / 5
    assert found["format_invalid_rate"] == 1 / 4
    assert found["loop_rate"] == 1 / 4
    assert (found["tokens_in"], found["tokens_out"]) == (400, 40)
    assert (found["all_tokens_in"], found["all_tokens_out"], found["all_tokens"]) == (1650, 165, 1815)
    assert found["tokens_per_success"] == 1815 / 2
    assert found["model_calls"] == 18
    assert found["cost"] == 4.0
    # completed runs, each with the time of all its tries: 4000, 2000, 9000 and 1000
    assert found["p50_latency_ms"] == 3000
    assert found["p95_latency_ms"] == pytest.approx(4000 + 0.85 * 5000)
    assert found["mean_turns"] == (4 + 6 + 8 + 2) / 4
    assert (found["tool_calls"], found["tool_errors"]) == (2, 1)
    assert (found["suite"], found["benchmark"], found["scripted"]) == ("sample", "gaia", True)


def test_a_cell_that_was_never_started_counts_as_planned(batch: Rows) -> None:
    refreshed(batch)
    found = one(batch, "select * from mv_batch_summary where batch_id = 'b1' and level = 2")
    assert (found["planned"], found["runs"], found["completed"], found["running"]) == (4, 2, 1, 1)
    assert (found["pass_at_1_completed"], found["pass_at_1_planned"]) == (1.0, 0.25)
    assert (found["cost"], found["tokens_in"]) == (None, None)


def test_totals_follow_the_same_definition_over_all_levels(batch: Rows) -> None:
    found = one(batch, "select * from v_batch_totals where batch_id = 'b1'")
    assert found["level"] is None
    assert (found["planned"], found["runs"], found["tries"], found["completed"]) == (9, 7, 9, 5)
    assert found["successes"] == 3
    assert (found["pass_at_1_completed"], found["pass_at_1_planned"]) == (3 / 5, 3 / 9)
    assert found["all_tokens"] == 1815 + 77
    assert found["p50_latency_ms"] == 2000
    assert found["mean_turns"] == 25 / 5


def test_totals_have_the_columns_of_the_summary(batch: Rows) -> None:
    columns = [
        list(batch.connection.execute(text(statement)).keys())
        for statement in ("select * from v_batch_totals", "select * from mv_batch_summary")
    ]
    assert columns[0] == columns[1]


def test_a_batch_without_a_single_try_has_a_summary_of_nulls(rows: Rows) -> None:
    rows.team()
    rows.batch()
    rows.task()
    rows.cell()
    refreshed(rows)
    for view in ("mv_batch_summary", "v_batch_totals"):
        found = dict(rows.connection.execute(select(literal_column("*")).select_from(table(view))).mappings().one())
        assert (found["planned"], found["runs"], found["tries"], found["successes"]) == (1, 0, 0, 0)
        assert found["pass_at_1_planned"] == 0
        unknown = (
            "pass_at_1",
            "format_invalid_rate",
            "loop_rate",
            "tokens_per_success",
            "p50_latency_ms",
            "mean_turns",
        )
        assert [found[name] for name in unknown] == [None] * len(unknown)


def test_the_figures_come_as_plain_numbers(batch: Rows) -> None:
    refreshed(batch)
    views = (*SUMMARY_VIEWS, "v_batch_totals", "v_passk_totals", "v_runs")
    for view in views:
        for row in batch.connection.execute(select(literal_column("*")).select_from(table(view))).mappings():
            assert {type(value).__name__ for value in row.values()}.isdisjoint({"Decimal"}), view


def test_no_success_means_no_tokens_per_success(rows: Rows) -> None:
    rows.one_run()
    rows.connection.execute(
        tables.runs.update().values(
            status="completed", success=False, format_valid=True, finished_at=NOON, **usage(10, 1, 1.0, 5)
        )
    )
    assert one(rows, "select * from v_batch_totals")["tokens_per_success"] is None


def passk(rows: Rows, view: str, **where: int) -> dict[int, tuple[int, float, float]]:
    statement: Select[tuple[Any, ...]] = select(literal_column("*")).select_from(table(view))
    for name, value in where.items():
        statement = statement.where(column(name) == value)
    return {row.k: (row.tasks, row.pass_at_k, row.pass_hat_k) for row in rows.connection.execute(statement)}


def test_pass_at_k_takes_completed_attempts_and_no_more_than_a_task_has(batch: Rows) -> None:
    refreshed(batch)
    # t1 has 3 completed attempts of which 2 are right; t2 one, wrong
    assert passk(batch, "mv_passk", level=1) == {
        1: (2, pytest.approx((2 / 3 + 0) / 2), pytest.approx((2 / 3 + 0) / 2)),
        2: (1, 1.0, pytest.approx(1 / 3)),
        3: (1, 1.0, 0.0),
    }
    assert passk(batch, "mv_passk", level=2) == {1: (1, 1.0, 1.0)}
    assert passk(batch, "v_passk_totals") == {
        1: (3, pytest.approx((2 / 3 + 0 + 1) / 3), pytest.approx((2 / 3 + 0 + 1) / 3)),
        2: (1, 1.0, pytest.approx(1 / 3)),
        3: (1, 1.0, 0.0),
    }


@pytest.mark.parametrize(
    ("n", "c", "k", "at", "hat"),
    [
        (5, 2, 1, 0.4, 0.4),
        (5, 2, 3, 0.9, 0.0),
        (10, 3, 2, 0.533333, 0.066667),
        (10, 3, 5, 0.916667, 0.0),
        (10, 9, 10, 1.0, 0.0),
        (4, 2, 2, 0.833333, 0.166667),
        (8, 6, 4, 1.0, 0.214286),
        (1, 0, 1, 0.0, 0.0),
        (1, 1, 1, 1.0, 1.0),
        (9999, 5000, 1, 5000 / 9999, 5000 / 9999),
        (9999, 9999, 9999, 1.0, 1.0),
        # nothing can be said with fewer attempts than k
        (1, 0, 3, None, None),
        (0, 0, 1, None, None),
        (3, 4, 1, None, None),
        (3, -1, 1, None, None),
        (3, 1, 0, None, None),
        (None, 1, 1, None, None),
    ],
)
def test_the_functions_agree_with_the_unbiased_estimators(
    rows: Rows, n: int | None, c: int, k: int, at: float | None, hat: float | None
) -> None:
    found = one(rows, "select pass_at_k(:n, :c, :k) as at, pass_hat_k(:n, :c, :k) as hat", n=n, c=c, k=k)
    assert found["at"] == (at if at is None else pytest.approx(at, abs=5e-7))
    assert found["hat"] == (hat if hat is None else pytest.approx(hat, abs=5e-7))


def outcome(rows: Rows, run_id: UUID, seq: int, kind: str, call_id: str, **columns: Any) -> None:
    extra: dict[str, Any] = {"error": {"type": "ValueError"}} if kind == "tool_error" else {}
    rows.event(run_id, seq, kind, tool_call_id=call_id, **(extra | columns))


def test_tools_are_counted_over_live_tries(rows: Rows) -> None:
    rows.team()
    rows.task()
    rows.batch()
    rows.cell()
    dead = rows.crashed(live=False)
    outcome(rows, dead, 0, "tool_call", "c1", tool_name="python_calc")
    outcome(rows, dead, 1, "tool_error", "c1", tool_name="python_calc", latency_ms=9000)
    live = rows.run(try_no=2)
    outcome(rows, live, 0, "tool_call", "c1", tool_name="python_calc", latency_ms=1)
    outcome(rows, live, 1, "tool_result", "c1", tool_name="python_calc", latency_ms=100)
    outcome(rows, live, 2, "tool_call", "c2", tool_name="python_calc")
    outcome(rows, live, 3, "tool_call", "c3", tool_name="read_attached_file")
    # only the first row of a parallel execution has a latency; this one does not name its tool
    outcome(rows, live, 4, "tool_error", "c2", latency_ms=300)
    outcome(rows, live, 5, "tool_result", "c3", tool_name="read_attached_file")
    refreshed(rows)
    found = rows.connection.execute(text("select * from mv_tool_summary order by tool_name")).mappings().all()
    assert [dict(row) for row in found] == [
        {
            "batch_id": "b1",
            "team_id": "v1",
            "tool_name": "python_calc",
            "calls": 2,
            "errors": 1,
            "error_rate": 0.5,
            "p50_latency_ms": 200.0,
        },
        {
            "batch_id": "b1",
            "team_id": "v1",
            "tool_name": "read_attached_file",
            "calls": 1,
            "errors": 0,
            "error_rate": 0.0,
            "p50_latency_ms": None,
        },
    ]


def test_an_outcome_without_a_name_belongs_to_the_last_call_of_its_id(rows: Rows) -> None:
    run_id = rows.one_run()
    outcome(rows, run_id, 0, "tool_call", "call_0", tool_name="first")
    outcome(rows, run_id, 1, "tool_result", "call_0", tool_name="first")
    outcome(rows, run_id, 2, "tool_call", "call_0", tool_name="second")
    outcome(rows, run_id, 3, "tool_error", "call_0")
    refreshed(rows)
    statement = text("select tool_name, errors from mv_tool_summary order by tool_name")
    assert rows.connection.execute(statement).all() == [("first", 0), ("second", 1)]


def test_runs_show_the_live_try_and_what_all_tries_used(batch: Rows) -> None:
    found = one(batch, "select * from v_runs where task_id = 't1' and attempt = 1")
    assert (found["try_no"], found["tries"], found["status"], found["success"]) == (3, 3, "completed", True)
    assert (found["latency_ms"], found["all_latency_ms"]) == (3000, 4000)
    assert (found["all_tokens"], found["model_calls"], found["cost"]) == (770, 7, 1.5)
    assert (found["question"], found["gold"], found["suite"]) == ("How many?", "42", "sample")
    assert batch.connection.scalar(text("select count(*) from v_runs")) == 7


def test_failures_are_crashed_wrong_or_without_a_valid_answer(batch: Rows) -> None:
    found = batch.connection.execute(
        text("select task_id, attempt, failure, error_class, error_message from v_failures order by 1, 2")
    ).all()
    assert found == [
        ("t1", 3, "no_valid_answer", None, None),
        ("t2", 1, "wrong", None, None),
        ("t2", 2, "crashed", "connection", "reset by peer"),
    ]


def test_a_transcript_has_the_full_text_of_what_was_cut(rows: Rows) -> None:
    run_id = rows.one_run()
    body = "매출 " * 1000
    statement = text(
        "insert into texts (sha256, body, length) "
        "values (encode(sha256(convert_to(:body, 'UTF8')), 'hex'), :body, char_length(:body)) returning sha256"
    )
    digest = rows.connection.scalar(statement, {"body": body})
    rows.event(run_id, 0, content="Sum the food sales.", source="user")
    outcome(rows, run_id, 1, "tool_result", "c1", content=body[:2048], content_sha256=digest, content_length=len(body))
    found = rows.connection.execute(text("select * from v_trace order by run_id, seq")).mappings().all()
    assert [(row["content"], row["is_cut"]) for row in found] == [("Sum the food sales.", False), (body, True)]
    assert (found[0]["batch_id"], found[0]["task_id"], found[0]["attempt"], found[0]["live"]) == ("b1", "t1", 1, True)


def test_teams_are_shown_with_their_parts_and_their_batches(rows: Rows) -> None:
    rows.team()
    rows.team("v2", parent_id="v1", layer="input", changes=["input"], change="the path is told")
    rows.batch()
    found = one(rows, "select * from v_team_config where team_id = 'v1'")
    assert (found["planner_prompt"], found["tools"], found["input"]) == ("Plan.", ["python_calc"], "question")
    assert found["batches"] == 1
    edge = one(rows, "select * from v_team_graph")
    assert (edge["parent_id"], edge["team_id"], edge["layer"], edge["changes"]) == ("v1", "v2", "input", ["input"])
    assert edge["same_prompts"] is True


def test_a_team_is_in_the_graph_though_its_parent_has_never_run(rows: Rows) -> None:
    rows.team("v2", parent_id="v1", layer="input", changes=["input"])
    assert one(rows, "select * from v_team_graph")["same_prompts"] is None


@pytest.mark.parametrize(
    ("interval", "verdict"),
    [
        (None, "open"),
        ((0.01, 0.2), "promoted"),
        ((-0.2, -0.01), "rejected"),
        ((-0.1, 0.1), "inconclusive"),
        ((0.0, 0.1), "inconclusive"),
        ((-0.1, 0.0), "inconclusive"),
    ],
)
def test_the_verdict_of_an_experiment_follows_from_its_interval(
    rows: Rows, interval: tuple[float, float] | None, verdict: str
) -> None:
    figures: dict[str, Any] = {}
    if interval is not None:
        figures = {"difference": sum(interval) / 2, "ci_low": interval[0], "ci_high": interval[1]}
    experiment = {"experiment_id": "EXP-1", "hypothesis": "It helps.", "layer": "prompt"}
    teams = {"team_before": "v1", "team_after": "v2"}
    rows.connection.execute(insert(tables.experiments).values(experiment | teams | figures))
    assert one(rows, "select verdict from v_experiments where experiment_id = 'EXP-1'")["verdict"] == verdict


def test_the_shipped_ledger_is_open_and_names_each_step_from_team_to_team(rows: Rows) -> None:
    statement = "select experiment_id, layer, team_before, team_after, verdict from v_experiments order by team_after"
    assert rows.connection.execute(text(statement)).all() == [
        ("EXP-40", "input", "v1-baseline", "v2-attach-path", "open"),
        ("EXP-41", "prompt", "v2-attach-path", "v3-prompt-fix", "open"),
        ("EXP-46", "prompt", "v3-prompt-fix", "v4-prompt-fix", "open"),
        ("EXP-42", "tools", "v4-prompt-fix", "v5-multitool", "open"),
        ("EXP-47", "routing", "v1-baseline", "v6-verify-gate", "open"),
    ]


def metric(rows: Rows, run_id: UUID, name: str, value: float, version: str = "2") -> None:
    row = {"run_id": run_id, "name": name, "scorer_version": version, "value": value}
    rows.connection.execute(insert(tables.run_metrics).values(row))


def test_figures_are_those_of_the_scorer_version_that_gave_the_verdict(rows: Rows) -> None:
    rows.team()
    rows.task(benchmark="analysis")
    rows.batch(benchmark="analysis")
    rows.cell()
    run_id = rows.completed(scorer_version="2")
    metric(rows, run_id, "number_grounding", 0.1, version="1")
    metric(rows, run_id, "number_grounding", 0.75)
    found = one(rows, "select * from v_analysis_grounded")
    assert (found["number_grounding"], found["entity_grounding"], found["success"]) == (0.75, None, True)
    assert one(rows, "select name, value from v_run_metrics") == {"name": "number_grounding", "value": 0.75}


def test_an_analysis_without_grounding_figures_is_still_shown(rows: Rows) -> None:
    rows.team()
    rows.task(benchmark="analysis")
    rows.batch(benchmark="analysis")
    rows.cell()
    rows.completed()
    assert one(rows, "select * from v_analysis_grounded")["number_grounding"] is None


def test_research_grounding_has_coverage_and_validity(rows: Rows) -> None:
    rows.team()
    rows.task(benchmark="research")
    rows.batch(benchmark="research")
    rows.cell()
    run_id = rows.completed(scorer_version="2")
    counts = {"claims": 4, "claims_cited": 3, "claims_supported": 2, "citations": 5, "citations_valid": 4}
    for version, evidence in (("1", 1), ("2", 6)):
        values = {"run_id": run_id, "scorer_version": version, "evidence": evidence} | counts
        rows.connection.execute(insert(tables.research_grounding).values(values))
    found = one(rows, "select * from v_research_grounding")
    assert (found["evidence"], found["citation_coverage"], found["citation_validity"]) == (6, 0.75, 0.8)


def test_grounding_of_an_answer_without_a_claim_has_no_coverage(rows: Rows) -> None:
    rows.team()
    rows.task(benchmark="research")
    rows.batch(benchmark="research")
    rows.cell()
    counts = dict.fromkeys(
        ("evidence", "claims", "claims_cited", "claims_supported", "citations", "citations_valid"), 0
    )
    values = {"run_id": rows.completed(scorer_version="1"), "scorer_version": "1"} | counts
    rows.connection.execute(insert(tables.research_grounding).values(values))
    found = one(rows, "select * from v_research_grounding")
    assert (found["citation_coverage"], found["citation_validity"]) == (None, None)


def test_cppx_grounding_is_that_of_the_live_try(rows: Rows) -> None:
    rows.team()
    rows.task(benchmark="cppx")
    rows.batch(benchmark="cppx")
    rows.cell()
    counts = {"facts": 4, "facts_found": 3, "fact_ratio": 0.75, "forbidden_found": 0, "identifiers": 2}
    counts |= {"identifiers_valid": 1, "locations": 0, "locations_valid": 0}
    values = {"run_id": rows.completed(scorer_version="1"), "scorer_version": "1"} | counts
    rows.connection.execute(insert(tables.cppx_grounding).values(values))
    found = one(rows, "select * from v_cppx_grounding")
    assert (found["fact_ratio"], found["identifiers_valid"], found["location_precision"]) == (0.75, 1, None)


def test_message_types_are_the_eight_of_the_trace(rows: Rows) -> None:
    assert set(rows.connection.scalars(select(tables.message_types.c.name))) == {
        "agent_message",
        "tool_call",
        "tool_result",
        "tool_error",
        "selector_decision",
        "final_answer",
        "handoff",
        "evaluator_score",
    }
