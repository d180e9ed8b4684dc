"""The configured endpoint as a judge: one request about one text, tried again as a run's requests are.

What is asked and what the answer means belongs to :mod:`eval_pipeline.failures`.
"""

from __future__ import annotations

import asyncio
from typing import Final

from autogen_core.models import LLMMessage, SystemMessage, UserMessage

from eval_pipeline.agents.completion import Completion, CompletionRequest, ModelFailure
from eval_pipeline.agents.endpoint import EndpointPool
from eval_pipeline.agents.retry import RetryPolicy
from eval_pipeline.errors import JudgeError
from eval_pipeline.settings import Settings

_ROLE: Final = "judge"
_LONGEST_ANSWER = 2_000
"""Tokens of an answer; a model that reasons first needs most of them for that."""


class EndpointJudge:
    """Asks the endpoint that ``settings`` name. Create and close it inside the event loop that uses it.

    Raises:
        SettingsError: no endpoint is configured.
    """

    def __init__(self, settings: Settings) -> None:
        _, self.model = settings.require_endpoint()
        self._pool = EndpointPool(settings)
        self._retry = RetryPolicy(
            retries=settings.llm_retries, base_s=settings.llm_backoff_s, budget_s=settings.llm_retry_budget_s
        )
        longest = min(settings.llm_max_tokens or _LONGEST_ANSWER, _LONGEST_ANSWER)
        self._create_args = {"max_tokens": longest}
        self._json_output = settings.llm_json_output

    async def ask(self, instructions: str, text: str) -> tuple[str, int | None]:
        """The answer to ``text``, and the tokens that it took in both directions, ``None`` where they are unknown.

        Raises:
            JudgeError: no answer in words came; one line with the class of the failure.
        """
        messages: list[LLMMessage] = [
            SystemMessage(content=instructions),
            UserMessage(content=text, source="user"),
        ]
        completion = await self._with_retries(messages)
        if not isinstance(completion.content, str) or not completion.content.strip():
            raise JudgeError("the judge's model gave no answer in words")
        usage = completion.usage
        counts = (usage.prompt_tokens, usage.completion_tokens) if usage else (None, None)
        known = [count for count in counts if count is not None]
        return completion.content, sum(known) if known else None

    async def _with_retries(self, messages: list[LLMMessage]) -> Completion:
        attempt, waited_s = 0, 0.0
        while True:
            attempt += 1
            request = CompletionRequest(
                _ROLE, messages, json_output=self._json_output or None, extra_create_args=self._create_args
            )
            try:
                return await self._pool.source().complete(request)
            except ModelFailure as failure:
                wait_s = self._retry.wait_s(attempt, failure, waited_s)
                if wait_s is None:
                    raise JudgeError(f"the judge's endpoint failed: {failure.error_class}: {failure}") from failure
                waited_s += wait_s
                await asyncio.sleep(wait_s)

    async def aclose(self) -> None:
        await self._pool.aclose()
