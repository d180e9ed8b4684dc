"""An endpoint in a process of its own, so that what it costs is not counted.

``python -m eval_pipeline_tests.bench.endpoint_side FOLDER TASKS PIECES DELAY_S`` writes a suite into the folder, prints
the variables that lead to both as one line of JSON, and serves until its standard input ends. A planner's answer is
long: in a stream it comes in that many chunks, ``DELAY_S`` apart.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

from eval_pipeline.teams.registry import load_teams
from eval_pipeline_tests.endpoint_suite import TEAM, Solver, write_suite
from eval_pipeline_tests.stub_openai import Reply, stub_in_a_thread

PLANNERS = 2
"""Answers of a planner in a run."""


class Talkative(Solver):
    """Says as much as a model that thinks aloud."""

    pieces = 4
    chunk_delay_s = 0.0

    def _answer(self, role: str, planned: bool, computed: bool, answered: bool) -> Reply:
        reply = super()._answer(role, planned, computed, answered)
        if role != "planner":
            return reply
        aloud = "".join(f"{number % 10}th, " for number in range(self.pieces))
        return replace(reply, text=f"{aloud}\n{reply.text}", pieces=self.pieces, chunk_delay_s=self.chunk_delay_s)


def main() -> None:
    """Serve."""
    folder, tasks, pieces, delay_s = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
    suites = write_suite(folder, tasks)
    solver = Talkative(load_teams(None)[TEAM])
    solver.pieces, solver.chunk_delay_s = pieces, delay_s
    with stub_in_a_thread(solver) as stub:
        variables = {
            "EVAL_LLM_PROVIDER": "openai",
            "EVAL_LLM_BASE_URL": stub.base_url,
            "EVAL_LLM_MODEL": "stub-model",
            "EVAL_SUITES_FILE": str(suites),
        }
        print(json.dumps(variables), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
