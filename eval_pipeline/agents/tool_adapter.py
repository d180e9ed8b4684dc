"""Our tools as AutoGen sees them, wrapped so that no tool can hang the team, kill it or take the process along.

AutoGen waits for ever when a tool call ends in anything but an ordinary exception. What a tool does belongs to
:mod:`eval_pipeline.tools`.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from autogen_core import CancellationToken
from autogen_core.tools import BaseTool
from pydantic import BaseModel, ConfigDict, ValidationError, create_model

ToolFunction = Callable[..., Awaitable[str]]


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """How one execution really ended, which AutoGen's event does not tell."""

    call_id: str
    text: str
    error_type: str | None
    latency_ms: int


@dataclass
class ToolLedger:
    """Every tool execution of one run, in the order in which they ended."""

    entries: list[LedgerEntry] = field(default_factory=list)
    _taken: set[int] = field(default_factory=set)

    @property
    def texts(self) -> list[str]:
        return [entry.text for entry in self.entries]

    @property
    def last_was_error(self) -> bool:
        return bool(self.entries) and self.entries[-1].error_type is not None

    def take(self, call_id: str) -> LedgerEntry | None:
        """The first entry of this call id that has not been taken: ids may repeat within a run."""
        for index, entry in enumerate(self.entries):
            if entry.call_id == call_id and index not in self._taken:
                self._taken.add(index)
                return entry
        return None


class ToolFailure(Exception):  # noqa: N818 - it is a result that the model reads, not a fault of ours
    """A tool's error as the model sees it: ``FileNotFoundError: [Errno 2] No such file …``."""


class AdaptedTool(BaseTool[BaseModel, BaseModel]):
    """One tool of one run."""

    def __init__(
        self, name: str, description: str, function: ToolFunction, ledger: ToolLedger, timeout_s: float
    ) -> None:
        super().__init__(_arguments_model(name, function), BaseModel, name, description)
        self._function = function
        self._ledger = ledger
        self._timeout_s = timeout_s

    async def run(self, args: BaseModel, cancellation_token: CancellationToken) -> BaseModel:
        raise TypeError("AutoGen calls run_json; a tool of ours has no other way in")

    async def run_json(
        self, args: Mapping[str, object], cancellation_token: CancellationToken, call_id: str | None = None
    ) -> str:
        """Run the tool.

        Raises:
            ToolFailure: whatever went wrong inside, SystemExit and a cancelled sub-task included.
            asyncio.CancelledError: only if this call itself is cancelled.
        """
        started = time.monotonic()
        text, error_type = "", None
        try:
            arguments = self._validated(args)
            text = await self._bounded(arguments)
        except ToolFailure as failure:
            text = str(failure)
            error_type = text.split(":", 1)[0]
            raise
        finally:
            latency_ms = round((time.monotonic() - started) * 1000)
            self._ledger.entries.append(LedgerEntry(call_id or "", text, error_type, latency_ms))
        return text

    def _validated(self, args: Mapping[str, object]) -> dict[str, object]:
        if not isinstance(args, Mapping):
            raise ToolFailure(f"TypeError: {self.name} takes an object of named arguments, not {type(args).__name__}")
        try:
            model = self.args_type().model_validate(dict(args))
        except ValidationError as error:
            problems = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
            raise ToolFailure(f"TypeError: wrong arguments for {self.name}: {problems}") from None
        return {name: getattr(model, name) for name in type(model).model_fields}

    async def _bounded(self, arguments: dict[str, object]) -> str:
        task = asyncio.ensure_future(_shielded(self._function, arguments))
        try:
            done, _ = await asyncio.wait({task}, timeout=self._timeout_s)
        except asyncio.CancelledError:
            task.cancel()
            raise
        if not done:
            task.cancel()
            raise ToolFailure(f"TimeoutError: {self.name} took longer than {self._timeout_s:g} s and was stopped")
        if task.cancelled():
            raise ToolFailure(f"CancelledError: {self.name} was cancelled from within")
        result = task.result()
        if isinstance(result, BaseException):
            raise ToolFailure(_one_error(result)) from result
        return result


async def _shielded(function: ToolFunction, arguments: dict[str, object]) -> str | BaseException:
    # a task that ends in SystemExit tears the whole event loop down, so such ends are returned, not raised
    try:
        result: object = await function(**arguments)
    except asyncio.CancelledError:
        raise
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return error
    return result if isinstance(result, str) else str(result)


def _one_error(error: BaseException) -> str:
    """``ClassName: message``; an empty message is still an answer that a model can act on."""
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(_one_error(inner) for inner in error.exceptions)
    return f"{type(error).__name__}: {error}" if str(error) else f"{type(error).__name__}: no further message"


def _arguments_model(name: str, function: ToolFunction) -> type[BaseModel]:
    """The schema of a tool's keyword parameters, strict: ``1`` is not taken for a text."""
    fields: dict[str, tuple[object, object]] = {}
    for parameter in inspect.signature(function, eval_str=True).parameters.values():
        default = ... if parameter.default is inspect.Parameter.empty else parameter.default
        fields[parameter.name] = (parameter.annotation, default)
    config = ConfigDict(strict=True, extra="forbid")
    model: type[BaseModel] = create_model(f"{name}_arguments", __config__=config, **fields)  # type: ignore[call-overload]
    return model
