"""(e) How long a launch takes to its first request to a model, for a new batch and for one with a tenth left to do."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import Engine, text

from eval_pipeline_tests.bench.figures import Figure, Size
from eval_pipeline_tests.bench.measuring import first_call, product_batch
from eval_pipeline_tests.bench.places import bench_home, migrated
from eval_pipeline_tests.bench.workload import write_workload

TITLE = "(e) from the launch, its start of Python left out, to the first request to the model"
_DONE = text(
    """
    insert into runs (
        run_id, batch_id, team_id, task_id, attempt, try_no, live, task_hash, level, status, started_at, heartbeat_at,
        finished_at, success, format_valid, terminated_by, scorer_version, latency_ms, tokens_in, tokens_out,
        all_tokens_in, all_tokens_out, model_calls
    )
    select
        gen_random_uuid(), batch_id, team_id, task_id, attempt, 1, true, task_hash, 1, 'completed', now(), now(),
        now(), true, true, 'approve', '1', 1, 1, 1, 1, 1, 12
    from plan
    where batch_id = :batch
    order by task_id, attempt
    limit :count
    """
)


def measure(size: Size) -> Iterator[Figure]:
    """Seconds for batches of three sizes."""
    for planned in (165, 1_000, 10_000) if size == "full" else (10,):
        with tempfile.TemporaryDirectory() as folder:
            variables = write_workload(Path(folder) / "work", planned // 5, attempts=5)
            with bench_home(variables=variables):
                product_batch("warm-up", 1)
                new_s = first_call("new", planned)["first_call_s"]
                _mark_done(migrated(), "new", planned * 9 // 10)
                # what the killed worker left is given back by the next launch, which takes its time and is not meant
                product_batch("next", 1)
                resumed_s = first_call("new", planned)["first_call_s"]
        target, met = ("< 5 s", max(new_s, resumed_s) < 5) if planned == 10_000 else ("", None)
        yield Figure(f"{planned:,} runs, new", new_s, "s", target=target, met=met)
        yield Figure(f"{planned:,} runs, a tenth left", resumed_s, "s", target=target, met=met)


def _mark_done(engine: Engine, batch: str, count: int) -> None:
    """Give that many cells a completed run, and take away what the killed worker left."""
    with engine.begin() as connection:
        connection.execute(text("delete from runs where batch_id = :batch"), {"batch": batch})
        connection.execute(_DONE, {"batch": batch, "count": count})
