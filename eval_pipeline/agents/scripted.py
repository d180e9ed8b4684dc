"""Answers from a script instead of a model: for the sample suite, the tests and the benchmarks.

A script says who speaks and what; the team, the selector's parsing, the tools and the scorer around it are real, and
an answer's value is taken from the tools' real output. Reading script files belongs to
:mod:`eval_pipeline.sample_data.scripts`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from autogen_core import FunctionCall
from autogen_core.models import LLMMessage, UserMessage

from eval_pipeline.agents.completion import Completion, CompletionRequest
from eval_pipeline.agents.tool_adapter import ToolLedger
from eval_pipeline.errors import ScriptError
from eval_pipeline.sample_data.scripts import Script, Step, fill
from eval_pipeline.teams.inputs import named_attachment
from eval_pipeline.tracing.items import Usage

SCRIPTED_MODEL = "scripted"
_CHARACTERS_PER_TOKEN = 4


def _text_length(messages: Sequence[LLMMessage]) -> int:
    return sum(len(str(message.content)) for message in messages)


def _run_message(messages: Sequence[LLMMessage]) -> str:
    for message in messages:
        if isinstance(message, UserMessage) and message.source == "user":
            return str(message.content)
    return ""


@dataclass
class ScriptPlayer:
    """One run's way through its script: the selector asks who is next, the roles play their step."""

    script: Script
    ledger: ToolLedger
    position: int = 0
    rejected: int = 0

    def upcoming(self) -> Step:
        """The step that is to be played next; steps whose ``when`` does not fit the latest tool outcome are skipped.

        Raises:
            ScriptError: the script has ended but the team has not.
        """
        steps = self.script.steps
        for _ in range(2 * len(steps) + 1):
            if self.position >= len(steps):
                if self.script.loop_from is None:
                    raise ScriptError(
                        f"{self.script.name}: the script has ended but the team goes on; end it with APPROVE"
                    )
                self.position = self.script.loop_from
            step = steps[self.position]
            if step.when is None or (step.when == "error") == self.ledger.last_was_error:
                return step
            self.position += 1
        raise ScriptError(f"{self.script.name}: no step of the loop fits the latest tool outcome")

    def previous_role(self) -> str | None:
        return self.script.steps[self.position - 1].by if self.position else None

    def advance(self) -> None:
        self.position += 1
        self.rejected = 0


class ScriptedSource:
    """A :class:`~eval_pipeline.agents.completion.CompletionSource` that plays one run's script.

    ``latency_s`` is the time, in seconds, that every answer takes.
    """

    def __init__(self, script: Script, ledger: ToolLedger, latency_s: float = 0.0) -> None:
        self._player = ScriptPlayer(script, ledger)
        self._ledger = ledger
        self._latency_s = latency_s

    async def complete(self, request: CompletionRequest) -> Completion:
        if self._latency_s:
            await asyncio.sleep(self._latency_s)
        if request.role == "selector":
            return self._select(request)
        return self._play(request)

    def _select(self, request: CompletionRequest) -> Completion:
        step = self._player.upcoming()
        if self._player.rejected < len(step.select_raw):
            text = step.select_raw[self._player.rejected]
            self._player.rejected += 1
        else:
            choice = {
                "next": step.by,
                "reason_code": step.reason_code or _default_reason(step.by, self._player.previous_role()),
                "summary": step.summary or f"{step.by} continues",
            }
            text = json.dumps(choice, ensure_ascii=False)
        return _answer(text, request, None)

    def _play(self, request: CompletionRequest) -> Completion:
        step = self._player.upcoming()
        if step.by != request.role:
            raise ScriptError(
                f"{self._player.script.name}: step {self._player.position} is the {step.by}'s, "
                f"but the team asked the {request.role}"
            )
        attachment = named_attachment(_run_message(request.messages))

        def filled(text: str) -> str:
            return fill(text, attachment, self._ledger.texts)

        content: str | list[FunctionCall]
        if step.calls:
            content = [
                FunctionCall(
                    id=f"call_{len(self._ledger.texts)}_{number}",
                    name=call.name,
                    arguments=json.dumps(_filled_arguments(call.args, filled), ensure_ascii=False),
                )
                for number, call in enumerate(step.calls, start=1)
            ]
        else:
            content = filled(step.say or "")
        self._player.advance()
        return _answer(content, request, step.tokens)


def _filled_arguments(arguments: object, filled: Callable[[str], str]) -> object:
    match arguments:
        case str():
            return filled(arguments)
        case dict():
            return {key: _filled_arguments(value, filled) for key, value in arguments.items()}
        case list():
            return [_filled_arguments(value, filled) for value in arguments]
        case _:
            return arguments


def _default_reason(role: str, previous: str | None) -> str:
    if role == "executor":
        return "NEEDS_EXECUTION"
    if role == "critic":
        return "NEEDS_VERIFICATION"
    return "NEEDS_REVISION" if previous == "critic" else "NEEDS_PLANNING"


def _answer(
    content: str | list[FunctionCall], request: CompletionRequest, tokens: tuple[int, int] | None
) -> Completion:
    written = content if isinstance(content, str) else "".join(call.arguments for call in content)
    prompt, completion = tokens or (
        max(1, _text_length(request.messages) // _CHARACTERS_PER_TOKEN),
        max(1, len(written) // _CHARACTERS_PER_TOKEN),
    )
    return Completion(
        content=content,
        usage=Usage(prompt, completion),
        finish_reason="stop" if isinstance(content, str) else "tool_calls",
        model=SCRIPTED_MODEL,
    )
