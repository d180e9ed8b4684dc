"""A small database in which every view has rows, for tests of what reads the views."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

from sqlalchemy import Connection, func, insert, select, update

from eval_pipeline.db import tables
from eval_pipeline.db.views import SUMMARY_VIEWS
from eval_pipeline_tests.db.builders import NOON, Rows

TEAMS = ("v1", "v2")


def fill(connection: Connection) -> None:
    """Two teams over one suite, a text suite beside it, every kind of outcome, and what rules have seen in it."""
    rows = Rows(connection)
    rows.team("v1")
    rows.team("v2", parent_id="v1", layer="tools", changes=["tools"], change="other tools")
    for task_id, level in (("t1", 1), ("t2", 2), ("t3", 3)):
        rows.task(task_id, level=level)
    for team in TEAMS:
        rows.batch("b1", team)
        for task_id in ("t1", "t2", "t3"):
            for attempt in (1, 2):
                rows.cell(task_id, attempt, team_id=team)
        used = {"team_id": team, "all_tokens_in": 900, "all_tokens_out": 100, "model_calls": 4, "cost": 0.5}
        right = rows.completed("t1", 1, latency_ms=3000, turns=4, tool_calls=1, terminated_by="approve", **used)
        wrong = rows.completed(
            "t1",
            2,
            success=False,
            latency_ms=9000,
            turns=8,
            terminated_by="max_messages",
            failure_stage="step_repetition",
            **used,
        )
        silent = rows.completed("t2", 1, success=False, format_valid=False, failure_stage="none", **used)
        rows.completed("t2", 2, **used)
        rows.crashed("t3", 1, **used)
        rows.run("t3", 2, team_id=team)
        for run_id in (right, wrong):
            _talk(rows, run_id)
        _findings(connection, wrong, silent)
    _text_batches(rows)
    for view in SUMMARY_VIEWS:
        renew = getattr(func, f"refresh_{view}")
        connection.execute(select(renew(tables.batches.c.batch_id, tables.batches.c.team_id)))


def _talk(rows: Rows, run_id: UUID) -> None:
    """A trace with every role and kind of event, its model calls and a metric."""
    chosen = {"source": "selector", "reason_code": "NEEDS_PLANNING"}
    rows.event(run_id, 0, source="user", content="How many?")
    rows.event(run_id, 1, "selector_decision", target="planner", **chosen)
    rows.event(run_id, 2, source="planner", content="Call the tool.", tokens_in=10, tokens_out=5, latency_ms=100)
    rows.event(run_id, 3, "selector_decision", target="executor", **chosen | {"reason_code": "NEEDS_EXECUTION"})
    rows.event(run_id, 4, "tool_call", source="executor", tool_name="python_calc", tool_call_id="c1", tool_args={})
    rows.event(
        run_id,
        5,
        "tool_error",
        source="executor",
        tool_name="python_calc",
        tool_call_id="c1",
        latency_ms=5,
        content="ValueError",
        error={"class": "tool", "type": "ValueError", "message": "ValueError"},
    )
    rows.event(run_id, 6, "selector_decision", target="critic", **chosen | {"reason_code": "PARSE_FAILED"})
    rows.event(run_id, 7, source="critic", content="APPROVE")
    roles = ("planner", "executor", "critic", "selector")
    execute = rows.connection.execute
    execute(
        insert(tables.model_calls),
        [
            {
                "run_id": run_id,
                "call_no": number,
                "role": role,
                "kind": "selection" if role == "selector" else "turn",
                "latency_ms": 100,
                "outcome": "ok",
                "prompt_tokens": 200,
                "completion_tokens": 50,
            }
            for number, role in enumerate(roles)
        ],
    )
    execute(insert(tables.run_metrics).values(run_id=run_id, name="official_success", scorer_version="gaia-1", value=1))
    # the newest run is the one whose transcript a board shows when it is opened
    newest = {"scorer_version": "gaia-1", "started_at": datetime.now(UTC) + timedelta(hours=1)}
    execute(update(tables.runs).where(tables.runs.c.run_id == run_id).values(newest))


def _findings(connection: Connection, wrong: UUID, silent: UUID) -> None:
    for found_by, version in (("rules", "rules-1"), ("judge", "judge-1")):
        connection.execute(
            insert(tables.failure_signals).values(
                run_id=wrong,
                mode="step_repetition",
                found_by=found_by,
                version=version,
                confidence="decided" if found_by == "rules" else "signal",
                seqs=[2, 4],
                detail="again and again",
            )
        )
        connection.execute(insert(tables.examinations).values(run_id=wrong, examiner=found_by, version=version))
    connection.execute(insert(tables.examinations).values(run_id=silent, examiner="rules", version="rules-1"))
    connection.execute(
        insert(tables.contamination_flags).values(
            run_id=wrong, rule="answer_key_file", version="c-1", confidence="decided", seqs=[4, 5], detail="a key"
        )
    )
    connection.execute(insert(tables.examinations).values(run_id=wrong, examiner="contamination", version="c-1"))


def _text_batches(rows: Rows) -> None:
    """One run each of the benchmarks that have grounding of their own."""
    for benchmark in ("analysis", "research", "cppx"):
        rows.task(f"{benchmark}-1", benchmark=benchmark)
        rows.batch(f"{benchmark}-b", benchmark=benchmark, suite=benchmark)
        rows.cell(f"{benchmark}-1", batch_id=f"{benchmark}-b")
        run_id = rows.completed(f"{benchmark}-1", batch_id=f"{benchmark}-b", scorer_version="s-1", finished_at=NOON)
        execute = rows.connection.execute
        match benchmark:
            case "analysis":
                for name in ("number_grounding", "entity_grounding"):
                    execute(
                        insert(tables.run_metrics).values(run_id=run_id, name=name, scorer_version="s-1", value=0.4)
                    )
            case "research":
                execute(
                    insert(tables.research_grounding).values(
                        run_id=run_id,
                        scorer_version="s-1",
                        evidence=3,
                        claims=4,
                        claims_cited=3,
                        claims_supported=2,
                        citations=3,
                        citations_valid=2,
                        citation_precision=0.5,
                        citation_recall=0.5,
                        grounding_f1=0.5,
                    )
                )
            case "cppx":
                execute(
                    insert(tables.cppx_grounding).values(
                        run_id=run_id,
                        scorer_version="s-1",
                        facts=5,
                        facts_found=4,
                        fact_ratio=0.8,
                        forbidden_found=0,
                        identifiers=3,
                        identifiers_valid=3,
                        identifier_precision=1,
                        locations=2,
                        locations_valid=1,
                        location_precision=0.5,
                    )
                )
