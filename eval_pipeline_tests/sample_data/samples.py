"""The sample suite's rows as they stand in the file, for the tests beside this module."""

from __future__ import annotations

import json
from pathlib import Path

import eval_pipeline.sample_data

TASKS = Path(eval_pipeline.sample_data.__file__).parent / "tasks"
ROWS = [json.loads(line) for line in (TASKS / "metadata.jsonl").read_text(encoding="utf-8").splitlines()]
BY_ID = {row["task_id"]: row for row in ROWS}
