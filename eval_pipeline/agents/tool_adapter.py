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
from autogen_core.tools import BaseTool, ToolSchema
from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from eval_pipeline.agents.tool_thread import ToolThread

ToolFunction = Callable[..., Awaitable[str]]

_MODELS: dict[tuple[str, object], type[BaseModel]] = {}
_SCHEMAS: dict[tuple[str, str, type[BaseModel]], ToolSchema] = {}
"""Made once per tool and process: making them costs more than a call of a small tool."""


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """How one execution really ended, which AutoGen's event does not tell."""

    call_id: str
    text: str
    error_type: str | None
    latency_ms: int


@dataclass
class ToolLedger:
    """Every tool execution of one run, and the threads that they ran in.

    The order is that in which the calls were begun, so that calls made at the same time always stand alike.
    """

    threads: list[ToolThread] = field(default_factory=list)
    _places: list[LedgerEntry | None] = field(default_factory=list)
    _taken: set[int] = field(default_factory=set)

    def begin(self) -> int:
        """The place of an execution that begins now."""
        self._places.append(None)
        return len(self._places) - 1

    def end(self, place: int, entry: LedgerEntry) -> None:
        """Say how the execution at ``place`` ended."""
        self._places[place] = entry

    @property
    def entries(self) -> list[LedgerEntry]:
        """What has ended so far."""
        return [entry for entry in self._places if entry is not None]

    @property
    def texts(self) -> list[str]:
        return [entry.text for entry in self.entries]

    @property
    def last_was_error(self) -> bool:
        entries = self.entries
        return bool(entries) and entries[-1].error_type is not None

    def take(self, call_id: str) -> LedgerEntry | None:
        """The first entry of this call id that has not been taken: ids may repeat within a run."""
        for place, entry in enumerate(self._places):
            if entry is not None and entry.call_id == call_id and place not in self._taken:
                self._taken.add(place)
                return entry
        return None

    async def stop(self, timeout_s: float) -> bool:
        """End what still runs; whether all of it did end within ``timeout_s`` seconds."""
        left = [thread for thread in self.threads if thread.alive]
        for thread in left:
            thread.cancel()
        if left:
            await asyncio.wait([thread.gone() for thread in left], timeout=timeout_s)
        return not any(thread.alive for thread in left)


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

    @property
    def schema(self) -> ToolSchema:
        """What the model is told; AutoGen asks before every call of a model."""
        key = (self.name, self.description, self.args_type())
        if key not in _SCHEMAS:
            _SCHEMAS[key] = super().schema
        return _SCHEMAS[key]

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
        started_s = time.monotonic()
        place = self._ledger.begin()
        text, error_type = "", "CancelledError"
        try:
            text = await self._bounded(self._validated(args))
            error_type = ""
        except ToolFailure as failure:
            text = str(failure)
            error_type = text.split(":", 1)[0]
            raise
        finally:
            latency_ms = round((time.monotonic() - started_s) * 1000)
            self._ledger.end(place, LedgerEntry(call_id or "", text, error_type or None, latency_ms))
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
        try:
            thread = ToolThread(self.name, lambda: self._function(**arguments))
        except RuntimeError as error:
            raise ToolFailure(_one_error(error)) from error
        self._ledger.threads.append(thread)
        try:
            end = await thread.end(self._timeout_s)
        except TimeoutError:
            thread.cancel()
            raise ToolFailure(
                f"TimeoutError: {self.name} took longer than {self._timeout_s:g} s and was stopped"
            ) from None
        except asyncio.CancelledError:
            thread.cancel()
            raise
        if isinstance(end, asyncio.CancelledError):
            raise ToolFailure(f"CancelledError: {self.name} was cancelled from within")
        if isinstance(end, BaseException):
            raise ToolFailure(_one_error(end)) from end
        return end if isinstance(end, str) else str(end)


def _one_error(error: BaseException) -> str:
    """``ClassName: message``; an empty message is still an answer that a model can act on."""
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(_one_error(inner) for inner in error.exceptions)
    return f"{type(error).__name__}: {error}" if str(error) else f"{type(error).__name__}: no further message"


def _arguments_model(name: str, function: ToolFunction) -> type[BaseModel]:
    """The schema of a tool's keyword parameters, strict: ``1`` is not taken for a text."""
    # each run binds its own function, but all of one tool come out of the same code
    key = (name, getattr(function, "__code__", function))
    if key not in _MODELS:
        _MODELS[key] = _made_model(name, function)
    return _MODELS[key]


def _made_model(name: str, function: ToolFunction) -> type[BaseModel]:
    fields: dict[str, tuple[object, object]] = {}
    for parameter in inspect.signature(function, eval_str=True).parameters.values():
        default = ... if parameter.default is inspect.Parameter.empty else parameter.default
        fields[parameter.name] = (parameter.annotation, default)
    config = ConfigDict(strict=True, extra="forbid")
    model: type[BaseModel] = create_model(f"{name}_arguments", __config__=config, **fields)  # type: ignore[call-overload]
    return model
