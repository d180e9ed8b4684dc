"""The fault matrix as a whole, and as it is written down in ``docs/faults.md``; run this module to write that anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from eval_pipeline_tests.agents.endpoint_faults import CONNECTIONS, DIALECTS, NO_ANSWERS, STATUSES, STREAMS
from eval_pipeline_tests.agents.faults import BUDGET_S, RETRIES, Fault
from eval_pipeline_tests.agents.model_faults import SELECTIONS, TEXTS, TOOL_CALLS, VERDICTS

DOCUMENT = Path(__file__).parents[2] / "docs" / "faults.md"

SECTIONS: Mapping[str, Sequence[Fault]] = {
    "Statuses": STATUSES,
    "Connections": CONNECTIONS,
    "Broken streams": STREAMS,
    "Answers that are none": NO_ANSWERS,
    "Dialects of usage": DIALECTS,
    "Tool calls of the executor": TOOL_CALLS,
    "The selector's choice": SELECTIONS,
    "The critic's verdict": VERDICTS,
    "Texts": TEXTS,
}
FAULTS = [fault for section in SECTIONS.values() for fault in section]

_INTRODUCTION = f"""\
# What endpoints and models do wrong, and what becomes of a run

Each row is played against a stub endpoint through the product's own run path; a test holds this file against what it
sees. An endpoint's failure is a crash of its class and never a wrong answer; a model's mistake is an answer that the
team goes on with. Settings of the test: {RETRIES} retries, a retry budget of {BUDGET_S:g} s.

- *Answer*: whether the endpoint was asked for a stream (`EVAL_LLM_STREAM`).
- *The run ends*: `terminated_by` of a completed run, or the error class of a crash.
- *Calls*: the rows of `model_calls` of the role that met the fault, as outcome, HTTP status (– for none), finish
  reason, error class, and `+usage` where both token counts are known (`+prompt`: only that one; nothing: NULL). All
  other calls went well.
- *Trace*: the rows of `events`: who spoke, `→` whom the selector chose (with an unusual reason code), `call:` and what
  came of it, the end. A crash has no end.
"""


def document() -> str:
    """The text of ``docs/faults.md``."""
    lines = [_INTRODUCTION]
    for section, faults in SECTIONS.items():
        lines += [f"## {section}", "", "| what happens | answer | the run ends | calls | trace |", "| --- " * 5 + "|"]
        lines += [
            f"| {fault.what} | {_mode(fault.modes)} | {fault.end} | {fault.calls} | {fault.trace} |" for fault in faults
        ]
        lines.append("")
    return "\n".join(lines)


def _mode(modes: Sequence[bool]) -> str:
    return "either" if len(modes) == 2 else "streamed" if modes[0] else "whole"


if __name__ == "__main__":
    DOCUMENT.parent.mkdir(exist_ok=True)
    DOCUMENT.write_text(document(), encoding="utf-8")
