"""What every asset needs: the settings of this process, and a user's mistake as one line instead of a traceback."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg

from eval_pipeline.errors import EvalPipelineError

OWNERS = ["team:evaluation"]


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn an error that the user can mend into a Dagster failure with just its line, never retried."""
    try:
        yield
    except EvalPipelineError as error:
        raise dg.Failure(description=str(error), allow_retries=False) from None


@contextmanager
def without_beta_warnings() -> Iterator[None]:
    """Build assets without Dagster's warning for each backfill policy, which is beta and which we depend on."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", category=dg.BetaWarning)
        yield
