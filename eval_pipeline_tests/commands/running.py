"""Runs a command in this process, as a person would type it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from typer.testing import CliRunner

from eval_pipeline import cli
from eval_pipeline.errors import EvalPipelineError


@dataclass(frozen=True)
class Outcome:
    """What a command left behind. ``error`` is a user's mistake, which :func:`cli.main` prints as one line."""

    code: int
    out: str
    notes: str
    error: str | None

    @property
    def json(self) -> Any:
        assert self.error is None, self.error
        return json.loads(self.out)


def command(*arguments: str) -> Outcome:
    result = CliRunner().invoke(cli.app, list(arguments))
    if isinstance(result.exception, EvalPipelineError):
        assert "\n" not in str(result.exception)
        return Outcome(2, result.stdout, result.stderr, str(result.exception))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Outcome(result.exit_code, result.stdout, result.stderr, None)
