"""When a team's talk is over: the critic's verdict, or a limit of ours. One condition, so that it can tell which."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from autogen_agentchat.base import TerminatedException, TerminationCondition
from autogen_agentchat.messages import BaseAgentEvent, BaseChatMessage, StopMessage, StructuredMessage, TextMessage

from eval_pipeline.teams.verdict import is_approval

APPROVE = "approve"
MAX_MESSAGES = "max_messages"
TOKEN_LIMIT = "token_limit"


_SAID = {
    APPROVE: "the critic approved",
    TOKEN_LIMIT: "the run's limit of tokens or cost was reached",
    MAX_MESSAGES: "the run's limit of messages was reached",
}


class RunEnding(TerminationCondition):
    """Ends a team by the critic's verdict, by ``out_of_tokens`` or at ``max_messages`` chat messages with the task.

    AutoGen's own conditions are not used: the one on a word also fires for "I cannot APPROVE this", for thoughts and
    for the task's text, and each is reset at the end, so that none can be asked afterwards whether it was the reason.
    """

    component_type = "termination"

    def __init__(self, max_messages: int, out_of_tokens: Callable[[], bool]) -> None:
        self._max_messages = max_messages
        self._out_of_tokens = out_of_tokens
        self._messages = 0
        self.ended_by: str | None = None
        """approve, token_limit or max_messages; kept when AutoGen resets the condition."""

    @property
    def terminated(self) -> bool:
        return self.ended_by is not None

    async def __call__(self, messages: Sequence[BaseAgentEvent | BaseChatMessage]) -> StopMessage | None:
        if self.terminated:
            raise TerminatedException("the run has ended already")
        self._messages += sum(isinstance(message, BaseChatMessage) for message in messages)
        if any(_is_verdict(message) for message in messages):
            self.ended_by = APPROVE
        elif self._out_of_tokens():
            self.ended_by = TOKEN_LIMIT
        elif self._messages >= self._max_messages:
            self.ended_by = MAX_MESSAGES
        return StopMessage(content=_SAID[self.ended_by], source="ending") if self.ended_by else None

    async def reset(self) -> None:
        """Nothing: a condition belongs to one run, and what ended it must stay known."""


def _is_verdict(message: BaseAgentEvent | BaseChatMessage) -> bool:
    return (
        isinstance(message, TextMessage | StructuredMessage)
        and message.source == "critic"
        and is_approval(message.to_text())
    )
