"""Stores what a scorer said: verdict, metrics and grounding, each under the scorer's version.

The present verdict is also part of the run's row. A score of another version is another row; nothing is overwritten
by it.
"""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import Connection
from sqlalchemy.dialects.postgresql import insert

from eval_pipeline.benchmarks.base import Benchmark, Score
from eval_pipeline.db import tables


def store_score(connection: Connection, run_id: UUID, benchmark: Benchmark, score: Score) -> None:
    """Store verdict, metrics and grounding of ``score``; what is there under the same version is renewed."""
    verdict = {"success": score.success, "format_valid": score.format_valid, "reason": score.reason}
    connection.execute(
        insert(tables.scores)
        .values(run_id=run_id, scorer_version=benchmark.scorer_version, **verdict)
        .on_conflict_do_update(index_elements=["run_id", "scorer_version"], set_=verdict)
    )
    store_figures(connection, run_id, benchmark, score)


def store_figures(connection: Connection, run_id: UUID, benchmark: Benchmark, score: Score) -> None:
    """Store the metrics and the grounding row of ``score`` without its verdict."""
    version = benchmark.scorer_version
    metrics = [
        {"run_id": run_id, "name": name, "scorer_version": version, "value": value}
        for name, value in score.metrics.items()
    ]
    if metrics:
        statement = insert(tables.run_metrics)
        renewed = statement.on_conflict_do_update(
            index_elements=["run_id", "name", "scorer_version"], set_={"value": statement.excluded.value}
        )
        connection.execute(renewed, metrics)
    if benchmark.grounding_table is not None and score.grounding:
        row = {"run_id": run_id, "scorer_version": version, **score.grounding}
        grounding = insert(tables.metadata.tables[benchmark.grounding_table]).values(row)
        connection.execute(
            grounding.on_conflict_do_update(index_elements=["run_id", "scorer_version"], set_=dict(score.grounding))
        )
