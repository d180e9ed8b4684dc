"""What a batch came to is read from its plan: cells without a run count, and usage is that of all tries."""

from __future__ import annotations

import pytest

from eval_pipeline.comparison.outcomes import outcomes
from eval_pipeline.errors import IdError
from eval_pipeline.ids import BatchTeam
from eval_pipeline_tests.db.builders import Rows

B1 = BatchTeam("b1", "v1")


def test_every_planned_cell_counts_and_usage_is_that_of_all_tries(rows: Rows) -> None:
    rows.team()
    rows.batch()
    rows.task("t1", file_name="a.pdf", file_sha256="f" * 64, file_size=1)
    rows.task("t2", level=3)
    for task_id, attempt in (("t1", 1), ("t1", 2), ("t2", 1), ("t2", 2)):
        rows.cell(task_id, attempt)
    rows.crashed("t1", 1, live=False, all_tokens_in=100, all_tokens_out=10, latency_ms=500)
    rows.completed("t1", 1, try_no=2, all_tokens_in=1000, all_tokens_out=100, latency_ms=2000)
    rows.completed("t1", 2, success=False, format_valid=False)
    rows.crashed("t2", 1)
    found = outcomes(rows.connection, B1)
    assert (found.planned, found.completed, found.crashed, found.successes) == (4, 2, 1, 1)
    assert found.left_out is None
    assert found.crashed_share == 0.25
    assert not found.comparable
    cells = {one.cell.key: one for one in found.cells}
    assert cells["t1#1"].all_tokens == 1210
    assert (cells["t1#1"].attachment_kind, cells["t2#1"].attachment_kind) == ("pdf", "none")
    assert (cells["t2#1"].error_class, cells["t2#1"].completed) == ("connection", False)
    assert (cells["t2#2"].run_id, cells["t2#2"].status, cells["t2#2"].level) == (None, None, 3)
    assert {task: len(tries) for task, tries in found.by_task.items()} == {"t1": 2, "t2": 2}


def test_a_batch_that_is_not_there_is_named(rows: Rows) -> None:
    with pytest.raises(IdError, match="no batch 'b1@v1'"):
        outcomes(rows.connection, B1)
