"""How many answers each scorer judges per second of CPU, over its sample suite, and which is the slowest.

Run it from a checkout: ``python -m eval_pipeline_tests.bench.scorers [--json FILE]``. The answers are the last replies
of the scripts, unfilled: right and wrong ones, of the length that a planner writes. Absolute figures are the machine's;
the ratio to the fastest, measured in the same run, is what can be compared.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from pathlib import Path

from eval_pipeline.benchmarks.base import Answer
from eval_pipeline.benchmarks.final_answer import extract_final_answer
from eval_pipeline.benchmarks.registry import BENCHMARKS
from eval_pipeline.sample_data.scripts import load_script
from eval_pipeline.settings import load_settings
from eval_pipeline.suites import load_suites, load_tasks

LEAST_S = 1.0
"""Each scorer goes round its tasks until this much time has passed. Seconds."""


def _cpu_s() -> float:
    """CPU seconds of this process and of the children that it has waited for."""
    spent = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in spent)


def _answer(team_id: str, task_id: str) -> Answer:
    said = [step.say for step in load_script(team_id, task_id).steps if step.by == "planner" and step.say]
    return Answer(extract_final_answer(said[-1]), said[-1])


def answers_per_cpu_second(benchmark: str) -> float:
    """Answers of the benchmark's sample suite that its scorer judges in a second of CPU."""
    settings = load_settings()
    kind = BENCHMARKS[benchmark]
    suite = load_suites(settings)["sample" if benchmark == "gaia" else f"sample_{benchmark}"]
    team_id = "t1-text" if kind.answers == "text" else "v5-multitool"
    pairs = [(task, _answer(team_id, task.task_id)) for task in load_tasks(suite, settings).tasks]
    for pair in pairs:  # what is loaded once is not counted
        kind.score(*pair)
    scored, begun_s, cpu_s = 0, time.monotonic(), _cpu_s()
    while time.monotonic() - begun_s < LEAST_S:
        for task, answer in pairs:
            kind.score(task, answer)
            scored += 1
    return scored / max(1e-9, _cpu_s() - cpu_s)


def main() -> None:
    """Print the table, and write it as JSON where asked."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    rates = {name: answers_per_cpu_second(name) for name in BENCHMARKS}
    fastest = max(rates.values())
    print(f"{'scorer':<10} {'answers per CPU second':>23} {'times slower than the fastest':>30}")
    for name, rate in sorted(rates.items(), key=lambda item: -item[1]):
        print(f"{name:<10} {rate:>23,.1f} {fastest / rate:>30,.0f}")
    print(f"the slowest is {min(rates, key=lambda name: rates[name])}")
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(rates, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
