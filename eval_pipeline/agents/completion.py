"""One request to a model and its answer, in our own types; what a source of answers must offer.

The sources are the scripted model and an OpenAI-compatible endpoint. Recording, retrying and judging an answer belong
to :mod:`eval_pipeline.agents.role_client`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from autogen_core import FunctionCall
from autogen_core.models import LLMMessage
from autogen_core.tools import Tool, ToolSchema
from pydantic import BaseModel

from eval_pipeline.errors import ErrorClass
from eval_pipeline.tracing.items import Usage

ToolChoice = Tool | Literal["auto", "required", "none"]


@dataclass(slots=True)
class Progress:
    """What has arrived of an answer so far: all there is to know of a request that never comes to an end.

    ``heard_at_s`` is the monotonic time of the latest part, in seconds.
    """

    usage: Usage | None = None
    finish_reason: str | None = None
    model: str | None = None
    http_status: int | None = None
    heard_at_s: float | None = None


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """What AutoGen asked of a role's client. ``progress`` is the source's to fill while it answers."""

    role: str
    messages: Sequence[LLMMessage]
    tools: Sequence[Tool | ToolSchema] = ()
    tool_choice: ToolChoice = "auto"
    json_output: bool | type[BaseModel] | None = None
    extra_create_args: Mapping[str, object] = field(default_factory=dict)
    progress: Progress = field(default_factory=Progress)


@dataclass(frozen=True, slots=True)
class Completion:
    """A whole answer. ``content`` is text or the calls that the model asked for, never both.

    ``finish_reason`` is the endpoint's own word, ``None`` if it gave none; ``model`` the name it answered with;
    ``http_status`` is ``None`` where no HTTP was spoken.
    """

    content: str | list[FunctionCall]
    usage: Usage | None
    finish_reason: str | None
    thought: str | None = None
    model: str | None = None
    http_status: int | None = None


class ModelFailure(Exception):  # noqa: N818 - it names what happened, as ErrorClass does
    """A request that brought no usable answer, classified where the real exception was at hand.

    Attributes:
        error_class: what a run that dies of it is filed under.
        retryable: whether asking again can help and costs nothing that was already delivered.
        retry_after_s: what the endpoint asked us to wait, in seconds.
        usage: tokens that were spent all the same, where the endpoint said so.
    """

    def __init__(
        self,
        error_class: ErrorClass,
        message: str,
        *,
        retryable: bool = False,
        http_status: int | None = None,
        retry_after_s: float | None = None,
        finish_reason: str | None = None,
        usage: Usage | None = None,
        model: str | None = None,
    ) -> None:
        super().__init__(message)
        self.error_class = error_class
        self.retryable = retryable
        self.http_status = http_status
        self.retry_after_s = retry_after_s
        self.finish_reason = finish_reason
        self.usage = usage
        self.model = model


class CompletionSource(Protocol):
    """Where answers come from; one per run, used inside the event loop that made it."""

    async def complete(self, request: CompletionRequest) -> Completion:
        """Answer ``request``.

        Raises:
            ModelFailure: no usable answer.
            asyncio.CancelledError: the caller gave up; the connection is closed.
        """
        ...
