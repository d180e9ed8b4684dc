"""One row of the fault matrix: what an endpoint or a model does wrong, and what a run has to make of it.

The rows are in ``endpoint_faults.py`` and ``model_faults.py``, the table of them in ``fault_table.py``.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from eval_pipeline_tests.agents.scenes import ANSWER, SHORT, Scene
from eval_pipeline_tests.stub_openai import Reply

WHOLE, STREAMED, BOTH = (False,), (True,), (False, True)
RETRIES = 2
BUDGET_S = 5.0

OK = "ok 200 stop +usage"
SAID = ANSWER.text or ""
GOES_ON = "user →planner planner →critic critic end:approve"
STOPS = "user →planner"

_numbers = itertools.count(1)


@dataclass(frozen=True)
class Fault:
    """``calls`` are those of ``role`` in short, as ``test_faults.call_line`` writes them; all others went well.

    ``end`` is what the run was terminated by, or the class of its error. ``settings`` names the launch's settings.
    """

    what: str
    end: str
    calls: str
    trace: str
    replies: Mapping[str, Sequence[Reply]]
    role: str = "planner"
    modes: Sequence[bool] = BOTH
    route: Sequence[str] = SHORT
    question: str = "What is 6 * 7?"
    settings: str = "usual"
    task_id: str = field(default_factory=lambda: f"fault-{next(_numbers):03d}")

    @property
    def scene(self) -> Scene:
        return Scene(self.task_id, self.replies, self.route, self.question)

    @property
    def refuses(self) -> bool:
        """Whether runs in a row like this one keep others from starting."""
        return self.end in ("quota", "auth")


def crash(what: str, replies: Sequence[Reply], end: str, calls: str, modes: Sequence[bool] = BOTH) -> Fault:
    """The planner's call fails, and the run with it."""
    return Fault(what, end, calls, STOPS, {"planner": replies}, modes=modes)


def recovers(what: str, replies: Sequence[Reply], calls: str, modes: Sequence[bool] = BOTH) -> Fault:
    """The planner gets an answer in the end, and the run goes on."""
    return Fault(what, "approve", calls, GOES_ON, {"planner": replies}, modes=modes)


def again(failure: str) -> str:
    """As many failed calls as there are tries."""
    return f"{RETRIES + 1}× {failure}"
