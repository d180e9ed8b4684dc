"""The modes of MAST (arXiv 2503.13657), by name: the published lists number them differently. In words of our own."""

from __future__ import annotations

from collections.abc import Mapping

MODES: Mapping[str, str] = {
    "disobey_task_specification": "breaks a constraint or requirement of the task, such as the form of the answer",
    "disobey_role_specification": "leaves the assigned role and acts as another agent",
    "step_repetition": "repeats finished steps without need",
    "loss_of_conversation_history": "context is lost, and the team falls back to an earlier state",
    "unaware_of_termination_conditions": "does not see that it should stop",
    "conversation_reset": "the dialogue restarts without cause, and progress is lost",
    "fail_to_ask_for_clarification": "goes on with unclear or missing data instead of asking",
    "task_derailment": "drifts away from the goal",
    "information_withholding": "an agent has needed information and does not pass it on",
    "ignored_other_agents_input": "disregards what another agent or a tool has said",
    "reasoning_action_mismatch": "does other than it has reasoned or announced",
    "premature_termination": "ends before the goal is reached or needed exchanges are done",
    "no_or_incomplete_verification": "the result is not checked, or only in part",
    "incorrect_verification": "the result is checked, but wrongly",
}
"""Every mode with its meaning."""
