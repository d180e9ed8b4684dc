"""Work of a known size for the run path: tasks of six model turns, two of which call a tool, played by the script.

A run is what a small run of a real team is: a plan, two calculations, a reviewed answer, an approval; six calls of the
selector come on top. It leaves 20 rows in ``events`` and 12 in ``model_calls``.
"""

from __future__ import annotations

import json
from pathlib import Path

TEAM = "v4-prompt-fix"
TURNS = 6
CALLS = 12
"""Requests to the model of one run: its turns, and a choice of the speaker before each."""

_SUITES = """
suites:
  grid:
    title: Work for a benchmark of the product itself
    benchmark: gaia
    data: {data}
    attempts: {attempts}
"""
_SCRIPT = """
task: {task_id}
teams:
  {team}:
    steps:
      - by: planner
        say: "Plan: compute 17 * 23, then check the product by division. Executor: python_calc 17 * 23."
      - by: executor
        call: [{{name: python_calc, args: {{expression: "17 * 23"}}}}]
      - by: planner
        say: "The product is known. Executor: check it, python_calc 391 / 23."
      - by: executor
        call: [{{name: python_calc, args: {{expression: "391 / 23"}}}}]
      - by: planner
        say: "The product is checked.\\nFINAL ANSWER: {{{{result1}}}}"
      - by: critic
        say: APPROVE
"""


def write_workload(folder: Path, tasks: int, attempts: int = 1) -> dict[str, str]:
    """Write suite ``grid`` of that many tasks below ``folder``; the variables that lead to it."""
    data, scripts = folder / "data", folder / "scripts"
    data.mkdir(parents=True)
    scripts.mkdir()
    lines = []
    for number in range(tasks):
        task_id = f"grid-{number:05}"
        lines.append(
            json.dumps(
                {
                    "task_id": task_id,
                    "Question": f"What is 17 times 23? ({number})",
                    "Level": 1,
                    "Final answer": "391",
                    "file_name": "",
                }
            )
        )
        (scripts / f"{task_id}.yaml").write_text(_SCRIPT.format(task_id=task_id, team=TEAM))
    (data / "metadata.jsonl").write_text("\n".join(lines) + "\n")
    suites = folder / "suites.yaml"
    suites.write_text(_SUITES.format(data=data, attempts=attempts))
    return {"EVAL_SUITES_FILE": str(suites), "EVAL_SCRIPTS_DIR": str(scripts)}
