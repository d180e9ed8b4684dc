"""The material of a report is what the database holds: figures, runs, tries, traces, signals, comparison."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import insert

from eval_pipeline.comparison.compare import ComparisonError
from eval_pipeline.db import tables
from eval_pipeline.db.views import refresh_all
from eval_pipeline.errors import IdError
from eval_pipeline.ids import BatchTeam, TaskAttempt
from eval_pipeline.reporting import reading
from eval_pipeline.reporting.material import Material, Run
from eval_pipeline.reporting.reading import read_material
from eval_pipeline_tests.conftest import Database
from eval_pipeline_tests.db.builders import NOON
from eval_pipeline_tests.reporting.batches import BASE, CHANGED, Batches


@pytest.fixture
def rows(database: Database) -> Iterator[Batches]:
    """Two teams and three tasks; what a test adds is committed when it reads."""
    with database.engine.connect() as connection:
        batches = Batches(connection)
        batches.teams()
        for number, task_id in enumerate(("t1", "t2", "t3"), 1):
            batches.task(task_id, level=number, gold=f"gold of {task_id}", question=f"질문 {number}?")
        batches.under(BASE)
        yield batches


def read(rows: Batches, database: Database, batch_team: BatchTeam = BASE, against: BatchTeam | None = None) -> Material:
    rows.connection.commit()
    refresh_all(database.engine)
    return read_material(database.engine, batch_team, against)


def of(material: Material, task_id: str, attempt: int = 1) -> Run:
    return next(run for run in material.runs if run.cell == TaskAttempt(task_id, attempt))


def test_every_planned_cell_is_a_run_with_its_task(rows: Batches, database: Database) -> None:
    rows.ended(BASE, "t1", final_answer="gold of t1", all_tokens_in=100, all_tokens_out=5, turns=3)
    rows.failed(BASE, "t2", error_message="no answer for 120 s")
    rows.cell("t3")
    material = read(rows, database)
    assert [(run.cell.key, run.verdict, run.level) for run in material.runs] == [
        ("t1#1", "right", 1),
        ("t2#1", "crashed", 2),
        ("t3#1", "not started", 3),
    ]
    right, crashed, waiting = material.runs
    assert (right.question, right.gold, right.answer, right.all_tokens, right.turns) == (
        "질문 1?",
        "gold of t1",
        "gold of t1",
        105,
        3,
    )
    assert (crashed.failure, crashed.error_message) == ("crashed: connection", "no answer for 120 s")
    assert (waiting.run_id, waiting.tries, waiting.turns) == (None, (), 0)
    assert (material.figures.planned, material.figures.completed, material.figures.crashed) == (3, 1, 1)
    assert [level.level for level in material.levels] == [1, 2, 3]


def test_the_answer_of_a_team_that_answers_with_a_text_is_the_planners_last_message(
    rows: Batches, database: Database
) -> None:
    texts = BatchTeam("b1", "t1-text")
    rows.team("t1-text", answers="text")
    rows.under(texts)
    run_id = rows.ended(texts, "t1", final_answer=None)
    rows.said(run_id, "Step 1: look.", "SELECT 1;\nSELECT 2;")
    rows.event(run_id, 2, source="critic", content="APPROVE")
    rows.failed(texts, "t2")
    material = read(rows, database, texts)
    assert (of(material, "t1").answer, of(material, "t2").answer) == ("SELECT 1;\nSELECT 2;", None)


def test_every_try_is_kept_and_usage_is_over_all_of_them(rows: Batches, database: Database) -> None:
    usage = {"all_tokens_in": 100, "all_tokens_out": 10, "latency_ms": 400, "cost": 0.5}
    first = rows.failed(BASE, "t1", live=False, error_class="rate_limit", **usage)
    rows.said(first, "first words")
    second = rows.completed("t1", 1, success=False, try_no=2, **usage)
    rows.said(second, "second words", "and more")
    run = of(read(rows, database), "t1")
    assert [(one.try_no, one.live, one.status, len(one.events)) for one in run.tries] == [
        (1, False, "crashed", 1),
        (2, True, "completed", 2),
    ]
    assert (run.all_tokens, run.latency_ms, run.cost) == (220, 800, 1.0)
    assert [event.text for event in run.tries[1].events] == ["second words", "and more"]


def test_an_event_says_who_spoke_to_whom_why_and_with_what_result(rows: Batches, database: Database) -> None:
    run_id = rows.ended(BASE, "t1")
    rows.event(
        run_id,
        0,
        "selector_decision",
        source="selector",
        target="planner",
        reason_code="NEEDS_PLANNING",
        content='{"next": "planner"}',
        payload={"summary": "Nobody has planned yet."},
    )
    rows.event(
        run_id, 1, "tool_call", source="executor", tool_name="python_exec", tool_call_id="c", tool_args={"code": "1"}
    )
    error = {"class": "tool", "type": "ZeroDivisionError", "message": "division by zero"}
    rows.event(
        run_id, 2, "tool_error", source="executor", tool_name="python_exec", tool_call_id="c", content="no", error=error
    )
    rows.event(
        run_id, 3, "tool_call", source="executor", tool_name="x", tool_call_id="d", tool_args={"_raw": "{broken"}
    )
    rows.event(
        run_id,
        4,
        "final_answer",
        source="team",
        content="42",
        payload={"terminated_by": "approve", "stop_reason": "ok"},
    )
    rows.event(run_id, 5, "evaluator_score", source="judge", payload={"score": 0.5})
    rows.event(run_id, 6, "agent_message", source=None, content=None)
    chosen, call, failed, raw, end, score, empty = of(read(rows, database), "t1").tries[0].events
    assert (chosen.source, chosen.target, chosen.reason, chosen.text) == (
        "selector",
        "planner",
        "NEEDS_PLANNING",
        "Nobody has planned yet.",
    )
    assert (call.tool, call.arguments, call.text) == ("python_exec", '{"code": "1"}', None)
    assert (failed.error_type, failed.text) == ("ZeroDivisionError", "no")
    assert raw.arguments == "{broken"
    assert (end.text, end.ended_by, end.arguments) == ("42", "approve", "ok")
    assert score.text == '{"score": 0.5}'
    assert (empty.source, empty.text) == ("?", None)


def test_what_was_cut_from_a_trace_is_read_from_where_it_is_kept(rows: Batches, database: Database) -> None:
    whole = "한글 결과 " * 900
    cut = {"content_sha256": rows.full_text(whole), "content_length": len(whole)}
    run_id = rows.ended(BASE, "t1")
    rows.event(run_id, 0, "tool_result", source="executor", tool_call_id="c", content=whole[:2048], **cut)
    arguments = '{"code": "' + "x" * 9_000 + '"}'
    kept = {"content_sha256": rows.full_text(arguments), "content_length": len(arguments)}
    rows.event(
        run_id, 1, "tool_call", source="executor", tool_name="t", tool_call_id="c", tool_args=arguments[:8192], **kept
    )
    result, call = of(read(rows, database), "t1").tries[0].events
    assert (result.text, result.length, result.cut) == (whole, None, True)
    assert (call.arguments, call.length, call.cut) == (arguments, None, True)


def test_no_more_is_read_than_a_page_can_show(
    rows: Batches, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MOST_EVENTS", 3)
    monkeypatch.setattr(reading, "MOST_CHARACTERS", 5_000)
    whole = "y" * 9_000
    run_id = rows.ended(BASE, "t1")
    rows.event(
        run_id,
        0,
        source="planner",
        content=whole[:8192],
        content_sha256=rows.full_text(whole),
        content_length=len(whole),
    )
    for seq in range(1, 8):
        rows.event(run_id, seq, source="planner", content="x")
    one = of(read(rows, database), "t1").tries[0]
    assert (len(one.events), one.more_events) == (3, 5)
    assert (len(one.events[0].text or ""), one.events[0].length) == (5_000, 9_000)


def test_signals_and_flags_stand_at_their_runs_and_only_the_latest_look_counts(
    rows: Batches, database: Database
) -> None:
    run_id = rows.ended(BASE, "t1", success=False)
    other = rows.ended(BASE, "t2")
    found = {"run_id": run_id, "mode": "step_repetition", "seqs": [3, 5], "detail": "alike", "confidence": "decided"}
    stored, flags, looks = tables.failure_signals, tables.contamination_flags, tables.examinations
    for version, mode in (("old", "premature_termination"), ("new", "step_repetition")):
        rows.connection.execute(insert(stored).values(**(found | {"version": version, "mode": mode}), found_by="rules"))
    rows.connection.execute(
        insert(flags).values(run_id=run_id, rule="answer_key_file", version="c1", confidence="signal", seqs=[1])
    )
    for examined, examiner, version in (
        (run_id, "rules", "new"),
        (run_id, "contamination", "c1"),
        (other, "rules", "new"),
    ):
        rows.connection.execute(insert(looks).values(run_id=examined, examiner=examiner, version=version))
    material = read(rows, database)
    run = of(material, "t1")
    assert [(one.mode, one.confidence, one.seqs, one.detail) for one in run.signals] == [
        ("step_repetition", "decided", (3, 5), "alike")
    ]
    assert [(one.mode, one.found_by) for one in run.flags] == [("answer_key_file", "contamination")]
    assert of(material, "t2").signals == ()
    assert (material.examined.ended, material.examined.by_rules, material.examined.for_contamination) == (2, 2, 1)


def test_tools_and_roles_have_their_figures(rows: Batches, database: Database) -> None:
    run_id = rows.ended(BASE, "t1")
    call = {"source": "executor", "tool_name": "python_exec"}
    rows.event(run_id, 0, "tool_call", tool_call_id="a", tool_args={}, **call)
    rows.event(run_id, 1, "tool_error", tool_call_id="a", error={"type": "X"}, latency_ms=8, **call)
    rows.connection.execute(
        insert(tables.model_calls).values(
            run_id=run_id, call_no=0, role="selector", kind="selection", latency_ms=5, outcome="ok", prompt_tokens=7
        )
    )
    material = read(rows, database)
    assert [(tool.name, tool.calls, tool.errors, tool.p50_latency_ms) for tool in material.tools] == [
        ("python_exec", 1, 1, 8.0)
    ]
    assert [(role.role, role.model_calls, role.tokens_in) for role in material.accounting.roles] == [
        ("executor", 0, None),
        ("selector", 1, 7),
    ]


def test_the_contract_is_read_field_by_field(rows: Batches, database: Database) -> None:
    rows.connection.execute(
        insert(tables.batches).values(
            batch_id="b2",
            team_id="v1",
            suite="sample",
            benchmark="gaia",
            suite_hash="s" * 64,
            contract={"llm_seed": 7, "endpoint": None, "benchmark.tools": {"a": "x", "b": "y"}, "list": [1, "둘"]},
            contract_hash="k" * 64,
            info={"python": "3.11"},
            provider="openai",
            model="model-one",
            scripted=False,
            created_at=NOON,
        )
    )
    material = read(rows, database, BatchTeam("b2", "v1"))
    assert {entry.name: entry.value for entry in material.contract} == {
        "benchmark.tools": "a x\nb y",
        "endpoint": "–",
        "list": '[1, "둘"]',
        "llm_seed": "7",
    }
    assert [(entry.name, entry.value) for entry in material.circumstances] == [("python", "3.11")]
    assert (material.model, material.scripted, material.runs, material.figures.planned) == ("model-one", False, (), 0)


class TestComparison:
    @pytest.fixture
    def both(self, rows: Batches) -> Batches:
        rows.under(CHANGED)
        for task_id, before, after in (("t1", True, True), ("t2", False, True), ("t3", True, False)):
            rows.ended(BASE, task_id, success=before)
            rows.ended(CHANGED, task_id, success=after)
        return rows

    def test_the_default_baseline_is_the_parent_teams_batch(self, both: Batches, database: Database) -> None:
        contrast = read(both, database, CHANGED).contrast
        assert contrast is not None
        assert (contrast.before, contrast.tasks, contrast.verdict) == (BASE, 3, "no difference shown")
        assert [one.task_id for one in contrast.gained] == ["t2"]
        assert [one.task_id for one in contrast.lost] == ["t3"]
        assert contrast.gained[0].run_before is not None
        assert contrast.scripted

    def test_of_several_attempts_the_telling_one_is_linked(self, both: Batches, database: Database) -> None:
        both.ended(BASE, "t2", 2, success=False)
        both.ended(CHANGED, "t2", 2, success=False)
        both.ended(CHANGED, "t3", 2, success=True)
        contrast = read(both, database, CHANGED).contrast
        assert contrast is not None
        (gained,), (lost,) = contrast.gained, contrast.lost
        assert (gained.task_id, gained.attempt, gained.after) == ("t2", 1, 0.5)
        # the wrong attempt shows why it was lost
        assert (lost.task_id, lost.attempt, lost.after) == ("t3", 1, 0.5)

    def test_without_a_baseline_it_says_why(self, both: Batches, database: Database) -> None:
        material = read(both, database, BASE)
        assert material.contrast is None
        assert material.no_contrast is not None
        assert "parent team" in material.no_contrast

    def test_a_baseline_that_shares_no_completed_task_is_a_reason_and_no_error(
        self, rows: Batches, database: Database
    ) -> None:
        rows.under(CHANGED)
        rows.ended(BASE, "t1")
        rows.failed(CHANGED, "t1")
        material = read(rows, database, CHANGED)
        assert material.contrast is None
        assert "No task has a completed run" in str(material.no_contrast)

    def test_a_baseline_that_was_named_must_fit(self, both: Batches, database: Database) -> None:
        both.under(BatchTeam("b9", "v1"), suite_hash="z" * 64)
        both.ended(BatchTeam("b9", "v1"), "t1")
        with pytest.raises(ComparisonError, match="ran over different tasks"):
            read(both, database, CHANGED, BatchTeam("b9", "v1"))
        with pytest.raises(IdError, match="there is no batch 'b8@v1'"):
            read(both, database, CHANGED, BatchTeam("b8", "v1"))
        named = read(both, database, BASE, CHANGED).contrast
        assert named is not None
        assert named.before == CHANGED


def test_a_batch_that_is_not_there_is_one_line(database: Database) -> None:
    with pytest.raises(IdError, match="there is no batch 'b1@v1'; eval-pipeline status lists those there are"):
        read_material(database.engine, BASE)


def test_reading_changes_nothing_and_sees_one_moment(rows: Batches, database: Database) -> None:
    rows.ended(BASE, "t1")
    before = read(rows, database)
    assert read_material(database.engine, BASE).runs == before.runs
